"""Serve the page of one run. The server only reads, and only this one file."""

from __future__ import annotations

import ipaddress
import json
import socket
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from rlm.errors import RLMError
from rlm.view.feed import RowFeed
from rlm.view.page import policy, served_page


class ViewServer(ThreadingHTTPServer):
    """`GET /` the page; `/state?first=N&generation=G`, `/turn?number=N`, `/prompt?number=N` its data, as JSON."""

    daemon_threads = True

    def __init__(self, feed: RowFeed, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0 is any free one. Raises OSError where the address cannot be had."""
        self.feed = feed
        self.loopback = is_loopback(host)
        if ":" in host:
            self.address_family = socket.AF_INET6
        super().__init__((host, port), _ViewHandler)
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.server_port}/"
        """Where the page is."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that goes away in the middle of a reply is no error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches this address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class _ViewHandler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_GET(self) -> None:
        url = urlsplit(f"http://here/{self.path.lstrip('/')}")
        query = {name: values[-1] for name, values in parse_qs(url.query).items()}
        # DNS rebinding: a page of another site may reach this port under a name of its own; it must not read.
        if self.server.loopback and not is_loopback(self._host()):
            self._json(403, {"error": "this server answers to localhost alone"})
            return
        try:
            match url.path:
                case "/":
                    self._send(200, "text/html; charset=utf-8", served_page().encode())
                case "/state":
                    known = query.get("generation")
                    first = _count(query.get("first", "0"))
                    self._json(200, self.server.feed.state(first, None if known is None else _count(known)))
                case "/turn":
                    self._json(200, self.server.feed.turn(_count(query.get("number", ""))))
                case "/prompt":
                    self._json(200, self.server.feed.prompt(_count(query.get("number", ""))))
                case _:
                    self._json(404, {"error": "there is nothing here"})
        except _InvalidNumber as exc:
            self._json(400, {"error": str(exc)})
        except (RLMError, OSError) as exc:
            self._json(500, {"error": str(exc)})

    def log_message(self, format: str, *args: Any) -> None:
        """Quiet: the terminal belongs to the command."""

    def version_string(self) -> str:
        return "rlm"

    def _host(self) -> str:
        try:
            return urlsplit(f"//{self.headers.get('host', '')}").hostname or ""
        except ValueError:
            return ""

    def _json(self, status: int, value: Any) -> None:
        body = json.dumps(value, separators=(",", ":"), allow_nan=False).encode()
        self._send(status, "application/json", body)

    def _send(self, status: int, kind: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-security-policy", policy(served=True))
        self.send_header("x-content-type-options", "nosniff")
        self.send_header("referrer-policy", "no-referrer")
        self.send_header("cross-origin-resource-policy", "same-origin")
        self.send_header("cross-origin-opener-policy", "same-origin")
        self.send_header("cache-control", "no-store")
        self.end_headers()
        self.wfile.write(body)


class _InvalidNumber(ValueError):
    """A query without a valid number."""


def _count(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) < 16):
        raise _InvalidNumber("a whole number is needed")
    return int(value)
