"""Open connections, lend them to requests, and keep idle ones for later requests.

Invariants:

- a connection is either idle in the pool or lent to one borrower
- it becomes idle only if its last response was read to the end (`Body.leaves_connection_usable`)
- a process uses only connections that it opened itself: after a fork the child closes its copies and starts with an
  empty pool. Two processes that read from one socket would receive each other's objects

The pool has no thread: its next use closes connections that were idle too long. With `max_idle=0` no connection stays
open between two calls.
"""

from __future__ import annotations

import os
import select
import socket
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from monocontext.records import NamedTuple
from monocontext.stores.http.connection import Connection, Endpoint, Peer, Proxy, request_head
from monocontext.stores.http.timer import ExchangeTimer, Stalled

if TYPE_CHECKING:
    from ssl import SSLContext


MAX_IDLE = 64  # the most idle connections: as many as there are threads that fetch
_LONGEST_IDLE_SECONDS = 20.0
"""Load balancers close idle connections after 20 to 60 s, and a request on a closed one must be sent again."""
_OLDEST_SECONDS = 300.0
"""The age from which connections are closed after use, so that requests follow changes in DNS and leave slow paths."""
_RESOLVED_SECONDS = 5.0
"""How long resolved addresses are used: as long as S3's DNS records are valid. A burst of connections resolves once."""


class SocketAddress(NamedTuple):
    """An address of a host. `name` begins with the IP address and the port, as `socket.connect` takes it."""

    family: socket.AddressFamily
    name: Any


class Pool:
    """A pool of connections, spread over all addresses of a host. Safe for use by many threads, and after a fork."""

    def __init__(self, make_tls: Callable[[], SSLContext], max_idle: int = MAX_IDLE) -> None:
        """`make_tls` is called for the first https connection. At most `max_idle` connections to a server stay idle."""
        self._make_tls = make_tls
        self._tls: SSLContext | None = None
        self._max_idle = max_idle
        self._reset()

    def _reset(self) -> None:
        # The locks are new too: a thread that did not survive the fork may have held one.
        self._process = os.getpid()
        self._lock, self._tls_lock = threading.Lock(), threading.Lock()
        self._resolved: dict[tuple[str, int], tuple[float, list[SocketAddress]]] = {}
        """By host name and port: the time of the look-up, on the monotonic clock, and the addresses."""
        self._idle: defaultdict[Endpoint, deque[Connection]] = defaultdict(deque)
        self._open: WeakSet[Connection] = WeakSet()
        """All connections that are not closed, whether idle or lent."""

    def borrow(
        self, endpoint: Endpoint, timer: ExchangeTimer, *, must_be_new: bool = False, avoid: Peer | None = None
    ) -> Connection:
        """Lend an idle connection to an endpoint, or a new one if none is idle or with `must_be_new`.

        A new one leads to an address other than `avoid` if possible. Raises `OSError` if it cannot be opened.
        """
        if self._process != os.getpid():
            self._drop_inherited()
        while not must_be_new and (idle := self._take_idle(endpoint)):
            if _is_quiet(idle):
                return idle
            self.discard(idle)
        connection = self._connect(endpoint, timer, avoid)
        with self._lock:
            self._open.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take a connection back for later requests. Its last response must have been read to the end."""
        connection.exchanges += 1
        now = connection.idle_since = time.monotonic()
        surplus: list[Connection] = []
        with self._lock:
            idle = self._idle[connection.endpoint]
            if connection not in self._open or now - connection.opened > _OLDEST_SECONDS:
                surplus.append(connection)
            else:
                idle.append(connection)
            for queue in self._idle.values():
                while queue and (len(queue) > self._max_idle or now - queue[0].idle_since > _LONGEST_IDLE_SECONDS):
                    surplus.append(queue.popleft())
        for item in surplus:
            self.discard(item)

    def discard(self, connection: Connection) -> None:
        """Close a borrowed connection."""
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _take_idle(self, endpoint: Endpoint) -> Connection | None:
        """The connection that came back last, whose path is warm; `None` if none is idle. Closes old ones."""
        with self._lock:
            queue = self._idle.get(endpoint)
            if not queue:
                return None
            if time.monotonic() - queue[-1].idle_since <= _LONGEST_IDLE_SECONDS:
                return queue.pop()
            expired, self._idle[endpoint] = queue, deque()
        for item in expired:
            self.discard(item)
        return None

    def _connect(self, endpoint: Endpoint, timer: ExchangeTimer, avoid: Peer | None) -> Connection:
        """Open a connection, if possible to an address other than `avoid`. Raises `OSError`."""
        sock = self._open_socket(endpoint.proxy or endpoint, timer, avoid)
        try:
            address = sock.getpeername()[:2]
            if endpoint.scheme == "https":
                if endpoint.proxy:
                    _tunnel(Connection(sock, endpoint, address, 0.0), endpoint, endpoint.proxy, timer)
                sock.settimeout(timer.next_timeout())
                sock = self._tls_context().wrap_socket(sock, server_hostname=endpoint.host, suppress_ragged_eofs=False)
            return Connection(sock, endpoint, address, time.monotonic())
        except BaseException:
            sock.close()
            raise

    def _open_socket(self, target: Endpoint | Proxy, timer: ExchangeTimer, avoid: Peer | None) -> socket.socket:
        """Connect to the first address of `target` that answers. Raises `ConnectionError`, `Stalled` or `Overdue`."""
        failed: OSError | None = None
        try:
            for family, name in order_addresses(self._resolve(target.host, target.port), avoid):
                sock = socket.socket(family, socket.SOCK_STREAM)
                try:
                    sock.settimeout(timer.next_timeout())
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sock.connect(name)
                    return sock
                except BaseException as error:
                    sock.close()
                    if not isinstance(error, OSError):
                        raise
                    failed = error
        except socket.gaierror as error:
            failed = error
        reason = (failed.strerror or str(failed)) if failed else "the name has no address"
        error_type = Stalled if isinstance(failed, TimeoutError) else ConnectionError
        raise error_type(f"cannot connect to {target}: {reason}") from failed

    def _resolve(self, host: str, port: int) -> list[SocketAddress]:
        """The addresses of a host, from DNS or from a recent look-up. Raises `socket.gaierror`."""
        now = time.monotonic()
        resolved_at, addresses = self._resolved.get((host, port), (-_RESOLVED_SECONDS, []))
        if now - resolved_at >= _RESOLVED_SECONDS:
            # As bytes, an ASCII name does not import the codec for international names, which takes 1 ms.
            encoded = host.encode() if host.isascii() else host
            answers = socket.getaddrinfo(encoded, port, type=socket.SOCK_STREAM)
            addresses = [SocketAddress(family, name) for family, _, _, _, name in answers]
            self._resolved[host, port] = now, addresses
        return addresses

    def _tls_context(self) -> SSLContext:
        with self._tls_lock:  # 45 ms of CPU, mostly to read the certificates
            if self._tls is None:
                self._tls = self._make_tls()
            return self._tls

    def close(self) -> None:
        """Close idle connections; lent ones are closed when they come back. Idempotent; the pool stays usable."""
        if self._process != os.getpid():
            self._drop_inherited()
        with self._lock:
            idle = [connection for queue in self._idle.values() for connection in queue]
            self._idle.clear()
            self._open.clear()
        for connection in idle:
            connection.close()

    def _drop_inherited(self) -> None:
        """After a fork, close the copies of the parent's connections, and send nothing on them."""
        inherited = list(self._open)
        self._reset()
        for connection in inherited:
            connection.close()


