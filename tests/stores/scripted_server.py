"""An HTTP server on 127.0.0.1 that answers from a script: what no well-behaved S3 would say."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; the last of a script is given again and again."""

    status: int = 206
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    cut_after: int | None = None
    """Close the connection after so many bytes of the body."""


@dataclass(slots=True)
class Script:
    """What to answer, and what was asked."""

    answers: list[Answer]
    requests: list[dict[str, str]] = field(default_factory=list)
    """Headers of each request, names in lower case, with `method` and `path`."""
    endpoint: str = ""


@contextmanager
def scripted_server(*answers: Answer) -> Iterator[Script]:
    """Serve the answers in order, one for each request."""
    script, lock = Script(list(answers)), threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            self.rfile.read(int(self.headers.get("content-length", 0)))
            with lock:
                asked = {name.lower(): value for name, value in self.headers.items()}
                script.requests.append(asked | {"method": self.command, "path": self.path})
                answer = script.answers[min(len(script.requests), len(script.answers)) - 1]
            self.send_response(answer.status)
            for name, value in ({"Content-Length": str(len(answer.body)), "ETag": '"e1"'} | answer.headers).items():
                if value:
                    self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(answer.body[: answer.cut_after])
            self.close_connection = answer.cut_after is not None

        do_GET = do_PUT = do_HEAD = do_DELETE = do_POST = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    script.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield script
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
