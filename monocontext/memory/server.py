"""Serve the memory tool over HTTP to agents that speak CloudLLM's tool protocol.

CloudLLM has two clients, each with two routes of its own. `access` decides who may call. Bodies have a bounded size.
"""

from __future__ import annotations

import json
import socket
import sys
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from monocontext.errors import AccessDenied, InvalidParameters, UnknownTool
from monocontext.memory.access import EXPECTED_HEADER, choose_token, holds_token
from monocontext.memory.grants import Granted
from monocontext.memory.memory import Memory
from monocontext.memory.tool import MemoryTool
from monocontext.page.loopback import is_loopback, server_url

MAX_BODY_BYTES = 16 << 20
"""Largest body of one call, in bytes."""
_SILENCE_SECONDS = 30
"""The time after which a silent connection is closed."""
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
        granted: Granted | None = None,
        max_body_bytes: int = MAX_BODY_BYTES,
    ) -> None:
        """Bind to an address; port 0 takes a free port.

        `token`: the token that callers send as `Authorization: Bearer ...`; None generates one (`server.token`), an
        empty one means none is required. `granted`: more tokens, each for a namespace, to read or to write. Raises
        `AccessDenied` for an empty token beyond this machine or together with `granted`, and `OSError` if the port is
        taken.
        """
        self.token = choose_token(token, host)
        if granted and not self.token:
            raise AccessDenied("grants are by token: a server that asks for none grants all to all")
        self.granted = granted
        if ":" in host:
            self.address_family = socket.AF_INET6
        self.tool = MemoryTool(memory)
        self.max_body_bytes = max_body_bytes
        super().__init__((host, port), _MemoryHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that have gone, which is no error of the server; report anything else."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def url(self) -> str:
        """The URL at which it listens."""
        return server_url(str(self.server_address[0]), self.server_port)


class _Refusal(Exception):
    """An answer other than 200."""

    def __init__(self, status: HTTPStatus, text: str) -> None:
        super().__init__(text)
        self.status = status


class _MemoryHandler(BaseHTTPRequestHandler):
    server: MemoryServer
    protocol_version = "HTTP/1.1"
    server_version = "monocontext"
    sys_version = ""
    timeout = _SILENCE_SECONDS

    def do_GET(self) -> None:
        self._respond("GET")

    def do_POST(self) -> None:
        self._respond("POST")

    def _respond(self, method: str) -> None:
        try:
            status, reply = HTTPStatus.OK, self._reply(method)
        except _Refusal as refusal:
            # The body was not read: the next bytes on this connection would look like a request.
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
        tool = self._tool_of_caller()
        path = self.path.partition("?")[0]
        expected = _ROUTES.get(path)
        if expected is None:
            raise _Refusal(HTTPStatus.NOT_FOUND, f"no route {path[:80]}; there are {', '.join(_ROUTES)}")
        if method != expected:
            raise _Refusal(HTTPStatus.METHOD_NOT_ALLOWED, f"{path} takes {expected}")
        if path == "/tools":
            return [tool.metadata]
        body = self._read_body()
        if path == "/tools/list":
            return {"tools": [tool.metadata]}
        try:
            envelope = tool.execute(body.get("parameters") or {}, tool=str(body.get("tool")))
        except (InvalidParameters, UnknownTool) as error:
            raise _Refusal(HTTPStatus.BAD_REQUEST, str(error)) from None
        return envelope if path == "/execute" else {"result": envelope}

    def _tool_of_caller(self) -> MemoryTool:
        token = self.server.token
        if not token:
            # Without a token a web page could call through a browser on this machine. Its requests have an Origin, or a
            # Host that is not this machine.
            host = (self.headers.get("Host") or "").rsplit(":", 1)[0].strip("[]")
            if self.headers.get("Origin") or not is_loopback(host):
                raise _Refusal(HTTPStatus.FORBIDDEN, "without a token only programs on this machine are served")
            return self.server.tool
        header = (self.headers.get("Authorization") or "").encode(errors="surrogateescape")
        if holds_token(header, token):
            return self.server.tool
        tool = self.server.granted.tool_of(header) if self.server.granted else None
        if tool is None:
            raise _Refusal(HTTPStatus.UNAUTHORIZED, EXPECTED_HEADER)
        return tool

    def _read_body(self) -> dict[str, Any]:
        length = self.headers.get("Content-Length") or ""
        if not (length.isascii() and length.isdigit()):
            raise _Refusal(HTTPStatus.LENGTH_REQUIRED, "expected a Content-Length")
        if len(length) > 18 or int(length) > self.server.max_body_bytes:
            most = self.server.max_body_bytes
            raise _Refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"a body may have at most {most:,} bytes")
        data = self.rfile.read(int(length))
        if len(data) < int(length):
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"the body ended after {len(data):,} of {int(length):,} bytes")
        try:
            body = json.loads(data or b"{}")
        except (ValueError, RecursionError):
            raise _Refusal(HTTPStatus.BAD_REQUEST, "expected a body of JSON") from None
        if not isinstance(body, dict):
            raise _Refusal(HTTPStatus.BAD_REQUEST, f"expected a JSON object, found {type(body).__name__}")
        return body

    def log_message(self, format: str, *arguments: Any) -> None:
        """Log nothing: requests contain what agents remember."""
