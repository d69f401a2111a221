"""An HTTP/1.1 connection: it sends a request, and reads the head and the body of the response, under a timer.

A body ends after its length, after the last chunk, or with the connection. The timer ends an exchange that is silent or
too slow, by times and speeds that are learnt from earlier exchanges. Only one thread may use a connection at a time.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from monocontext.stores.http.http11 import BadReply, ChunkDecoder, ResponseHead, split_head
from monocontext.stores.http.route import Endpoint

Address = tuple[str, int]
_HEAD_BYTES = 2 << 10
"""The size of a read for a head. Heads have 400 to 700 bytes; bytes of the body that come with one must be copied."""
_INTERIM = range(100, 200)
_PIECE_BYTES = 64 << 10

LEAST_SECONDS = 1.0
"""The shortest timeout: four to ten times the p99 of first bytes on S3."""
TIMES_P99 = 4.0
"""The timeout is this many times the p99 of recent first bytes."""
_SAMPLES = 256
"""The times to the first byte that the timeouts are learned from."""
_RECOUNT = 32
"""The p99 is determined again after this many samples."""
_CHANCE = 3
"""The p99 is at most the third slowest sample, since one or two slow responses may be chance."""
SLOWEST_BYTES_PER_SECOND = 256 << 10
"""The speed below which a body fails. At this speed the largest request, of 8 MiB, ends within half of its deadline."""
SLOWEST_SHARE = 0.05
"""On a slow line, a body fails only below this share of the median throughput."""
LEAST_SAMPLE_BYTES = 64 << 10
"""Smaller bodies mostly arrive with their heads, so they say nothing about throughput."""
_SPEEDS, _LEAST_SPEEDS = 64, 8
"""The transfers that the usual speed is learned from, and the fewest that tell it."""


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
        self.filled = 0
        """The number of bytes that the last `fill` received."""
        self._ahead = b""
        self._timer: ExchangeTimer | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.endpoint} at {self.address[0]}, {self.exchanges} exchanges>"

    @property
    def has_surplus(self) -> bool:
        """Whether bytes arrived after the end of the response: they could be mistaken for the next response."""
        return bool(self._ahead)

    def send(self, request: bytes, timer: ExchangeTimer) -> None:
        """Begin an exchange. `timer` limits how long it may take and how long the server may be silent."""
        self._timer = timer
        self.socket.settimeout(timer.seconds())
        self.socket.sendall(request)

    def read_head(self) -> ResponseHead:
        """Read the head of the response. Interim responses (1xx) are skipped. Raises `BadReply`."""
        data, self._ahead = self._ahead, b""
        while True:
            while data and (result := split_head(data)):
                head, data = result
                if head.status not in _INTERIM:
                    self._ahead = data
                    return head
            piece = bytearray(_HEAD_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count:
                came = f"the connection was closed after {len(data)} bytes of the response headers"
                raise BadReply(came if data else "no answer")
            data += memoryview(piece)[:count]

    def read_into(self, view: memoryview) -> int:
        """Read some bytes of the body into the start of `view`; returns their number, 0 if the server has closed."""
        if count := min(len(self._ahead), len(view)):  # they arrived with the head
            view[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
        return count or self._receive_into(view)

    def fill(self, view: memoryview) -> None:
        """Receive until the view is full or the server has closed. `filled` counts the bytes, even after an error."""
        self.filled = 0
        while self.filled < len(view):
            with view[self.filled :] as rest:
                count = self.read_into(rest)
            if not count:
                return
            self.filled += count

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
        return ended and self._keeps_alive and not self._connection.has_surplus

    def read_into(self, view: memoryview) -> int:
        """Read some bytes into the start of a view that is not empty; returns their number, 0 at the end of the body.

        A body of known length fills the view or ends. `read_bytes` counts the bytes even after an error. Raises
        `BodyCut`.
        """
        if self._chunks:
            count = self._read_chunked(view)
            self.read_bytes += count
            return count
        return self._read_plain(view)

    def read(self, most_bytes: int) -> bytes:
        """Read the whole body, or about `most_bytes` of it."""
        data, view = bytearray(), memoryview(bytearray(_PIECE_BYTES))
        while len(data) < most_bytes and (count := self.read_into(view)):
            data += view[:count]
        return bytes(data)

    def _read_plain(self, view: memoryview) -> int:
        remaining, before = self.left_bytes, self.read_bytes
        if remaining == 0:
            return 0
        with view[:remaining] as part:
            if remaining is None:
                self.read_bytes += self._connection.read_into(part)
            else:
                try:
                    self._connection.fill(part)
                finally:
                    self.read_bytes += self._connection.filled
        count = self.read_bytes - before
        if remaining is not None:
            self.left_bytes = remaining - count
            if not count:
                raise BodyCut(f"the connection was closed after {before:,} of {before + remaining:,} bytes")
        return count

    def _read_chunked(self, view: memoryview) -> int:
        chunks = self._chunks
        assert chunks is not None
        piece = memoryview(bytearray(_PIECE_BYTES)) if not self._decoded else None
        while piece is not None and not self._decoded and not chunks.ended:
            count = self._connection.read_into(piece)
            if not count:
                raise BodyCut(f"the connection was closed after {self.read_bytes:,} bytes of the response body")
            self._decoded = memoryview(chunks.feed(bytes(piece[:count])))
        count = min(len(self._decoded), len(view))
        view[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count


class SilenceTimeout:
    """The time of silence after which an exchange fails, learnt from the times to the first byte, in seconds.

    Threads share it without a lock: a lost sample does no harm.
    """

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._samples: list[float] = []
        self._seen = 0
        self.seconds = min(LEAST_SECONDS, longest_seconds)
        """The timeout of a first attempt."""

    def for_attempt(self, silences: int) -> float:
        """The timeout of an attempt after `silences` timeouts of the same request."""
        return min(self._longest, self.seconds * 2.0**silences)

    def learn(self, first_byte_seconds: float) -> None:
        """Add the time to the first byte of a response."""
        samples = self._samples
        if len(samples) < _SAMPLES:
            samples.append(first_byte_seconds)
        else:
            samples[self._seen % _SAMPLES] = first_byte_seconds
        self._seen += 1
        if len(samples) < _CHANCE:
            return
        # A slow response counts at once, or other requests in flight would fail too early.
        if self._seen % _RECOUNT == 0 or first_byte_seconds * TIMES_P99 > self.seconds:
            p99 = sorted(samples)[min(len(samples) - _CHANCE, len(samples) * 99 // 100)]
            self.seconds = min(self._longest, max(LEAST_SECONDS, TIMES_P99 * p99))


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
        throughput: Throughput | None = None,
    ) -> None:
        self._seconds, self._longest, self._until = seconds, longest_seconds, until
        self._clock, self._can_retry, self._throughput = clock, can_retry, throughput
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
            raise Stalled(f"no byte for {self._silent:.1f} s")
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
        if self._throughput is None or seconds * 2 < self._seconds:
            return
        is_first_period, received = self._period_began == self._began, self._period_bytes
        self._throughput.learn(received, seconds)
        self._period_began, self._period_bytes = now, 0
        if not is_first_period and received < self._throughput.slowest * seconds and self._can_retry():
            raise Stalled(f"only {received:,} bytes in {seconds:.1f} s")

    def finish(self) -> None:
        """Learn the throughput of a response that arrived whole."""
        if self._throughput is not None and self._began is not None and self._total_bytes >= LEAST_SAMPLE_BYTES:
            self._throughput.learn(self._total_bytes, self._clock() - self._began)


class Throughput:
    """Recent throughputs of bodies. Threads share it without a lock: a lost sample does no harm."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SPEEDS)

    def learn(self, count: int, seconds: float) -> None:
        """Add the throughput of a body, or of a part of a slow one."""
        self._samples.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """The speed below which a body fails, in bytes a second."""
        samples = sorted(self._samples)
        if len(samples) < _LEAST_SPEEDS:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, samples[len(samples) // 2] * SLOWEST_SHARE)
