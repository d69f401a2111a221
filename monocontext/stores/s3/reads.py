"""Read an object by our own transport or by boto3, with the same results and the same errors.

Invariants, also after retries:

- all bytes are of one version: each response has the ETag that the caller names, or else that of the first response
- a body is received only after status, Content-Range, length and ETag of its response agree with the request
- after a fault our transport requests only the bytes that are missing, except for a body of unknown length, which
  begins again; boto3 reads the whole range again
"""

from __future__ import annotations

import re
import threading
import time
from io import BytesIO
from typing import Any

from monocontext.errors import ContextChanged, DamagedData, StoreFailure
from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores import log
from monocontext.stores.http.client import Client
from monocontext.stores.http.connection import Body, ResponseHead, parse_http_date
from monocontext.stores.http.error_response import ErrorResponse, is_throttling
from monocontext.stores.protocol import Blob, check_end, check_size, check_version, one_line, uniform
from monocontext.stores.s3.errors import error_for_response, is_cut

_BODY_ATTEMPTS = 4
"""The most reads of a body by boto3. botocore itself repeats only requests that fail before the body begins."""
_PAUSE_SECONDS = 0.05  # the longest pause is twice as long after the first broken body, and doubles with each
_PIECE_BYTES = 64 << 10
_NEEDS_RETRY = "needs-retry.s3.GetObject"
_THROTTLE_HOOK = "monocontext-refusals"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")  # `bytes 0-99/1000`, but not `bytes */1000`


class ByteSpan(NamedTuple):
    """A range of an object, in bytes."""

    start: int
    length: int  # at least 1

    @property
    def range_header(self) -> str:
        return f"bytes={self.start}-{self.start + self.length - 1}"


@dataclass(frozen=True, slots=True)
class ReadRequest:
    """A read of one object: which bytes, and of which version."""

    url: str
    """The URL of the object, for error messages."""
    span: ByteSpan | None = None
    """The bytes to read; `None` for the whole object."""
    etag: str | None = None
    """The version to read; `None` for the newest one."""
    most_bytes: int | None = None
    """The largest whole object to read: a larger one raises `DamagedData`. `None` for no limit."""


def read_by_transport(client: Client, key: str, request: ReadRequest) -> Blob:
    """Read an object by our transport (1 GET, and 1 for the rest after each fault)."""
    download = Download(request)
    try:
        client.get(key, download, request.span.length if request.span else 0)
    except ErrorResponse as response:
        error = error_for_response(response, request.url, download.etag)
        if isinstance(error, StoreFailure):
            error.refusals = download.refusals
        raise error from response
    return download.blob()


def read_by_boto3(client: Any, target: dict[str, str], request: ReadRequest, throttles: ThrottleCounter) -> Blob:
    """Read an object by boto3 (1 GET, and 1 for the whole span after each body that breaks off).

    `target` is the bucket and the key, as boto3 names them; `throttles` counts the responses to `client`.
    """
    arguments = dict(target)
    if request.span is not None:
        arguments["Range"] = request.span.range_header
    if request.etag is not None:
        arguments["IfMatch"] = f'"{request.etag}"'
    throttles.take()  # forget the throttling of earlier reads by this thread
    for attempt in range(1, _BODY_ATTEMPTS + 1):
        response = client.get_object(**arguments)
        try:
            return replace(_receive_from_boto3(response, request), refusals=throttles.take())
        except BaseException as error:
            # A connection whose body was not read to its end cannot be used again.
            response["Body"].close()
            if not isinstance(error, Exception) or not is_cut(error):
                raise
            if attempt == _BODY_ATTEMPTS:
                raise StoreFailure(
                    f"{request.url}: the response body broke off {attempt} times; the last error was: {one_line(error)}"
                ) from error
            log.note(log.INFO, "%s: the response body broke off; boto3 reads it again", request.url)
        time.sleep(uniform(0, _PAUSE_SECONDS * 2**attempt))
    raise AssertionError("unreachable")


