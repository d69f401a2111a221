"""Wake a watcher by HTTP: a bucket, queue or hook POSTs an event, whose body is ignored."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self

from monocontext.memory.access import EXPECTED_HEADER, choose_token, holds_token
from monocontext.page.loopback import server_url


class WebhookListener:
    """Listens while the `with` block runs, and sets `wake` at each POST with the token."""

    def __init__(self, host: str, port: int, wake: threading.Event, token: str | None = None) -> None:
        """Bind to an address; port 0 takes a free port.

        Raises `AccessDenied` for an invalid token, and `OSError` if the port is taken.
        """
        self.token = choose_token(token, host)
        token_expected = self.token

        class Handler(BaseHTTPRequestHandler):
            timeout = 10

            def do_POST(self) -> None:
                given = self.headers.get("authorization", "").encode("latin-1", "replace")
                if token_expected and not holds_token(given, token_expected):
                    self.send_error(401, EXPECTED_HEADER)
                    return
                wake.set()
                self.send_response(204)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None:
                """Log nothing: the watcher reports the outcome."""

        self._server = ThreadingHTTPServer((host, port), Handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, name="rlm-webhook", daemon=True)
        self.url = server_url(host, self._server.server_port)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
