"""Track one download: request the missing bytes, check each response, gather the bytes. No I/O.

Invariants, also over retries:
- all bytes are of one version: the ETag that the caller names, or else the first one seen, is requested and compared;
- a byte is received only after status, Content-Range, length and ETag of its response agreed with the request;
- bytes that arrived are not requested again.
"""

from __future__ import annotations

from io import BytesIO

from monocontext.errors import ContextChanged, DamagedData
from monocontext.stores.checks import check_size, check_version
from monocontext.stores.http.connection import Body
from monocontext.stores.http.http11 import ResponseHead
from monocontext.stores.protocol import Blob
from monocontext.stores.s3.headers import Span, bare_etag, check_response, seconds_of

_PIECE_BYTES = 64 << 10


class ReceiveBuffer:
    """Room for exactly `length` bytes: filled through a view, then `bytes` without a copy.

    `BytesIO` gives out its own buffer, first as a view to write to, then as a `bytes` object. A `bytearray` would have
    to be copied to become `bytes`: 1 ms for a MiB, most of it page faults on the second buffer.
    """

    def __init__(self, length: int) -> None:
        self._memory = BytesIO(bytes(length))
        self._length = length
        self.filled_bytes = 0

    @property
    def is_full(self) -> bool:
        return self.filled_bytes == self._length

    @property
    def missing_bytes(self) -> int:
        return self._length - self.filled_bytes

    def free_view(self) -> memoryview:
        """A view of the part that is still empty. Use it in a `with` statement, so that it is always released.

        A view that an exception's frames keep alive becomes cyclic garbage together with its `BytesIO`, and the
        collector of Python 3.11 and 3.12 crashes when it takes these two apart in the wrong order (3.13 complains).
        """
        with self._memory.getbuffer() as whole:
            return whole[self.filled_bytes :]

    def take(self) -> bytes:
        """The received bytes."""
        return self._memory.getvalue()


class Download:
    """A `Sink` that takes `span` of the object at `url`, or the whole object."""

    def __init__(self, url: str, span: Span | None, etag: str | None, most_bytes: int | None = None) -> None:
        if etag is not None and not (etag.isascii() and etag.isprintable()):
            raise ContextChanged(f"{url} was replaced: expected ETag {etag!r}, which no server gives")
        self.etag = etag
        """The version that is read, once it is known."""
        self.refusals = 0
        """Number of responses that asked for fewer requests."""
        self._url = url
        self._span = span
        self._most_bytes = most_bytes
        self._total_bytes: int | None = None
        self._buffer: ReceiveBuffer | None = None
        self._modified: str | None = None
        self._date: str | None = None
        # A whole body of unknown length (chunked) comes in pieces; `_spare` also takes a byte too many.
        self._pieces: list[bytes] = []
        self._spare = bytearray()

    @property
    def received_bytes(self) -> int:
        return self._buffer.filled_bytes if self._buffer else sum(map(len, self._pieces))

    def _missing(self) -> Span | None:
        """The range that is still missing; `None`: the whole object."""
        received = self.received_bytes
        if self._span is not None:
            return self._span[0] + received, self._span[1] - received
        if received and self._total_bytes is not None:
            return received, self._total_bytes - received
        return None

    def headers(self) -> dict[str, str]:
        headers = {}
        if span := self._missing():
            headers["range"] = f"bytes={span[0]}-{span[0] + span[1] - 1}"
        if self.etag is not None:
            headers["if-match"] = f'"{self.etag}"'
        return headers

    def receive(self, head: ResponseHead, body: Body) -> None:
        self._check(head)
        body.is_accepted = True
        while not body.is_over:
            before = body.read_bytes
            with self._free_view() as view:
                try:
                    body.read_into(view)
                finally:  # what came before an error is there
                    count = body.read_bytes - before
                    if count:
                        self._advance(count)
            if not count:
                break
        self._check_end()

    def _check(self, head: ResponseHead) -> None:
        span = self._missing()
        total = check_response(self._url, span, head.status, head.headers.get("content-range"), head.body_bytes)
        found = bare_etag(head.headers.get("etag"), self._url)
        check_version(self._url, self.etag, found)  # some servers ignore If-Match
        if self._total_bytes not in (None, total):
            raise DamagedData(f"{self._url}: expected {self._total_bytes:,} bytes in all, found {total}")
        if span is None and total is None and not head.is_chunked:
            raise DamagedData(f"{self._url}: expected a length, found an answer without one")
        if self._span is None:
            check_size(self._url, self._most_bytes, total)
        self.etag, self._total_bytes = found, total
        if self._span is None:
            self._modified, self._date = head.headers.get("last-modified"), head.headers.get("date")
        self._pieces.clear()
        length = self._span[1] if self._span else total
        if self._buffer is None and length is not None:
            self._buffer = ReceiveBuffer(length)

    def _free_view(self) -> memoryview:
        if self._buffer is not None and not self._buffer.is_full:
            return self._buffer.free_view()
        if not self._spare:
            self._spare = bytearray(1 if self._buffer else _PIECE_BYTES)
        return memoryview(self._spare)

    def _advance(self, count: int) -> None:
        if self._buffer is None:
            self._pieces.append(bytes(memoryview(self._spare)[:count]))
            check_size(self._url, self._most_bytes, self.received_bytes)
        elif self._buffer.is_full:
            raise DamagedData(f"{self._url}: expected {self.received_bytes:,} bytes, found more")
        else:
            self._buffer.filled_bytes += count

    def _check_end(self) -> None:
        if self._buffer is None:
            self._total_bytes = self.received_bytes
        elif not self._buffer.is_full:
            total = self.received_bytes + self._buffer.missing_bytes
            raise DamagedData(f"{self._url}: expected {total:,} bytes, found {self.received_bytes:,}")

    def count_refusal(self) -> None:
        self.refusals += 1

    def blob(self) -> Blob:
        """The downloaded bytes, after `end`."""
        assert self.etag is not None
        assert self._total_bytes is not None
        return Blob(
            self._buffer.take() if self._buffer else b"".join(self._pieces),
            self.etag,
            self._total_bytes,
            refusals=self.refusals,
            modified_seconds=seconds_of(self._modified),
            now_seconds=seconds_of(self._date),
        )