def _receive_from_boto3(response: Any, request: ReadRequest) -> Blob:
    """Read the body of a response of boto3, after a check of its head. Raises `DamagedData`, `ContextChanged`."""
    url, status = request.url, response["ResponseMetadata"]["HTTPStatusCode"]
    length = response.get("ContentLength")
    object_bytes = check_response(url, request.span, status, response.get("ContentRange"), length)
    if request.span is None:
        if length is None:
            raise DamagedData(f"{url}: the response does not state its length")
        check_size(url, request.most_bytes, length)
    etag = bare_etag(response.get("ETag"), url)
    check_version(url, request.etag, etag)  # some servers ignore If-Match
    data = response["Body"].read()
    expected = request.span.length if request.span else length
    if len(data) != expected:
        raise DamagedData(f"{url}: expected {expected:,} bytes, found {len(data):,}")
    return Blob(
        data,
        etag,
        len(data) if object_bytes is None else object_bytes,
        modified_seconds=response["LastModified"].timestamp() if response.get("LastModified") else 0.0,
        now_seconds=server_clock_seconds(response),
    )


class ThrottleCounter(threading.local):
    """Counts the throttling responses to boto3, by thread. Only a hook sees them: botocore retries by itself."""

    _count = 0

    def register(self, client: Any) -> None:
        """Count the responses that `client` gets from now on; the client behaves as before. Idempotent."""
        events = getattr(getattr(client, "meta", None), "events", None)
        if events is not None:
            events.register(_NEEDS_RETRY, self._count_response, unique_id=_THROTTLE_HOOK)

    def take(self) -> int:
        """The number of throttling responses in this thread since its last call of this method."""
        count, self._count = self._count, 0
        return count

    def _count_response(self, response: Any = None, **_: Any) -> None:
        """Handle the event after a response (`None` if none arrived). Returning `None` leaves the retry to botocore."""
        if response is None:
            return
        http, parsed = response
        code = str(parsed.get("Error", {}).get("Code", ""))
        if is_throttling(http.status_code, code):
            self._count += 1


class Download:
    """The `Sink` of a GET: it receives `span` of an object, or the whole object.

    The bytes are written through a view into a `BytesIO`, which returns them as `bytes` without a copy. A `bytearray`
    would have to be copied, which takes 1 ms per MiB.
    """

    def __init__(self, request: ReadRequest) -> None:
        self._url, self._span, self._most_bytes = request.url, request.span, request.most_bytes
        self.etag = etag = request.etag
        """The version that is read; `None` while it is unknown."""
        if etag is not None and not (etag.isascii() and etag.isprintable()):
            raise ContextChanged(f"{self._url}: the recorded ETag {etag!r} is not valid, so its version cannot be read")
        self.refusals = 0
        """Throttling responses, such as 503; the client counts them."""
        self._total_bytes: int | None = None
        """The length of the whole object; `None` while it is unknown."""
        self._memory = BytesIO()
        self._length: int | None = None
        """The size of `_memory`; `None` before the first response, and for a whole body of unknown length."""
        self._received_bytes = 0
        self._modified_seconds = self._now_seconds = 0.0  # of the response for a whole object

    def headers(self) -> dict[str, str]:
        headers = {}
        if span := self._missing_span():
            headers["range"] = span.range_header
        if self.etag is not None:
            headers["if-match"] = f'"{self.etag}"'
        return headers

    def receive(self, head: ResponseHead, body: Body) -> None:
        self._check_head(head)
        body.is_accepted = True
        if self._length is None:
            self._receive_unknown_length(body)
            return
        while self._received_bytes < self._length and self._receive_some(body):
            pass
        if self._received_bytes < self._length:
            raise DamagedData(f"{self._url}: expected {self._length:,} bytes, found {self._received_bytes:,}")
        if body.remaining_bytes != 0 and body.read_into(memoryview(bytearray(1))):
            raise DamagedData(f"{self._url}: expected {self._length:,} bytes, found more")

    def blob(self) -> Blob:
        """The downloaded bytes, after the last `receive`."""
        assert self.etag is not None
        assert self._total_bytes is not None
        return Blob(
            self._memory.getvalue(), self.etag, self._total_bytes, refusals=self.refusals,
            modified_seconds=self._modified_seconds, now_seconds=self._now_seconds,
        )  # fmt: skip

    def _missing_span(self) -> ByteSpan | None:
        """The span that is still missing; `None` for the whole object."""
        received = self._received_bytes
        if self._span is not None:
            return ByteSpan(self._span.start + received, self._span.length - received)
        if received and self._total_bytes is not None:
            return ByteSpan(received, self._total_bytes - received)
        return None

    def _check_head(self, head: ResponseHead) -> None:
        """Check that a head answers the request, and make room for the body."""
        span = self._missing_span()
        total = check_response(self._url, span, head.status, head.headers.get("content-range"), head.body_bytes)
        etag = bare_etag(head.headers.get("etag"), self._url)
        if self.etag is not None:  # some servers ignore If-Match
            check_version(self._url, self.etag, etag)
        if self._total_bytes not in (None, total):
            raise DamagedData(f"{self._url}: expected {self._total_bytes:,} bytes in all, found {total}")
        if span is None and total is None:
            if not head.is_chunked:
                raise DamagedData(f"{self._url}: the response does not state its length")
            if (encoding := head.headers.get("content-encoding", "identity")) not in ("identity", "aws-chunked"):
                raise DamagedData(f"{self._url}: a proxy compressed the response ({encoding}): turn compression off")
        if self._span is None:
            check_size(self._url, self._most_bytes, total)
            self._modified_seconds = parse_http_date(head.headers.get("last-modified"))
            self._now_seconds = parse_http_date(head.headers.get("date"))
        self.etag, self._total_bytes = etag, total
        if self._length is None:
            self._length = self._span.length if self._span else total
            self._memory, self._received_bytes = BytesIO(bytes(self._length or 0)), 0

    def _receive_some(self, body: Body) -> int:
        """Receive into the empty part of the memory; returns the number of bytes."""
        before = body.read_bytes
        # The views are released even after an exception. Otherwise its traceback would keep them alive, as cyclic
        # garbage with their `BytesIO`, on which the garbage collector of Python 3.11 and 3.12 may crash.
        with self._memory.getbuffer() as whole, whole[self._received_bytes :] as free:
            try:
                return body.read_into(free)
            finally:  # the bytes before an error have arrived
                self._received_bytes += body.read_bytes - before

    def _receive_unknown_length(self, body: Body) -> None:
        piece = memoryview(bytearray(_PIECE_BYTES))
        while count := body.read_into(piece):
            self._memory.write(piece[:count])
            self._received_bytes += count
            check_size(self._url, self._most_bytes, self._received_bytes)
        self._total_bytes = self._received_bytes


