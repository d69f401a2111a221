"""Streamable HTTP: this machine unless told otherwise, and a token that is compared in constant time.

The token is the whole of the protection and travels in the clear: beyond one machine put TLS before it.
"""

from __future__ import annotations

import hmac
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from ipaddress import ip_address
from typing import Any

from monocontext.errors import AccessDenied

PATH = "/mcp"
_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


class Listener:
    """A bound address, and the token for it."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, token: str | None = None) -> None:
        """Port 0 takes a free one. `token`: None makes one up, an empty one asks for none.

        Raises `AccessDenied` for an empty one beyond this machine, and `OSError` where the port is taken.
        """
        self.token = secrets.token_urlsafe(24) if token is None else token
        if not self.token and not _is_loopback(host):
            raise AccessDenied(f"serving on {host} without a token would open what is served to all who reach it")
        if not (self.token.isascii() and self.token.isprintable()):
            raise AccessDenied("a token is printable ASCII: it travels in a header")
        self.host = host
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(128)  # who connects from now on waits instead of being refused
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """Where clients reach it."""
        return (
            f"http://[{self.host}]:{self.port}{PATH}" if ":" in self.host else f"http://{self.host}:{self.port}{PATH}"
        )

    def serve(self, server: Any) -> None:
        """Serve a server of the SDK until it is interrupted."""
        import uvicorn

        is_first = hasattr(server.settings, "stateless_http")
        options = {} if is_first else {"stateless_http": True, "host": self.host}
        app = _guarded(server.streamable_http_app(**options), self.token)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run(sockets=[self._socket])

    def close(self) -> None:
        """Let go of the address. Idempotent."""
        self._socket.close()


def _guarded(app: Any, token: str) -> _App:
    """The app behind the token; 401 without it."""
    expected = token.encode()

    async def guarded(scope: _Message, receive: Any, send: Any) -> None:
        if token and scope["type"] == "http" and not _is_known(scope["headers"], expected):
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            body = b'{"error": "expected the header Authorization: Bearer <token>"}'
            await send({"type": "http.response.body", "body": body})
            return
        await app(scope, receive, send)

    return guarded


def _is_known(headers: list[tuple[bytes, bytes]], expected: bytes) -> bool:
    given = dict(headers).get(b"authorization", b"")
    kind, _, told = given.partition(b" ")
    return hmac.compare_digest(told.strip(), expected) and kind.lower() == b"bearer"


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
