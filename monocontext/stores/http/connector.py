"""Open a connection: resolve the name, connect by TCP, tunnel through a proxy, start TLS."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Sequence
from random import SystemRandom
from typing import TYPE_CHECKING, Any

from monocontext.stores.http.connection import Address, Connection, ExchangeTimer, Stalled
from monocontext.stores.http.http11 import request_head
from monocontext.stores.http.route import Endpoint, Proxy

if TYPE_CHECKING:
    from ssl import SSLContext

_REMEMBERED_SECONDS = 5.0
"""Lifetime of resolved addresses, as S3's DNS gives it; a burst of connections resolves the name once."""

# A generator of our own: reads do not disturb the sequence of code that seeds the module `random`.
_chance = SystemRandom()

_SocketAddress = tuple[socket.AddressFamily, Any]


class Connector:
    """Opens connections of one process, spread over all addresses of a name."""

    def __init__(self, tls: Callable[[], SSLContext]) -> None:
        self._make_tls = tls
        self._tls: SSLContext | None = None
        self.reset()

    def reset(self) -> None:
        """Start again in the child of a fork, with a lock that no lost thread holds."""
        self._lock = threading.Lock()
        self._addresses_by_name: dict[Address, tuple[float, list[_SocketAddress]]] = {}

    def open(self, endpoint: Endpoint, timer: ExchangeTimer, avoid: Address | None = None) -> Connection:
        """Connect, where possible to another address than `avoid`. Raises `OSError`."""
        sock = self._connect(endpoint.proxy or endpoint, timer, avoid)
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

    def _connect(self, towards: Endpoint | Proxy, timer: ExchangeTimer, avoid: Address | None) -> socket.socket:
        failed: OSError | None = None
        try:
            for family, address in order_addresses(
                self._addresses((towards.host, towards.port)), avoid, _chance.shuffle
            ):
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
        raise kind(f"Could not connect to {towards}: {reason}") from failed

    def _addresses(self, place: Address) -> list[_SocketAddress]:
        now = time.monotonic()
        resolved, found = self._addresses_by_name.get(place, (-_REMEMBERED_SECONDS, []))
        if now - resolved >= _REMEMBERED_SECONDS:
            host, port = place
            # As bytes a plain name needs no codec for international ones, whose tables take 1 ms to import.
            name = host.encode() if host.isascii() else host
            answers = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
            found = [(family, address) for family, _, _, _, address in answers]
            self._addresses_by_name[place] = now, found
        return found

    def _tls_context(self) -> SSLContext:
        with self._lock:  # 45 ms of CPU, most of it reading the certificates of authorities
            if self._tls is None:
                self._tls = self._make_tls()
            return self._tls


def order_addresses(
    found: Sequence[_SocketAddress], avoid: Address | None, shuffle: Callable[[list[_SocketAddress]], None]
) -> list[_SocketAddress]:
    """Addresses in the order to try them: any of the family that the system prefers, then the others; `avoid` last."""
    order: list[_SocketAddress] = []
    for family in dict.fromkeys(family for family, _ in found):
        alike = [each for each in found if each[0] == family]
        shuffle(alike)
        order += alike
    return sorted(order, key=lambda each: each[1][:2] == avoid)


def _tunnel(connection: Connection, endpoint: Endpoint, proxy: Proxy, timer: ExchangeTimer) -> None:
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host
    target = f"{host}:{endpoint.port}"
    headers = {"host": target}
    if proxy.authorization:
        headers["proxy-authorization"] = proxy.authorization
    connection.begin(timer)
    connection.send(request_head("CONNECT", target, headers))
    head = connection.read_head()
    if head.status != 200 or connection.has_surplus:
        raise ConnectionError(f"{proxy} refused a tunnel to {target}: HTTP {head.status}")