def check_response(
    url: str, span: ByteSpan | None, status: int, content_range: str | None, body_bytes: int | None
) -> int | None:
    """Raise `DamagedData` unless a response has the requested span; return the length of the whole object, which is
    `body_bytes` without a span (`None` if the response does not state its length)."""
    expected = 206 if span else 200
    if status != expected:
        raise DamagedData(f"{url}: expected HTTP {expected}, found HTTP {status}")
    if span is None:
        return body_bytes
    start, count = span
    match = _CONTENT_RANGE.fullmatch(content_range or "")
    first, last, total = map(int, match.groups()) if match else (-1, -1, -1)
    if (first, last) != (start, start + count - 1) or total <= last:
        if first == start:
            check_end(url, start, count, total)
        raise DamagedData(f"{url}: expected Content-Range bytes {start}-{start + count - 1}/*, found {content_range}")
    if body_bytes is not None and body_bytes != count:
        raise DamagedData(f"{url}: expected {count:,} bytes from byte {start:,}, found {body_bytes:,}")
    return total


def modified_seconds(response: dict[str, Any], url: str) -> float:
    """The time of the last write, in seconds since 1970. Raises `StoreFailure` if it is missing: `gc` needs it."""
    if "LastModified" not in response:
        raise StoreFailure(f"{url}: the response is damaged: it has no Last-Modified")
    return float(response["LastModified"].timestamp())


def server_clock_seconds(response: Any) -> float:
    """The time of a response to boto3 by the clock of the server, in seconds since 1970; 0 if it is missing."""
    return parse_http_date(response["ResponseMetadata"].get("HTTPHeaders", {}).get("date"))


def bare_etag(etag: Any, url: str) -> str:
    """The ETag without quotes, and without the `W/` of proxies. Raises `DamagedData` if there is none."""
    if not etag:
        raise DamagedData(f"{url}: the response has no ETag: is there a proxy, or no S3 server at this endpoint?")
    return str(etag).removeprefix("W/").strip('"')
