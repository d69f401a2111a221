"""An HTTP/1.1 connection: it sends a request, and reads the head and the body of the response, under a timer.

A body ends after its length, after the last chunk, or with the connection. The timer ends an exchange that is silent or
too slow, by times and speeds that are learnt from earlier exchanges. Only one thread may use a connection at a time.
"""

from __future__ import annotations

import re
import socket
from collections import deque
from collections.abc import Callable, Mapping
from functools import lru_cache

from monocontext.records import NamedTuple, dataclass, field

Address = tuple[str, int]
DEFAULT_PORTS = {"http": 80, "https": 443}
_HEAD_BYTES = 2 << 10
"""The size of a read for a head. Heads have 400 to 700 bytes; bytes of the body that come with one must be copied."""
_PIECE_BYTES = 64 << 10


class Connection:
    """An open connection. Its owner closes it after any error."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, address: Address, opened: float) -> None:
        self.endpoint = endpoint
        self.address = address
        self.opened = opened
        """The time at which it was opened, on the monotonic clock."""
        self.idle_since = opened
        self.exchanges = 0
        """The number of completed exchanges."""
        self.socket = sock
        self.ahead = b""
        """Bytes after what was read; those after a response could be mistaken for the next one."""
        self._timer: ExchangeTimer | None = None

    def send(self, request: bytes, timer: ExchangeTimer) -> None:
        """Begin an exchange. `timer` limits how long it may take and how long the server may be silent."""
        self._timer = timer
        seconds = timer.seconds()
        if self.socket.gettimeout() != seconds:  # setting it is a system call, at which threads take turns
            self.socket.settimeout(seconds)
        self.socket.sendall(request)

    def read_head(self) -> ResponseHead:
        """Read the head of the response. Interim responses (1xx) are skipped. Raises `BadReply`."""
        data, self.ahead = self.ahead, b""
        while True:
            if result := split_head(data):
                head, data = result
                if not 100 <= head.status < 200:
                    self.ahead = data
                    return head
                continue
            piece = bytearray(_HEAD_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count:
                came = f"the connection was closed after {len(data)} bytes of the response headers"
                raise BadReply(came if data else "the server sent no answer")
            data += memoryview(piece)[:count]

    def read_into(self, view: memoryview) -> int:
        """Read some bytes of the body into the start of `view`; returns their number, 0 if the server has closed."""
        if count := min(len(self.ahead), len(view)):  # they arrived with the head
            view[:count] = self.ahead[:count]
            self.ahead = self.ahead[count:]
        return count or self._receive_into(view)

    def _receive_into(self, view: memoryview) -> int:
        timer = self._timer
        assert timer is not None
        while True:
            try:
                count = self.socket.recv_into(view)
            except TimeoutError:
                self.socket.settimeout(timer.extend())
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
        self.left_bytes = head.body_bytes
        """The number of bytes that are still to come; `None` if the head does not give the length."""
        self._chunks = ChunkDecoder() if head.is_chunked and self.left_bytes is None else None
        self._decoded = memoryview(b"")
        self._keeps_alive = head.keeps_alive
        self.read_bytes = 0
        """The number of bytes of the body that arrived."""
        self.is_accepted = False
        """Whether the receiver accepted it as the answer to the request."""

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether the body was read to its end and the connection can be used for another request."""
        ended = self._chunks.ended and not self._chunks.surplus if self._chunks else self.left_bytes == 0
        return ended and self._keeps_alive and not self._connection.ahead

    def read_into(self, view: memoryview) -> int:
        """Read some bytes into the start of a view that is not empty; returns their number, 0 at the end of the body.

        A body of known length fills the view or ends. `read_bytes` counts the bytes even after an error. Raises
        `BodyCut`.
        """
        if self._chunks:
            count = self._read_chunked(view)
            self.read_bytes += count
            return count
        remaining, before, count = self.left_bytes, self.read_bytes, 0
        with view[:remaining] as part:
            while count < len(part):
                with part[count:] as rest:
                    more = self._connection.read_into(rest)
                count += more
                self.read_bytes += more
                if not more or remaining is None:
                    break
        if remaining:
            self.left_bytes = remaining - count
            if not count:
                raise BodyCut(f"the connection was closed after {before:,} of {before + remaining:,} bytes")
        return count

    def read(self, most_bytes: int) -> bytes:
        """Read the whole body, or about `most_bytes` of it."""
        data, view = bytearray(), memoryview(bytearray(_PIECE_BYTES))
        while len(data) < most_bytes and (count := self.read_into(view)):
            data += view[:count]
        return bytes(data)

    def _read_chunked(self, view: memoryview) -> int:
        chunks = self._chunks
        assert chunks is not None
        while not self._decoded and not chunks.ended:
            piece = memoryview(bytearray(_PIECE_BYTES))
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
    """The target of a connection. Connections to equal endpoints are interchangeable."""

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


# -- HTTP/1.1 ----------------------------------------------------------------------------------------------------------

