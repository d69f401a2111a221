"""Opening a connection: names to addresses, TCP, a proxy's tunnel, TLS."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from monocontext.transport.connection import Address, Connection
from monocontext.transport.http11 import request_head
from monocontext.transport.patience import Stalled, Wait
from monocontext.transport.route import Endpoint, Proxy

if TYPE_CHECKING:
    from ssl import SSLContext

_REMEMBERED_SECONDS = 5.0
"""The time that S3's own answers may be kept; one wave of connections asks once."""

# A generator of its own: code that seeds that of the module `random` finds its own sequence, whatever is read.
_chance = SystemRandom()

_Found = tuple[socket.AddressFamily, Any]


class Dialler:
    """Opens connections for one process and spreads them over all addresses of a name."""

    def __init__(self, tls: Callable[[], SSLContext]) -> None:
        self._make_tls = tls
        self._tls: SSLContext | None = None
        self.start_anew()

    def start_anew(self) -> None:
        """In the child of a fork: with a lock that no lost thread holds."""
        self._lock = threading.Lock()
        self._known: dict[Address, tuple[float, list[_Found]]] = {}

    def open(self, endpoint: Endpoint, wait: Wait, avoid: Address | None = None) -> Connection:
        """Connect, if it can be to another address than `avoid`. Raises `OSError`."""
        sock = self._connect(endpoint.proxy or endpoint, wait, avoid)
        try:
            address = sock.getpeername()[:2]
            if endpoint.scheme == "https":
                if endpoint.proxy:
                    _tunnel(Connection(sock, endpoint, address, 0.0), endpoint, endpoint.proxy, wait)
                sock.settimeout(wait.seconds())
                sock = self._context().wrap_socket(sock, server_hostname=endpoint.host, suppress_ragged_eofs=False)
            return Connection(sock, endpoint, address, time.monotonic())
        except BaseException:
            sock.close()
            raise

    def _connect(self, towards: Endpoint | Proxy, wait: Wait, avoid: Address | None) -> socket.socket:
        failed: OSError | None = None
        try:
            for family, address in spread(self._addresses((towards.host, towards.port)), avoid, _chance.shuffle):
                sock = socket.socket(family, socket.SOCK_STREAM)
                try:
                    sock.settimeout(wait.seconds())
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
        said = (failed.strerror or str(failed)) if failed else "the name has no address"
        kind = Stalled if isinstance(failed, TimeoutError) else ConnectionError
        raise kind(f"Could not connect to {towards}: {said}") from failed

    def _addresses(self, place: Address) -> list[_Found]:
        now = time.monotonic()
        at, found = self._known.get(place, (-_REMEMBERED_SECONDS, []))
        if now - at >= _REMEMBERED_SECONDS:
            answers = socket.getaddrinfo(*place, type=socket.SOCK_STREAM)
            found = [(family, address) for family, _, _, _, address in answers]
            self._known[place] = now, found
        return found

    def _context(self) -> SSLContext:
        with self._lock:  # 45 ms of CPU, most of it reading the certificates of authorities
            if self._tls is None:
                self._tls = self._make_tls()
            return self._tls


def spread(found: Sequence[_Found], avoid: Address | None, shuffle: Callable[[list[_Found]], None]) -> list[_Found]:
    """Addresses in the order to try them: any of the family that the system prefers, then the others; `avoid` last."""
    order: list[_Found] = []
    for family in dict.fromkeys(family for family, _ in found):
        alike = [each for each in found if each[0] == family]
        shuffle(alike)
        order += alike
    return sorted(order, key=lambda each: each[1][:2] == avoid)


def _tunnel(connection: Connection, endpoint: Endpoint, proxy: Proxy, wait: Wait) -> None:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    target = f"{host}:{endpoint.port}"
    headers = {"host": target}
    if proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    connection.begin(wait)
    connection.send(request_head("CONNECT", target, headers))
    head = connection.read_head()
    if head.status != 200 or connection.has_surplus:
        raise ConnectionError(f"{proxy} refused a tunnel to {target}: HTTP {head.status}")
