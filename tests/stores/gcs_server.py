"""The stand-in of S3 as Google Cloud Storage: its XML API is that of S3, but for generations and their conditions.

Google's own test bench is in no registry, and the emulator on PyPI sends no ETag, which obstore refuses. So this one is
written after the documentation of the XML API (cloud.google.com/storage/docs/xml-api), and proves less than a real one.
"""

from __future__ import annotations

import itertools
import re
import threading
from dataclasses import replace
from urllib.parse import unquote
from xml.sax.saxutils import escape

from monocontext.testing import S3StandIn
from monocontext.testing.bucket import Bucket, HttpRequest
from monocontext.testing.http_faults import HttpReply


class _Generations(Bucket):
    """Numbers the versions that have ETags, and takes conditions by number."""

    def __init__(self, bucket: Bucket) -> None:
        super().__init__(bucket.name, bucket.store)
        self._numbers = itertools.count(1_700_000_000_000_000)
        self._of_etag: dict[str, str] = {}
        self._numbering = threading.Lock()

    def answer(self, request: HttpRequest) -> HttpReply:
        headers = dict(request.headers)
        generation = headers.pop("x-goog-if-generation-match", None)
        if generation == "0":
            headers["if-none-match"] = "*"
        elif generation is not None:
            headers["if-match"] = {number: etag for etag, number in self._of_etag.items()}.get(generation, "none")
        reply = super().answer(replace(request, headers=headers))
        if reply.body.startswith(b"<?xml") and b"<ListBucketResult>" in reply.body:  # names come as they are there
            names = re.sub(r"(?<=<Key>).*?(?=</Key>)", lambda name: escape(unquote(name[0])), reply.body.decode())
            return replace(reply, body=names.encode())
        if etag := reply.headers.get("ETag"):
            with self._numbering:
                number = self._of_etag.setdefault(etag, str(next(self._numbers)))
            return replace(reply, headers={**reply.headers, "x-goog-generation": number})
        return reply


class GcsStandIn(S3StandIn):
    """`gs://bucket/...`, with the faults of the stand-in."""

    def __init__(self, **given: object) -> None:
        super().__init__(**given)  # type: ignore[arg-type]
        self._bucket = _Generations(self._bucket)

    def url(self, prefix: str = "") -> str:
        return f"gs://{self.bucket}/{prefix}"