def _is_quiet(connection: Connection) -> bool:
    """Whether the server has neither closed an idle connection nor sent bytes on it."""
    if connection.endpoint.scheme == "https":
        return True  # it cannot be known without reading a record
    try:
        if not hasattr(select, "poll"):  # Windows, whose `select` takes descriptors of any number
            return not select.select([connection.socket], [], [], 0)[0]
        poll = select.poll()
        poll.register(connection.socket, select.POLLIN)
        return not poll.poll(0)
    except (OSError, ValueError):  # it was closed here
        return False


def order_addresses(addresses: Sequence[SocketAddress], avoid: Peer | None) -> list[SocketAddress]:
    """Addresses in the order to try them: `avoid` last, then by the system's order of families, then at random."""
    families = [item.family for item in addresses]
    return sorted(addresses, key=lambda item: (item.name[:2] == avoid, families.index(item.family), os.urandom(8)))


def _tunnel(connection: Connection, endpoint: Endpoint, proxy: Proxy, timer: ExchangeTimer) -> None:
    """Ask a proxy, by CONNECT, to pass all bytes on to the endpoint. Raises `ConnectionError` if it does not."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    target = f"{host}:{endpoint.port}"
    headers = {"host": target}
    if proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    connection.send(request_head("CONNECT", target, headers), timer)
    head = connection.read_head()
    if head.status != 200:
        raise ConnectionError(f"{proxy} refused a tunnel to {target}: HTTP {head.status}")
    if connection.unread:
        raise ConnectionError(f"{proxy} sent data before the tunnel to {target} began")