MAX_HEAD_BYTES = 64 << 10
"""The largest head, ten times the limit of S3 servers: an endless head must not fill the memory."""
_MAX_LINE_BYTES = 4 << 10
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)  # in a year that is not a leap year
_DATE = rf"[A-Z][a-z]{{2}}, ([012]\d|3[01]) ({'|'.join(_MONTHS)}) ([12]\d{{3}}) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d) GMT"
_CONTROL = r"[\x00-\x08\x0a-\x1f\x7f]"
"""What no header contains: a line break or NUL could hide another header, and an escape sequence end in a message."""
_LEAP_DAYS_BEFORE_1970 = 477  # since the year 1 of the Gregorian calendar


class BadReply(OSError):
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
    """The bytes of a request without a body. Raises `ValueError` for a header with a line break."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()], "\r\n"]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError(f"the head of a request for {target!r} contains a line break")
    return text.encode("latin-1")


def split_head(data: bytes) -> tuple[ResponseHead, bytes] | None:
    """The head at the start of `data`, and the bytes after it; `None` if the head is incomplete. Raises `BadReply`."""
    text, end, rest = data.partition(b"\r\n\r\n")
    if end:
        return _parse_head(text.decode("latin-1")), rest
    if len(data) > MAX_HEAD_BYTES:
        raise BadReply(f"the response headers are longer than {MAX_HEAD_BYTES:,} bytes")
    return None


def _parse_head(text: str) -> ResponseHead:
    first, *lines = text.split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise BadReply(f"expected HTTP/1.1 and a status, found {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _parse_line(line)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
    connection = headers.get("connection", "").lower()
    keeps_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    status, announced = int(code), headers.get("content-length")
    body_bytes = 0 if status in (204, 304) else None  # these have no body
    if body_bytes is None and announced is not None and not is_chunked:
        # With two lengths, a proxy and a client could disagree on the end of a response, and so on the next response.
        length, *others = {part.strip() for part in announced.split(",")}
        if others or not (length.isascii() and length.isdigit() and len(length) < 20):
            raise BadReply(f"expected one Content-Length, found {announced[:80]!r}")
        body_bytes = int(length)
    return ResponseHead(status, headers, body_bytes, is_chunked, keeps_alive)


@lru_cache(64)
def _parse_line(line: str) -> tuple[str, str]:
    """The name of a header in lower case, and its value. Cached, since responses of a server repeat most lines."""
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip() or re.search(_CONTROL, line):
        raise BadReply(f"expected a header, found {line[:80]!r}")
    return name.lower(), value.strip()


def parse_http_date(date: str | None) -> float:
    """An HTTP date in seconds since 1970; 0 for a missing or invalid date."""
    if not date:
        return 0.0
    if match := re.fullmatch(_DATE, date):
        # By hand: `datetime` takes 1 ms to import, which each process would pay for its first object.
        month = _MONTHS.index(match[2])
        day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
        leap_years = year if month > 1 else year - 1  # those up to this one have had their leap day
        leap_days = leap_years // 4 - leap_years // 100 + leap_years // 400 - _LEAP_DAYS_BEFORE_1970
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
        self._left = 0
        self._expecting = "size"

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes; returns the bytes of the body in them. Raises `BadReply`."""
        result, offset = [], 0
        while offset < len(data) and not self.ended:
            if self._expecting == "data":
                piece = data[offset : offset + self._left]
                result.append(piece)
                offset += len(piece)
                self._left -= len(piece)
                self._expecting = "data" if self._left else "end of data"
                continue
            stop = data.find(b"\n", offset) + 1
            self._line += data[offset : stop or len(data)]
            offset = stop or len(data)
            if len(self._line) > _MAX_LINE_BYTES:
                raise BadReply(f"expected the {self._expecting} of a chunk, found over {_MAX_LINE_BYTES:,} bytes")
            if stop:
                self._read_line(bytes(self._line).rstrip(b"\r\n"))
                self._line.clear()
        self.surplus += data[offset:]
        return b"".join(result)

    def _read_line(self, line: bytes) -> None:
        if self._expecting == "size":
            digits = line.partition(b";")[0].strip()
            # int() also takes signs, underscores and spaces.
            if not 0 < len(digits) <= 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise BadReply(f"expected the size of a chunk, found {line[:40]!r}")
            self._left = int(digits, 16)
            self._expecting = "data" if self._left else "trailer"
        elif self._expecting == "end of data":
            if line:
                raise BadReply(f"expected the end of a chunk, found {line[:40]!r}")
            self._expecting = "size"
        else:
            self.ended = not line


# -- timers ------------------------------------------------------------------------------------------------------------

