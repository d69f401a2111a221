"""The memory tool over HTTP, for agents that speak CloudLLM's tool protocol: two routes of each of its two clients.

Loopback unless told otherwise, a token that is compared in constant time, bodies of bounded size. The token is the
whole of the protection and travels in the clear: beyond one machine put TLS before it.
"""

from __future__ import annotations

import hmac
import json
import secrets
import socket
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any

from monocontext.errors import AccessDenied, InvalidParameters, UnknownTool
from monocontext.memory.memory import Memory
from monocontext.memory.tool import MemoryTool

MAX_BODY_BYTES = 16 << 20
"""What one call may send."""
_SILENCE_SECONDS = 30
_ROUTES = {"/tools/list": "POST", "/tools/execute": "POST", "/tools": "GET", "/execute": "POST"}


class MemoryServer(ThreadingHTTPServer):
    """Serves one memory. `serve_forever()` blocks; `shutdown()` from another thread ends it."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        memory: Memory,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        token: str | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        """Bind to an address; port 0 takes a free one.

        `token`: what callers send as `Authorization: Bearer ...`; None makes one up (`server.token`), an empty one asks
        for none. Raises `AccessDenied` for an empty one beyond this machine, and `OSError` where the port is taken.
        """
        self.token = secrets.token_urlsafe(24) if token is None else token
        self.is_local = _is_loopback(host)
        if not self.token and not self.is_local:
            raise AccessDenied(f"serving on {host} without a token would open the memory to everyone who reaches it")
        if not (self.token.isascii() and (self.token.isprintable())):
            raise AccessDenied("a token is printable ASCII: it travels in a header")
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.tool = MemoryTool(memory)
        self.max_body_bytes = max_body_bytes
        super().__init__((host, port), _Handler)

    @property
    def url(self) -> str:
        """Where it listens."""
        host, port = self.server_address[0], self.server_address[1]
        return f"http://[{host!s}]:{port}" if ":" in str(host) else f"http://{host!s}:{port}"


class _Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _Handler(BaseHTTPRequestHandler):
    server: MemoryServer
    protocol_version = "HTTP/1.1"
    server_version = "monocontext"
    sys_version = ""
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        self._answer("GET")

    def do_POST(self) -> None:
        self._answer("POST")

    def _answer(self, method: str) -> None:
        try:
            status, reply = HTTPStatus.OK, self._reply(method)
        except _Refusal as refusal:
            # The body was not read: what comes next on this connection would be taken for a request.
            self.close_connection = True
            status, reply = refusal.status, {"error": str(refusal)}
        data = json.dumps(reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        if status == HTTPStatus.UNAUTHORIZED:
            self.send_header("WWW-Authenticate", "Bearer")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(data)

    def _reply(self, method: str) -> Any:
        self._check_caller()
        path = self.path.partition("?")[0]
        expected = _ROUTES.get(path)
        if expected is None:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"no route {path[:80]}; there are {', '.join(_ROUTES)}")
        if method != expected:
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {expected}")
        if path == "/tools":
            return [self.server.tool.metadata]
        body = self._body()
        if path == "/tools/list":
            return {"tools": [self.server.tool.metadata]}
        try:
            envelope = self.server.tool.execute(body.get("parameters") or {}, tool=str(body.get("tool")))
        except (InvalidParameters, UnknownTool) as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, str(error)) from None
        return envelope if path == "/execute" else {"result": envelope}

    def _check_caller(self) -> None:
        token = self.server.token
        if not token:
            # Without a token a web page could reach us through a browser on this machine: it says where it comes from,
            # or it names us by a name of its own.
            host = (self.headers.get("Host") or "").rsplit(":", 1)[0].strip("[]")
            if self.headers.get("Origin") or not _is_loopback(host):
                raise _Refusal(HTTPStatus.FORBIDDEN, "without a token only programs on this machine are served")
            return
        kind, _, given = (self.headers.get("Authorization") or "").partition(" ")
        same = hmac.compare_digest(given.strip().encode(errors="surrogateescape"), token.encode())
        if kind.lower() != "bearer" or not same:
            raise _Refusal(HTTPStatus.UNAUTHORIZED, "expected the header Authorization: Bearer <token>")

    def _body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdigit()):
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if len(length) > 18 or int(length) > self.server.max_body_bytes:
            most = self.server.max_body_bytes
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body has at most {most:,} bytes")
        data = self.rfile.read(int(length))
        try:
            body = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            raise _Refusal(HTTPStatus.BAD_REQUEST, "expected a body of JSON") from None
        if not isinstance(body, dict):
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"expected a JSON object, found {type(body).__name__}")
        return body

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nothing: commands hold what agents remember."""


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False
