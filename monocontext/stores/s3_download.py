"""One object, or one range of it, while it arrives: what is asked for, what is believed, where it goes. No I/O.

What holds, however often the request is repeated:
- all bytes are of one version: the ETag that the caller names, or else the first one seen, is asked for and compared;
- a byte is received only after status, Content-Range, length and ETag of its answer agreed with what was asked;
- bytes that arrived are not asked for again.
"""

from __future__ import annotations

from monocontext.errors import ContextChanged, DamagedData
from monocontext.store import Blob
from monocontext.stores.checks import check_version
from monocontext.stores.s3_answers import Span, bare_etag, check_answer, seconds_of
from monocontext.transport import Head, Landing

_PIECE_BYTES = 64 << 10


class Download:
    """Fills itself with `span` of the object at `url`, or with the whole: a `Sink` of the transport."""

    def __init__(self, url: str, span: Span | None, etag: str | None) -> None:
        if etag is not None and not (etag.isascii() and etag.isprintable()):
            raise ContextChanged(f"{url} was replaced: expected ETag {etag!r}, which no server gives")
        self.etag = etag
        """The version that is read, as soon as it is known."""
        self.refusals = 0
        """Times that the server asked for fewer requests."""
        self._url = url
        self._span = span
        self._total_bytes: int | None = None
        self._landing: Landing | None = None
        self._modified: str | None = None
        self._date: str | None = None
        # A whole body of unknown length (chunked) comes in pieces; `_spare` is also where bytes too many show.
        self._pieces: list[bytes] = []
        self._spare = bytearray()

    @property
    def received_bytes(self) -> int:
        return self._landing.filled_bytes if self._landing else sum(map(len, self._pieces))

    def _missing(self) -> Span | None:
        """What is still to come, where it is not the whole."""
        received = self.received_bytes
        if self._span is not None:
            return self._span[0] + received, self._span[1] - received
        if received and self._total_bytes is not None:
            return received, self._total_bytes - received
        return None

    def wanted(self) -> dict[str, str]:
        headers = {}
        if span := self._missing():
            headers["range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
        if self.etag is not None:
            headers["if-match"] = f'"{self.etag}"'
        return headers

    def begin(self, head: Head) -> None:
        span = self._missing()
        total = check_answer(self._url, span, head.status, head.headers.get("content-range"), head.body_bytes)
        found = bare_etag(head.headers.get("etag"), self._url)
        check_version(self._url, self.etag, found)  # some servers ignore If-Match
        if self._total_bytes not in (None, total):
            raise DamagedData(f"{self._url}: expected {self._total_bytes:,} bytes in all, found {total}")
        if span is None and total is None and not head.is_chunked:
            raise DamagedData(f"{self._url}: expected a length, found an answer without one")
        self.etag, self._total_bytes = found, total
        if self._span is None:
            self._modified, self._date = head.headers.get("last-modified"), head.headers.get("date")
        self._pieces.clear()
        length = self._span[1] if self._span else total
        if self._landing is None and length is not None:
            self._landing = Landing(length)

    def place(self) -> memoryview:
        if self._landing is not None and not self._landing.is_full:
            return self._landing.rest()
        if not self._spare:
            self._spare = bytearray(1 if self._landing else _PIECE_BYTES)
        return memoryview(self._spare)

    def advance(self, count: int) -> None:
        if self._landing is None:
            self._pieces.append(bytes(memoryview(self._spare)[:count]))
        elif self._landing.is_full:
            raise DamagedData(f"{self._url}: expected {self.received_bytes:,} bytes, found more")
        else:
            self._landing.filled_bytes += count

    def refused(self) -> None:
        self.refusals += 1

    def end(self) -> None:
        if self._landing is None:
            self._total_bytes = self.received_bytes
        elif not self._landing.is_full:
            total = self.received_bytes + self._landing.missing_bytes
            raise DamagedData(f"{self._url}: expected {total:,} bytes, found {self.received_bytes:,}")

    def blob(self) -> Blob:
        """What arrived, once it has ended."""
        assert self.etag is not None
        assert self._total_bytes is not None
        return Blob(
            self._landing.take() if self._landing else b"".join(self._pieces),
            self.etag,
            self._total_bytes,
            refusals=self.refusals,
            modified_seconds=seconds_of(self._modified),
            now_seconds=seconds_of(self._date),
        )
