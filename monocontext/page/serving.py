"""Serve a page and its data over HTTP, read-only, and only at registered paths."""

from __future__ import annotations

import json
import socket
import sys
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_address
from typing import Any
from urllib.parse import parse_qs, urlsplit

from monocontext.page.assembly import WebPage


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a host."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def server_url(host: str, port: int) -> str:
    """The URL of a server, without a path; an IPv6 address is put in brackets."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class InvalidRequest(ValueError):
    """A request from the page is invalid. The page shows the message to the user."""


class Parameters:
    """The parameters after the `?` of a request."""

    def __init__(self, encoded: str) -> None:
        self._values = {name: values[-1] for name, values in parse_qs(encoded).items()}  # of a repeated name, the last

    def text(self, name: str) -> str:
        """A parameter as it is; empty if it is missing."""
        return self._values.get(name, "")

    def number(self, name: str) -> int:
        """A parameter as an int of at least 0. Raises `InvalidRequest` for anything else."""
        value = self.text(name)
        if not (value.isascii() and value.isdigit() and len(value) < 16):
            raise InvalidRequest(f"{name} must be a whole number of at most 15 digits, not {value[:20]!r}")
        return int(value)

    def number_or_none(self, name: str) -> int | None:
        """Like `number`, but None if the parameter is missing."""
        return self.number(name) if name in self._values else None


AnswerRequest = Callable[[Parameters], Any]  # returns the answer to a request, as a value for `json.dumps`


class PageServer(ThreadingHTTPServer):
    """Answers `GET /` with the page, and each path in `answers` with JSON."""

    daemon_threads = True

    def __init__(
        self,
        page: WebPage,
        answers: Mapping[str, AnswerRequest],
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        failures: tuple[type[Exception], ...] = (OSError,),
    ) -> None:
        """Listen on `host`, and on `port` or, for 0, a free one. Raises OSError if the address is not available.

        `failures` are the exceptions whose message the page shows; any other ends the request without an answer.
        """
        self.page, self.answers, self.failures = page, answers, failures
        self.loopback = is_loopback(host)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _Handler)
        self.url = f"{server_url(host, self.server_port)}/"  # the URL of the page

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a browser that leaves in the middle of a reply."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    """Answers the requests of one connection."""

    server: PageServer
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds in which a client must send its request

    def do_GET(self) -> None:
        url = urlsplit(f"http://here/{self.path.lstrip('/')}")
        # DNS rebinding: a page of another site may reach this port under its own host name, and must not read.
        if self.server.loopback and not is_loopback(self._host()):
            self._send_json(403, {"error": "this server answers requests to localhost only"})
            return
        if url.path == "/":
            self._send(200, "text/html; charset=utf-8", self.server.page.for_server().encode())
            return
        # A page of another site cannot read an answer, but could start a search of a bucket.
        if self.headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            self._send_json(403, {"error": "this server answers requests from its own page only"})
            return
        answer = self.server.answers.get(url.path)
        if answer is None:
            self._send_json(404, {"error": "not found"})
            return
        try:
            self._send_json(200, answer(Parameters(url.query)))
        except InvalidRequest as exc:
            self._send_json(400, {"error": str(exc)})
        except self.server.failures as exc:
            self._send_json(500, {"error": str(exc)})

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Answer a request that is not a GET, or not HTTP, and close the connection."""
        self.close_connection = True
        self._send_json(code, {"error": HTTPStatus(code).phrase})

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: the terminal belongs to the command."""

    def version_string(self) -> str:
        return "monocontext"

    def _host(self) -> str:
        """The host name that the browser asked for; empty if it sent none, or an invalid one."""
        try:
            return urlsplit(f"//{self.headers.get('host', '')}").hostname or ""
        except ValueError:
            return ""

    def _send_json(self, status: int, value: Any) -> None:
        body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        self._send(status, "application/json", body)

    def _send(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", self.server.page.policy(served=True))
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("cross-origin-resource-policy", "same-origin")
        self.send_header("cross-origin-opener-policy", "same-origin")
        self.send_header("cache-control", "no-store")
        if self.close_connection:
            self.send_header("connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
