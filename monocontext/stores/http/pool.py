"""A pool of connections: it opens them, lends them, and keeps idle ones for later requests.

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

from monocontext.stores.http.connection import (
    Address,
    Connection,
    Endpoint,
    ExchangeTimer,
    Proxy,
    Stalled,
    request_head,
)

if TYPE_CHECKING:
    from ssl import SSLContext


MAX_IDLE = 64  # the most idle connections: as many as there are threads that fetch
_IDLE_SECONDS = 20.0
"""The longest time that a connection stays idle. Load balancers close idle connections after 20 to 60 s, and a request
on a closed one must be sent again."""
_AGE_SECONDS = 300.0
"""The age at which connections are replaced, so that requests follow changes in DNS and leave slow paths."""
_REMEMBERED_SECONDS = 5.0
"""How long resolved addresses are used: the lifetime of S3's DNS records. A burst of connections resolves once."""

_SocketAddress = tuple[socket.AddressFamily, Any]


class Pool:
    """Opens connections, spread over all addresses of a name, and lends them. Safe for use by many threads, and after a
    fork."""

    def __init__(self, make_tls: Callable[[], SSLContext], max_idle: int = MAX_IDLE) -> None:
        self._make_tls = make_tls
        self._tls: SSLContext | None = None
        self._max_idle = max_idle
        self._reset()

    def _reset(self) -> None:
        # The locks are new too: a thread that did not survive the fork may have held one.
        self._process = os.getpid()
        self._lock, self._tls_lock = threading.Lock(), threading.Lock()
        self._addresses_by_name: dict[Address, tuple[float, list[_SocketAddress]]] = {}
        self._idle: defaultdict[Endpoint, deque[Connection]] = defaultdict(deque)
        self._open: WeakSet[Connection] = WeakSet()
        """The connections that are not closed, idle or lent."""

    def borrow(
        self, endpoint: Endpoint, timer: ExchangeTimer, *, fresh: bool = False, avoid: Address | None = None
    ) -> Connection:
        """An idle connection, or a new one if there is none or `fresh` is true.

        A new one leads to another address than `avoid` if possible. Raises `OSError` if it cannot be opened.
        """
        if self._process != os.getpid():
            self._drop_inherited()
        while not fresh and (idle := self._take_idle(endpoint)):
            if _is_quiet(idle):
                return idle
            self.discard(idle)
        connection = self._connect(endpoint, timer, avoid)
        with self._lock:
            self._open.add(connection)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Take a connection back for later requests. Its last response was read to the end."""
        connection.exchanges += 1
        now = connection.idle_since = time.monotonic()
        closing: list[Connection] = []
        with self._lock:
            idle = self._idle[connection.endpoint]
            if connection not in self._open or now - connection.opened > _AGE_SECONDS:
                closing.append(connection)
            else:
                idle.append(connection)
            for queue in self._idle.values():
                while queue and (len(queue) > self._max_idle or now - queue[0].idle_since > _IDLE_SECONDS):
                    closing.append(queue.popleft())
        for item in closing:
            self.discard(item)

    def discard(self, connection: Connection) -> None:
        """Close a borrowed connection."""
        with self._lock:
            self._open.discard(connection)
        connection.close()

    def _take_idle(self, endpoint: Endpoint) -> Connection | None:
        # The one that came back last: its path is warm, and others become old enough to be closed.
        with self._lock:
            connections = self._idle.get(endpoint)
            if not connections:
                return None
            if time.monotonic() - connections[-1].idle_since <= _IDLE_SECONDS:
                return connections.pop()
            expired = list(connections)
            connections.clear()
        for item in expired:
            self.discard(item)
        return None

    def _connect(self, endpoint: Endpoint, timer: ExchangeTimer, avoid: Address | None = None) -> Connection:
        """Connect, where possible to another address than `avoid`. Raises `OSError`."""
        sock = self._open_socket(endpoint.proxy or endpoint, timer, avoid)
        try:
            address = sock.getpeername()[:2]
            if endpoint.scheme == "https":
                if endpoint.proxy:
                    _tunnel(Connection(sock, endpoint, address, 0.0), endpoint, endpoint.proxy, timer)
                sock.settimeout(timer.seconds())
                sock = self._tls_context().wrap_socket(sock, server_hostname=endpoint.host, suppress_ragged_eofs=False)
            return Connection(sock, endpoint, address, time.monotonic())
        except BaseException:
            sock.close()
            raise

    def _open_socket(self, target: Endpoint | Proxy, timer: ExchangeTimer, avoid: Address | None) -> socket.socket:
        failed: OSError | None = None
        try:
            for family, address in order_addresses(self._addresses((target.host, target.port)), avoid):
                sock = socket.socket(family, socket.SOCK_STREAM)
                try:
                    sock.settimeout(timer.seconds())
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    sock.connect(address)
                    return sock
                except BaseException as error:
                    sock.close()
                    if not isinstance(error, OSError):
                        raise
                    failed = error
        except socket.gaierror as error:
            failed = error
        reason = (failed.strerror or str(failed)) if failed else "the name has no address"
        kind = Stalled if isinstance(failed, TimeoutError) else ConnectionError
        raise kind(f"Could not connect to {target}: {reason}") from failed

    def _addresses(self, place: Address) -> list[_SocketAddress]:
        now = time.monotonic()
        resolved, results = self._addresses_by_name.get(place, (-_REMEMBERED_SECONDS, []))
        if now - resolved >= _REMEMBERED_SECONDS:
            host, port = place
            # As bytes, an ASCII name does not import the codec for international names, which takes 1 ms.
            name = host.encode() if host.isascii() else host
            answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            results = [(family, address) for family, _, _, _, address in answers]
            self._addresses_by_name[place] = now, results
        return results

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
            idle = [item for connections in self._idle.values() for item in connections]
            self._idle.clear()
            self._open.clear()
        for entry in idle:
            entry.close()

    def _drop_inherited(self) -> None:
        """Close the copies of the parent's connections after a fork; nothing is sent on them."""
        inherited = list(self._open)
        self._reset()
        for item in inherited:
            item.close()


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


def order_addresses(addresses: Sequence[_SocketAddress], avoid: Address | None) -> list[_SocketAddress]:
    """Addresses in the order to try them: `avoid` last, the family that the system lists first, and else by chance."""
    families = [family for family, _ in addresses]
    return sorted(addresses, key=lambda one: (one[1][:2] == avoid, families.index(one[0]), os.urandom(8)))


def _tunnel(connection: Connection, endpoint: Endpoint, proxy: Proxy, timer: ExchangeTimer) -> None:
    """Ask a proxy to pass all bytes on to the endpoint. Raises `ConnectionError` if it refuses."""
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    target = f"{host}:{endpoint.port}"
    headers = {"host": target}
    if proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    connection.send(request_head("CONNECT", target, headers), timer)
    head = connection.read_head()
    if head.status != 200 or connection.ahead:
        raise ConnectionError(f"{proxy} refused a tunnel to {target}: HTTP {head.status}")
