"""A stand-in for what gives keys over HTTP: container agents, instance metadata, STS and the portal of SSO."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROLES = "/latest/meta-data/iam/security-credentials/"


def end(seconds: float = 6 * 3600) -> str:
    """A time so many seconds from now, as services write it."""
    return datetime.fromtimestamp(time.time() + seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class SourceServer:
    """Answers by path; `asked` holds method and path of each request."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.bodies: list[str] = []
        self.status = 200
        self.hangs = threading.Event()
        self.hanging: set[str] = set()
        """Beginnings of paths that get no answer until the server ends; "" for all."""
        self.lifetime_seconds = 6 * 3600.0
        self.expiring = True
        self.port = 0
        self.answers: dict[str, tuple[int, str]] = {}
        """Status and body by path, instead of those that belong there."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def answer(self, method: str, path: str) -> tuple[int, str]:
        plain = path.partition("?")[0]
        if plain in self.answers:
            return self.answers[plain]
        number = len(self.asked)
        keys: dict[str, Any] = {"AccessKeyId": f"key-{number}", "SecretAccessKey": "hidden", "Token": "token"}
        keys["Expiration"] = end(self.lifetime_seconds)
        if plain == "/container":
            return self.status, json.dumps(keys)
        if method == "PUT" and plain == "/latest/api/token":
            return 200, "imds-token"
        if plain == ROLES:
            return self.status, "a-role"
        if plain == f"{ROLES}a-role":
            return self.status, json.dumps({"Code": "Success", **keys})
        if plain == "/federation/credentials":
            milliseconds = int((time.time() + self.lifetime_seconds) * 1000)
            role = {"accessKeyId": f"key-{number}", "secretAccessKey": "hidden", "sessionToken": "token"}
            return self.status, json.dumps({"roleCredentials": {**role, "expiration": milliseconds}})
        if method == "POST" and plain == "/":
            xml = "".join(f"<{name}>{value}</{name}>" for name, value in keys.items() if name != "Token")
            inner = f"<Credentials>{xml}<SessionToken>token</SessionToken></Credentials>"
            user = "<AssumedRoleUser><Arn>arn:aws:sts::1:r/s</Arn><AssumedRoleId>i</AssumedRoleId></AssumedRoleUser>"
            name = "AssumeRoleWithWebIdentity"
            space = "https://sts.amazonaws.com/doc/2011-06-15/"
            return (
                self.status,
                f'<{name}Response xmlns="{space}"><{name}Result>{user}{inner}</{name}Result></{name}Response>',
            )
        return 404, "nothing"


@contextmanager
def source_server() -> Iterator[SourceServer]:
    """A running server."""
    found = SourceServer()

    class Handler(BaseHTTPRequestHandler):
        def handle_any(self) -> None:
            found.asked.append(f"{self.command} {self.path.partition('?')[0]}")
            found.headers.append({name.lower(): value for name, value in self.headers.items()})
            found.bodies.append(self.rfile.read(int(self.headers.get("content-length") or 0)).decode())
            if any(self.path.startswith(each) for each in found.hanging):
                found.hangs.wait(60)
                self.close_connection = True
                return
            status, body = found.answer(self.command, self.path)
            self.send_response(status)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_PUT = do_POST = handle_any

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        found.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield found
        finally:
            found.hangs.set()
            server.shutdown()
            thread.join()
