"""Serve MCP over streamable HTTP, to callers with a token."""

from __future__ import annotations

import json
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from monocontext.mcp.access import EXPECTED_HEADER, choose_token, holds_token
from monocontext.page.loopback import server_url

PATH = "/mcp"
_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


class HttpListener:
    """Listens at an address, and serves callers with its token."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, *, token: str | None = None) -> None:
        """Bind to an address; port 0 takes a free port.

        `token`: None generates one, an empty one means that none is required. Raises `AccessDenied` for an empty one
        beyond this machine, and `OSError` if the port is taken.
        """
        self.token = choose_token(token, host)
        self.host = host
        self._socket = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(128)  # clients that connect from now on wait instead of being refused
        except BaseException:
            self._socket.close()
            raise
        self.port: int = self._socket.getsockname()[1]

    @property
    def url(self) -> str:
        """The URL for clients."""
        return server_url(self.host, self.port) + PATH

    def serve(self, server: Any) -> None:
        """Serve a server of the SDK until it is interrupted."""
        import uvicorn

        is_first = hasattr(server.settings, "stateless_http")
        options = {} if is_first else {"stateless_http": True, "host": self.host}
        app = _require_token(server.streamable_http_app(**options), self.token)
        uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run(sockets=[self._socket])

    def close(self) -> None:
        """Release the address. Idempotent."""
        self._socket.close()


def _require_token(app: Any, token: str) -> _App:
    """An app that passes requests with the token to `app`, and answers others with 401."""

    async def answer(scope: _Message, receive: Any, send: Any) -> None:
        is_http = scope["type"] == "http"
        if token and is_http and not holds_token(dict(scope["headers"]).get(b"authorization", b""), token):
            headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": headers})
            body = json.dumps({"error": EXPECTED_HEADER}).encode()
            await send({"type": "http.response.body", "body": body})
            return
        await app(scope, receive, send)

    return answer
