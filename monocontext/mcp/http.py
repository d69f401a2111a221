"""Serve MCP over streamable HTTP, to callers with a bearer token.

By default a server is reached only from this machine. The token is the only protection and is sent in the clear: for
callers on other machines, put TLS in front of the server.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from monocontext.errors import AccessDenied
from monocontext.page.serving import server_url

_Message = MutableMapping[str, Any]
_App = Callable[[_Message, Callable[[], Awaitable[_Message]], Callable[[_Message], Awaitable[None]]], Awaitable[None]]


def choose_token(token: str | None) -> str:
    """`token`, or a new random token for None. Raises `AccessDenied` for a token that cannot be sent in a header."""
    chosen = secrets.token_urlsafe(24) if token is None else token
    if not (chosen and chosen.isascii() and chosen.isprintable()):
        raise AccessDenied("a token must be printable ASCII, since it is sent in a header")
    return chosen


def listen(host: str, port: int) -> tuple[socket.socket, str]:
    """A socket that listens at an address, and the URL for clients; port 0 takes a free one. Raises `OSError`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, port), family=family, backlog=128)
    return listener, f"{server_url(host, listener.getsockname()[1])}/mcp"


def serve(server: Any, listener: socket.socket, host: str, token: str) -> None:
    """Serve an MCP server until Ctrl-C, to callers with `token`. The SDK checks the `Host` of requests."""
    import uvicorn

    app = require_token(server.streamable_http_app(stateless_http=True, host=host), token)
    uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="on")).run(sockets=[listener])


def require_token(app: Any, token: str) -> _App:
    """An app that passes requests with the token to `app`, and answers others with 401."""

    async def answer(scope: _Message, receive: Any, send: Any) -> None:
        kind, _, value = dict(scope.get("headers", ())).get(b"authorization", b"").partition(b" ")
        holds_token = hmac.compare_digest(value.strip(), token.encode()) and kind.lower() == b"bearer"
        if scope["type"] != "http" or holds_token:
            await app(scope, receive, send)
            return
        headers = [(b"content-type", b"application/json"), (b"www-authenticate", b"Bearer")]
        await send({"type": "http.response.start", "status": 401, "headers": headers})
        body = json.dumps({"error": "expected the header Authorization: Bearer <token>"}).encode()
        await send({"type": "http.response.body", "body": body})

    return answer
