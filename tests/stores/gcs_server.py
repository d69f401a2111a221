"""A small server that plays the XML API of Google Cloud Storage: generations, ETags, ranges, conditions, lists.

Google's own test bench is in no registry, and the emulator on PyPI sends no ETag, which obstore refuses. So this one is
written after the documentation of the XML API (cloud.google.com/storage/docs/xml-api), and proves less than a real one.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit
from xml.sax.saxutils import escape

PAGE = 1000


class _Objects:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.generations = itertools.count(1_700_000_000_000_000)
        self.found: dict[str, tuple[bytes, str, float]] = {}
        self.parts: dict[str, dict[int, bytes]] = {}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    objects: _Objects

    def do_GET(self) -> None:
        key, query = self._target()
        if not key:
            self._list(query)
            return
        with self.objects.lock:
            found = self.objects.found.get(key)
        if found is None:
            self._answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
            return
        data, generation, written = found
        headers = {**_version(data, generation), "Last-Modified": formatdate(written, usegmt=True)}
        bounds = self.headers.get("Range")
        if bounds is None:
            self._answer(200, data, headers)
            return
        first, _, last = bounds.removeprefix("bytes=").partition("-")
        start, stop = int(first), min(int(last) + 1 if last else len(data), len(data))
        if start >= len(data):
            self._answer(416, b"", {"Content-Range": f"bytes */{len(data)}"})
            return
        headers["Content-Range"] = f"bytes {start}-{stop - 1}/{len(data)}"
        self._answer(206, data[start:stop], headers)

    do_HEAD = do_GET

    def do_PUT(self) -> None:
        key, query = self._target()
        data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        objects = self.objects
        if "partNumber" in query:
            objects.parts[query["uploadId"][0]][int(query["partNumber"][0])] = data
            self._answer(200, b"", {"ETag": f'"{hashlib.md5(data).hexdigest()}"'})
            return
        with objects.lock:
            expected = self.headers.get("x-goog-if-generation-match")
            there = objects.found.get(key)
            if expected is not None and expected != (there[1] if there else "0"):
                self._answer(412, b"<Error><Code>PreconditionFailed</Code></Error>")
                return
            objects.found[key] = data, str(next(objects.generations)), time.time()
            generation = objects.found[key][1]
        self._answer(200, b"", _version(data, generation))

    def do_POST(self) -> None:
        key, query = self._target()
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        objects = self.objects
        if "uploads" in query:
            upload = str(next(objects.generations))
            objects.parts[upload] = {}
            text = f"<InitiateMultipartUploadResult><UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            self._answer(200, text.encode())
            return
        parts = objects.parts.pop(query["uploadId"][0])
        data, generation = b"".join(parts[i] for i in sorted(parts)), str(next(objects.generations))
        with objects.lock:
            objects.found[key] = data, generation, time.time()
        etag = _version(data, generation)["ETag"]
        text = f"<CompleteMultipartUploadResult><ETag>{escape(etag)}</ETag></CompleteMultipartUploadResult>"
        self._answer(200, text.encode(), _version(data, generation))

    def do_DELETE(self) -> None:
        key, _ = self._target()
        with self.objects.lock:
            gone = self.objects.found.pop(key, None)
        self._answer(204 if gone else 404, b"")

    def _list(self, query: dict[str, list[str]]) -> None:
        prefix, after = query.get("prefix", [""])[0], query.get("continuation-token", [""])[0]
        with self.objects.lock:
            rows = sorted((k, v) for k, v in self.objects.found.items() if k.startswith(prefix) and k > after)
        page, text = rows[:PAGE], "<ListBucketResult>"
        for key, (data, generation, written) in page:
            etag = escape(_version(data, generation)["ETag"])
            at = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(written))
            text += (
                f"<Contents><Key>{escape(key)}</Key><Size>{len(data)}</Size><ETag>{etag}</ETag>"
                f"<Generation>{generation}</Generation><LastModified>{at}</LastModified></Contents>"
            )
        if len(rows) > PAGE:
            text += f"<NextContinuationToken>{escape(page[-1][0])}</NextContinuationToken>"
        self._answer(200, (text + "</ListBucketResult>").encode())

    def _target(self) -> tuple[str, dict[str, list[str]]]:
        parts = urlsplit(self.path)
        return unquote(parts.path).lstrip("/").partition("/")[2], parse_qs(parts.query, keep_blank_values=True)

    def _answer(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def _version(data: bytes, generation: str) -> dict[str, str]:
    return {"ETag": f'"{hashlib.md5(data).hexdigest()}"', "x-goog-generation": generation}


@contextmanager
def gcs_server() -> Iterator[str]:
    """Gives the endpoint; every name is a bucket."""
    handler = type("Handler", (_Handler,), {"objects": _Objects()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
