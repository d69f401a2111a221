"""Send a request on an HTTP/1.1 connection, and read the head and the body of the response, under a timer.

A body ends after its length, its last chunk, or when the server closes. One thread at a time may use a connection.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from functools import lru_cache

from monocontext.records import NamedTuple, dataclass, field
from monocontext.stores.http.timer import ExchangeTimer

Peer = tuple[str, int]  # an IP address and a port
DEFAULT_PORTS = {"http": 80, "https": 443}
_HEAD_READ_BYTES = 2 << 10
"""The most bytes of one read of a head. Heads have 400 to 700; bytes of a body that arrive with a head are copied."""
_BODY_READ_BYTES = 64 << 10


class Connection:
    """An open connection. Its owner closes it after any error."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, address: Peer, opened: float) -> None:
        self.endpoint = endpoint
        self.address = address
        self.opened = opened
        """The time at which the connection was opened, in seconds on the monotonic clock."""
        self.idle_since = opened
        self.exchanges = 0
        """The number of completed exchanges."""
        self.socket = sock
        self.unread = b""
        """Bytes that arrived with a head. Empty after a whole response: more bytes would begin the next response."""
        self._timer: ExchangeTimer | None = None

    def send(self, request: bytes, timer: ExchangeTimer) -> None:
        """Begin an exchange. `timer` limits how long it may take and how long the server may be silent."""
        self._timer = timer
        timeout_seconds = timer.next_timeout()
        if self.socket.gettimeout() != timeout_seconds:  # setting it is a system call, at which threads take turns
            self.socket.settimeout(timeout_seconds)
        self.socket.sendall(request)

    def read_head(self) -> ResponseHead:
        """Read the head of the response. Interim responses (1xx) are skipped. Raises `BadResponse`."""
        data, self.unread = self.unread, b""
        while True:
            if result := split_head(data):
                head, data = result
                if not 100 <= head.status < 200:
                    self.unread = data
                    return head
                continue
            piece = bytearray(_HEAD_READ_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count and data:
                raise BadResponse(f"the connection was closed after {len(data)} bytes of the response headers")
            if not count:
                raise BadResponse("the server closed the connection without a response")
            data += memoryview(piece)[:count]

    def read_into(self, view: memoryview) -> int:
        """Read some bytes of the body into the start of `view`; returns their number, 0 if the server has closed."""
        if not self.unread:
            return self._receive_into(view)
        count = min(len(self.unread), len(view))
        view[:count] = self.unread[:count]
        self.unread = self.unread[count:]
        return count

    def _receive_into(self, view: memoryview) -> int:
        timer = self._timer
        assert timer is not None
        while True:
            try:
                count = self.socket.recv_into(view)
            except TimeoutError:
                self.socket.settimeout(timer.add_silence())
            else:
                timer.add_bytes(count)
                return count

    def close(self) -> None:
        """Close the socket without a shutdown: a forked parent may be using the same connection."""
        self.socket.close()


class BodyCut(OSError):
    """The connection was closed before the end of the body."""


class Body:
    """Reads the body that follows `head` on `connection`."""

    def __init__(self, connection: Connection, head: ResponseHead) -> None:
        self._connection = connection
        self.remaining_bytes = head.body_bytes
        """The number of bytes that have not been read; `None` if the head does not give the length."""
        self._chunks = ChunkDecoder() if head.is_chunked and self.remaining_bytes is None else None
        self._decoded = memoryview(b"")
        """The part of a decoded chunk that has not been read."""
        self._keeps_alive = head.keeps_alive
        self.read_bytes = 0
        """The number of bytes that have been read."""
        self.is_accepted = False
        """Whether the sink accepted this body as the response to the request."""

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether the body was read to its end and the connection can be used for another request."""
        has_ended = (self._chunks.ended and not self._chunks.surplus) if self._chunks else self.remaining_bytes == 0
        return has_ended and self._keeps_alive and not self._connection.unread

    def read_into(self, view: memoryview) -> int:
        """Read some bytes into the start of a view that is not empty; returns their number, 0 at the end of the body.

        A body of known length fills the view or ends. `read_bytes` counts the bytes even after an error. Raises
        `BodyCut`.
        """
        if self._chunks:
            count = self._read_chunked(view)
            self.read_bytes += count
            return count
        remaining, before, count = self.remaining_bytes, self.read_bytes, 0
        with view[:remaining] as target:
            while count < len(target):
                with target[count:] as rest:
                    received = self._connection.read_into(rest)
                count += received
                self.read_bytes += received
                if not received or remaining is None:
                    break
        if remaining:
            self.remaining_bytes = remaining - count
            if not count:
                raise BodyCut(f"the connection was closed after {before:,} of {before + remaining:,} bytes")
        return count

    def read(self, most_bytes: int) -> bytes:
        """Read the whole body, or the first `most_bytes` of it and at most 64 KiB more."""
        data, view = bytearray(), memoryview(bytearray(_BODY_READ_BYTES))
        while len(data) < most_bytes and (count := self.read_into(view)):
            data += view[:count]
        return bytes(data)

    def _read_chunked(self, view: memoryview) -> int:
        chunks = self._chunks
        assert chunks is not None
        while not self._decoded and not chunks.ended:
            piece = memoryview(bytearray(_BODY_READ_BYTES))
            count = self._connection.read_into(piece)
            if not count:
                raise BodyCut(f"the connection was closed after {self.read_bytes:,} bytes of the response body")
            self._decoded = memoryview(chunks.feed(bytes(piece[:count])))
        count = min(len(self._decoded), len(view))
        view[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy. TLS passes through it by CONNECT."""

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)
    """The value of `Proxy-Authorization`."""

    def __str__(self) -> str:
        return f"the proxy {self.host}:{self.port}"