LEAST_SECONDS = 1.0  # the shortest timeout: four to ten times the p99 of first bytes on S3
TIMES_P99 = 4.0  # the timeout is this many times the p99 of recent first bytes
_SAMPLES = 256  # the times to the first byte that the timeouts are learned from
_RECOUNT = 32  # the p99 is determined again after this many samples
_CHANCE = 3  # the p99 is at most the third slowest sample, since one or two slow responses may be chance
SLOWEST_BYTES_PER_SECOND = 256 << 10
"""The speed below which a body fails. At this speed the largest request, of 8 MiB, ends within half of its deadline."""
SLOWEST_SHARE = 0.05  # on a slow line, a body fails only below this share of the median throughput
LEAST_SAMPLE_BYTES = 64 << 10  # smaller bodies mostly arrive with their heads, so they say nothing about throughput
_SPEEDS, _LEAST_SPEEDS = 64, 8
"""The transfers that the usual speed is learned from, and the fewest that tell it."""


class Pace:
    """Learns from earlier exchanges: the times to the first byte say how long a server may be silent before an exchange
    fails, and the speeds of bodies which speed is too slow. Threads share it without a lock.
    """

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._samples: deque[float] = deque(maxlen=_SAMPLES)
        self._seen = 0
        """The number of all samples. A race miscounts by one, which does no harm."""
        self.seconds = min(LEAST_SECONDS, longest_seconds)
        """The timeout of a first attempt."""
        self._speeds: deque[float] = deque(maxlen=_SPEEDS)

    def for_attempt(self, silences: int) -> float:
        """The timeout of an attempt after `silences` timeouts of the same request."""
        return min(self._longest, self.seconds * 2.0**silences)

    def learn(self, first_byte_seconds: float) -> None:
        """Add the time to the first byte of a response."""
        self._samples.append(first_byte_seconds)
        self._seen += 1
        if self._seen < _CHANCE:
            return
        # A slow response counts at once, or other requests in flight would fail too early.
        if self._seen % _RECOUNT == 0 or first_byte_seconds * TIMES_P99 > self.seconds:
            samples = sorted(self._samples)
            p99 = samples[min(len(samples) - _CHANCE, len(samples) * 99 // 100)]
            self.seconds = min(self._longest, max(LEAST_SECONDS, TIMES_P99 * p99))

    def learn_speed(self, count: int, seconds: float) -> None:
        """Add the speed of a body, or of a part of a slow one."""
        self._speeds.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """The speed below which a body fails, in bytes a second."""
        speeds = sorted(self._speeds)
        if len(speeds) < _LEAST_SPEEDS:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, speeds[len(speeds) // 2] * SLOWEST_SHARE)


class Stalled(TimeoutError):
    """No byte, or too few, arrived within the timeout; another connection may be faster."""


class Overdue(TimeoutError):
    """A call with all its retries exceeded its deadline."""


class ExchangeTimer:
    """The timer of one exchange: it limits the wait for the next byte, and ends an exchange that is too slow.

    Throughput is measured over periods of half of the timeout. The first period cannot fail, since a new connection
    starts with 14 KB in flight and doubles that with each round trip.
    """

    def __init__(
        self,
        seconds: float,
        longest_seconds: float,
        until: float,
        clock: Callable[[], float],
        can_retry: Callable[[], bool],
        pace: Pace | None = None,
    ) -> None:
        self._seconds, self._longest, self._until = seconds, longest_seconds, until
        self._clock, self._can_retry, self._pace = clock, can_retry, pace
        self._silent = 0.0
        self._began: float | None = None
        self._period_began = 0.0
        self._total_bytes = self._period_bytes = 0

    def seconds(self) -> float:
        """The timeout for the next byte. Raises `Overdue`."""
        remaining = self._until - self._clock()
        if remaining <= 0:
            raise Overdue("the request was not complete within its time limit")
        return min(self._seconds, remaining)

    def extend(self) -> float:
        """Record a silence of `seconds()` and return the next timeout.

        Raises `Stalled` if the silence is too long, or if the request can be retried.
        """
        self._silent += self._seconds
        seconds = self.seconds()
        if self._silent >= self._longest or self._can_retry():
            raise Stalled(f"the server sent no byte for {self._silent:.1f} s")
        return seconds

    def add_bytes(self, count: int) -> None:
        """Count received bytes. Raises `Overdue`, and `Stalled` if they are too slow and the budget has a retry."""
        self._silent = 0.0
        now = self._clock()
        if now > self._until:  # tested here too: single bytes can prevent a silence
            raise Overdue("the request was not complete within its time limit")
        if self._began is None:
            self._began = self._period_began = now
        self._total_bytes += count
        self._period_bytes += count
        seconds = now - self._period_began
        if self._pace is None or seconds * 2 < self._seconds:
            return
        is_first_period, received = self._period_began == self._began, self._period_bytes
        self._pace.learn_speed(received, seconds)
        self._period_began, self._period_bytes = now, 0
        if not is_first_period and received < self._pace.slowest * seconds and self._can_retry():
            raise Stalled(f"the server sent only {received:,} bytes in {seconds:.1f} s")

    def finish(self) -> None:
        """Learn the throughput of a response that arrived whole."""
        if self._pace is not None and self._began is not None and self._total_bytes >= LEAST_SAMPLE_BYTES:
            self._pace.learn_speed(self._total_bytes, self._clock() - self._began)