class Endpoint(NamedTuple):
    """The server at the end of a connection. Connections to equal endpoints are interchangeable."""

    scheme: str
    """`http` or `https`."""
    host: str
    port: int
    proxy: Proxy | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}"

    @property
    def host_header(self) -> str:
        """The value of the `Host` header, without the port if it is the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


# -- the syntax of HTTP/1.1, without I/O -------------------------------------------------------------------------------

MAX_HEAD_BYTES = 64 << 10
"""The largest head, ten times the limit of S3 servers: an endless head must not fill the memory."""
_MAX_CHUNK_LINE_BYTES = 4 << 10  # the longest line between chunks; they have some 10 bytes
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)  # in a year that is not a leap year
_DATE = rf"[A-Z][a-z]{{2}}, ([012]\d|3[01]) ({'|'.join(_MONTHS)}) ([12]\d{{3}}) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d) GMT"
"""The form of dates that servers send: `Sun, 06 Nov 1994 08:49:37 GMT`. The two older forms of HTTP do not match."""
_CONTROL = r"[\x00-\x08\x0a-\x1f\x7f]"
"""No header contains a control character except tab: it could hide another header, or garble a message."""
_LEAP_DAYS_BEFORE_1970 = 477  # since the year 1 of the Gregorian calendar


class BadResponse(OSError):
    """The response is not valid HTTP/1.1. The connection cannot be used again, but a retry may help."""


class ResponseHead(NamedTuple):
    """The status and headers of a response, and the length of its body."""

    status: int
    headers: Mapping[str, str]
    """Values by name in lower case. The values of a repeated name are joined by a comma."""
    body_bytes: int | None
    """The length of the body; `None` if the head does not give it."""
    is_chunked: bool
    keeps_alive: bool
    """Whether another request may follow on this connection."""


def request_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request without a body. Raises `ValueError` for a target or a header with a line break."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()], "\r\n"]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError(f"the request for {target!r} has a line break in its target or in a header")
    return text.encode("latin-1")


def split_head(data: bytes) -> tuple[ResponseHead, bytes] | None:
    """The head at the start of `data`, and the rest; `None` if the head is incomplete. Raises `BadResponse`."""
    text, end, rest = data.partition(b"\r\n\r\n")
    if end:
        return _parse_head(text.decode("latin-1")), rest
    if len(data) > MAX_HEAD_BYTES:
        raise BadResponse(f"expected response headers of at most {MAX_HEAD_BYTES:,} bytes, found more")
    return None


def _parse_head(text: str) -> ResponseHead:
    status_line, *lines = text.split("\r\n")
    version, _, rest = status_line.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise BadResponse(f"expected a status line of HTTP/1.1, found {status_line[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _parse_line(line)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
    connection = headers.get("connection", "").lower()
    keeps_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    status, content_length = int(code), headers.get("content-length")
    body_bytes = 0 if status in (204, 304) else None  # these have no body
    if body_bytes is None and content_length is not None and not is_chunked:
        # With two lengths, a proxy and a client could disagree on the end of a response, and so on the next response.
        length, *others = {part.strip() for part in content_length.split(",")}
        if others or not (length.isascii() and length.isdigit() and len(length) < 20):
            raise BadResponse(f"expected one Content-Length, found {content_length[:80]!r}")
        body_bytes = int(length)
    return ResponseHead(status, headers, body_bytes, is_chunked, keeps_alive)


@lru_cache(64)
def _parse_line(line: str) -> tuple[str, str]:
    """The name of a header in lower case, and its value. Cached, since responses of a server repeat most lines."""
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip() or re.search(_CONTROL, line):
        raise BadResponse(f"expected a header, found {line[:80]!r}")
    return name.lower(), value.strip()


def parse_http_date(date: str | None) -> float:
    """An HTTP date in seconds since 1970; 0 for a missing or invalid date."""
    if not date:
        return 0.0
    if match := re.fullmatch(_DATE, date):
        # By hand: `datetime` takes 1 ms to import, which each process would pay for its first object.
        month = _MONTHS.index(match[2])
        day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
        last_year = year if month > 1 else year - 1  # the last one that may have had its leap day
        leap_days = last_year // 4 - last_year // 100 + last_year // 400 - _LEAP_DAYS_BEFORE_1970
        days = (year - 1970) * 365 + leap_days + _DAYS_BEFORE_MONTH[month] + day - 1
        return days * 86_400.0 + hour * 3600 + minute * 60 + second
    from email.utils import parsedate_to_datetime  # 8 ms that dates of the usual form need not pay

    try:
        return parsedate_to_datetime(date).timestamp()
    except (ValueError, OverflowError):
        return 0.0


class ChunkDecoder:
    """Decodes a chunked body, which may arrive in pieces of any size."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the last chunk and the trailers have been read."""
        self.surplus = b""
        """Bytes after the end of the body."""
        self._line = bytearray()
        """The start of a line whose end has not arrived."""
        self._chunk_bytes = 0
        """The number of bytes of the chunk that have not arrived."""
        self._expecting = "size"
        """What comes next: `size`, `data`, `end of data` (an empty line), or `trailer`."""

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes; returns the bytes of the body in them. Raises `BadResponse`."""
        pieces, offset = [], 0
        while offset < len(data) and not self.ended:
            if self._expecting == "data":
                piece = data[offset : offset + self._chunk_bytes]
                pieces.append(piece)
                offset += len(piece)
                self._chunk_bytes -= len(piece)
                self._expecting = "data" if self._chunk_bytes else "end of data"
                continue
            stop = data.find(b"\n", offset) + 1  # 0 if the line does not end here
            self._line += data[offset : stop or len(data)]
            offset = stop or len(data)
            if len(self._line) > _MAX_CHUNK_LINE_BYTES:
                line = f"expected the {self._expecting} of a chunk in a line of at most {_MAX_CHUNK_LINE_BYTES:,} bytes"
                raise BadResponse(f"{line}, found a longer one")
            if stop:
                self._read_line(bytes(self._line).rstrip(b"\r\n"))
                self._line.clear()
        self.surplus += data[offset:]
        return b"".join(pieces)

    def _read_line(self, line: bytes) -> None:
        if self._expecting == "size":
            digits = line.partition(b";")[0].strip()
            # int() also takes signs, underscores and spaces.
            if not 0 < len(digits) <= 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise BadResponse(f"expected the size of a chunk, found {line[:40]!r}")
            self._chunk_bytes = int(digits, 16)
            self._expecting = "data" if self._chunk_bytes else "trailer"
        elif self._expecting == "end of data":
            if line:
                raise BadResponse(f"expected the end of a chunk, found {line[:40]!r}")
            self._expecting = "size"
        else:
            self.ended = not line
