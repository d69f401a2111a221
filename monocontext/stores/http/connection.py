"""One HTTP/1.1 connection: send a request, read a head, then a body that ends by its length, by chunks, or with the
connection.

For one thread at a time.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable

from monocontext.stores.http.http11 import BadReply, ChunkDecoder, ResponseHead, split_head
from monocontext.stores.http.route import Endpoint

Address = tuple[str, int]
# Heads take 400 to 700 bytes: one call reads the head, and no more of the body than is cheap to copy.
_HEAD_BYTES = 2 << 10
_INTERIM = range(100, 200)
_RECORD_BYTES = 16 << 10
_TOLD_BYTES = 64 << 10
_PIECE_BYTES = 64 << 10


class Connection:
    """An open connection. Its owner closes it after any error."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, address: Address, opened: float) -> None:
        self.endpoint = endpoint
        self.address = address
        self.opened = opened
        """Time at which it was opened, on the pool's clock."""
        self.idle_since = opened
        self.exchanges = 0
        """Requests answered so far."""
        self.socket = sock
        self.filled = 0
        """Bytes that the last `fill` has received."""
        self._ahead = b""
        self._timer: ExchangeTimer | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.endpoint} at {self.address[0]}, {self.exchanges} exchanges>"

    @property
    def has_surplus(self) -> bool:
        """Whether more bytes came than were requested: they could be taken for the next response."""
        return bool(self._ahead)

    def send(self, request: bytes, timer: ExchangeTimer) -> None:
        """Begin an exchange, whose silences `timer` limits."""
        self._timer = timer
        self.socket.settimeout(timer.seconds())
        self.socket.sendall(request)

    def read_head(self) -> ResponseHead:
        """Read the head of the next response; interim ones (1xx) are skipped. Raises `BadReply`."""
        data, self._ahead = self._ahead, b""
        while True:
            while data and (found := split_head(data)):
                head, data = found
                if head.status not in _INTERIM:
                    self._ahead = data
                    return head
            piece = bytearray(_HEAD_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count:
                raise BadReply(f"the connection was closed after {len(data)} bytes of a head" if data else "no answer")
            data += memoryview(piece)[:count]

    def read_into(self, view: memoryview) -> int:
        """Read bytes of the body into the beginning of `view`; returns 0 when the server has closed."""
        return self._take_ahead(view) or self._receive_into(view)

    def _take_ahead(self, view: memoryview) -> int:
        """The bytes of the body that came with the head."""
        count = min(len(self._ahead), len(view))
        if count:
            view[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
        return count

    def fill(self, view: memoryview) -> None:
        """Receive until the view is full or the server has closed; `filled` says how far that is, also after an error.

        One loop for all records of a body. The clock is read after 64 KiB, and after less than a TLS record came: a
        body that drips is noticed as soon.
        """
        timer, receive = self._timer, self.socket.recv_into
        assert timer is not None
        size, self.filled, untold = len(view), self._take_ahead(view), 0
        while self.filled < size:
            with view[self.filled :] as rest:
                try:
                    count = receive(rest)
                except TimeoutError:
                    if untold:
                        timer.add_bytes(untold)
                        untold = 0
                    self.socket.settimeout(timer.extend())
                    continue
            self.filled += count
            untold += count
            if count < _RECORD_BYTES or untold >= _TOLD_BYTES:
                timer.add_bytes(untold)
                untold = 0
                if not count:
                    return
        if untold:
            timer.add_bytes(untold)

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
    """The connection ended before the body did."""


class Body:
    """Reads the body that follows `head` on `connection`."""

    def __init__(self, connection: Connection, head: ResponseHead) -> None:
        self._connection = connection
        self.left_bytes = head.body_bytes
        """What is left of it by its length; `None` where the head does not say."""
        self._chunks = ChunkDecoder() if head.is_chunked and self.left_bytes is None else None
        self._decoded = memoryview(b"")
        self._keeps_alive = head.keeps_alive
        self.read_bytes = 0
        """Bytes of the body that came."""
        self.is_accepted = False
        """Whether its receiver found that it answers the request."""

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether the body was read to its end and the next response can follow."""
        ended = self._chunks.ended and not self._chunks.surplus if self._chunks else self.left_bytes == 0
        return ended and self._keeps_alive and not self._connection.has_surplus

    def read_into(self, view: memoryview) -> int:
        """Read some bytes into the beginning of `view`, which is not empty; returns 0 at the end. Raises `BodyCut`.

        Where the length is known it fills the view as far as the body goes. After an error `read_bytes` still counts
        all that came.
        """
        if self._chunks:
            count = self._read_chunked(view)
            self.read_bytes += count
            return count
        return self._read_plain(view)

    def read(self, most_bytes: int) -> bytes:
        """Read the whole body, or stop at a limit."""
        data, view = bytearray(), memoryview(bytearray(_PIECE_BYTES))
        while len(data) < most_bytes and (count := self.read_into(view)):
            data += view[:count]
        return bytes(data)

    def _read_plain(self, view: memoryview) -> int:
        left, before = self.left_bytes, self.read_bytes
        if left == 0:
            return 0
        with view[:left] as part:
            if left is None:
                self.read_bytes += self._connection.read_into(part)
            else:
                try:
                    self._connection.fill(part)
                finally:
                    self.read_bytes += self._connection.filled
        count = self.read_bytes - before
        if left is not None:
            self.left_bytes = left - count
            if not count:
                raise BodyCut(f"the connection was closed after {before:,} of {before + left:,} bytes")
        return count

    def _read_chunked(self, view: memoryview) -> int:
        chunks = self._chunks
        assert chunks is not None
        piece = memoryview(bytearray(_PIECE_BYTES)) if not self._decoded else None
        while piece is not None and not self._decoded and not chunks.ended:
            count = self._connection.read_into(piece)
            if not count:
                raise BodyCut(f"the connection was closed after {self.read_bytes:,} bytes of chunks")
            self._decoded = memoryview(chunks.feed(bytes(piece[:count])))
        count = min(len(self._decoded), len(view))
        view[:count] = self._decoded[:count]
        self._decoded = self._decoded[count:]
        return count


LEAST_SECONDS = 1.0
"""Four to ten times the p99 of first bytes on S3 (100-230 ms), and half of the two seconds to recover in."""
TIMES_P99 = 4.0
_SAMPLES = 256
_RECOUNT = 32
_CHANCE = 3
"""This many slow responses are more than chance. With 200 samples or fewer the p99 is one of the slowest two, and one
first byte of 1.2 s, which one GET in 500 has, would make the next stalled body last 5 s."""


class SilenceTimeout:
    """The seconds without a byte after which an exchange is given up. Threads may share it: a lost sample does no
    harm."""

    def __init__(self, longest_seconds: float) -> None:
        self._longest = longest_seconds
        self._samples: list[float] = []
        self._seen = 0
        self.seconds = min(LEAST_SECONDS, longest_seconds)
        """Timeout of a first attempt."""

    def for_attempt(self, silences: int) -> float:
        """Timeout of an attempt of a request that has met silence `silences` times."""
        return min(self._longest, self.seconds * 2.0**silences)

    def learn(self, first_byte_seconds: float) -> None:
        """Add the time to the first byte of one response."""
        samples = self._samples
        if len(samples) < _SAMPLES:
            samples.append(first_byte_seconds)
        else:
            samples[self._seen % _SAMPLES] = first_byte_seconds
        self._seen += 1
        if len(samples) < _CHANCE:
            return
        # A slow response counts at once: other waiting requests are about to be given up too early.
        if self._seen % _RECOUNT == 0 or first_byte_seconds * TIMES_P99 > self.seconds:
            p99 = sorted(samples)[min(len(samples) - _CHANCE, len(samples) * 99 // 100)]
            self.seconds = min(self._longest, max(LEAST_SECONDS, TIMES_P99 * p99))


class Stalled(TimeoutError):
    """No byte, or hardly any, came within the timeout; another connection may be faster."""


class Overdue(TimeoutError):
    """The whole call exceeded its deadline."""


class ExchangeTimer:
    """Times one exchange: how long to wait for the next byte, and when to give up.

    Throughput is measured over half of the timeout at a time. The first half is not judged: a new connection doubles
    its speed with each round trip, and begins with 14 KB.
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
        self._seconds = seconds
        self._longest = longest_seconds
        self._until = until
        self._clock = clock
        self._can_retry = can_retry
        self._silent = 0.0
        self._throughput = throughput
        self._began: float | None = None
        self._count = 0
        self._counted_since = 0.0
        self._counted = 0

    def seconds(self) -> float:
        """Timeout for the next byte. Raises `Overdue`."""
        left = self._until - self._clock()
        if left <= 0:
            raise Overdue("the deadline passed")
        return min(self._seconds, left)

    def extend(self) -> float:
        """Timeout after a silence of `seconds()`. Raises `Stalled`, unless the retry budget is empty."""
        self._silent += self._seconds
        seconds = self.seconds()
        if self._silent >= self._longest or self._can_retry():
            raise Stalled(f"no byte for {self._silent:.1f} s")
        return seconds

    def add_bytes(self, count: int) -> None:
        """Count received bytes. Raises `Overdue`; `Stalled` where they come too slowly and the budget has a retry."""
        self._silent = 0.0
        now = self._clock()
        if now > self._until:  # a byte now and then is no silence
            raise Overdue("the deadline passed")
        if self._began is None:
            self._began = self._counted_since = now
        self._count += count
        self._counted += count
        seconds = now - self._counted_since
        if self._throughput is None or seconds * 2 < self._seconds:
            return
        is_first, counted = self._counted_since == self._began, self._counted
        self._throughput.learn(counted, seconds)
        self._counted_since, self._counted = now, 0
        if not is_first and counted < self._throughput.slowest * seconds and self._can_retry():
            raise Stalled(f"only {counted:,} bytes in {seconds:.1f} s")

    def finish(self) -> None:
        """Learn from a response that arrived whole."""
        if self._throughput is not None and self._began is not None and self._count >= LEAST_SAMPLE_BYTES:
            self._throughput.learn(self._count, self._clock() - self._began)


SLOWEST_BYTES_PER_SECOND = 256 << 10
"""A slower body is given up. S3 gives a connection some 90 MB/s; at this speed the largest request, of 8 MiB, would
still end in half of its deadline. Between the two, hedging covers late requests."""
SLOWEST_SHARE = 0.05
"""Share of the median of other connections below which a body is given up, where that is less: all bodies of a thin
line are slow."""
LEAST_SAMPLE_BYTES = 64 << 10
"""Smaller bodies arrive with their heads and do not measure throughput."""
_SPEEDS = 64
_LEAST_SPEEDS = 8


class Throughput:
    """Recent throughputs of bodies. Threads may share it: a lost sample does no harm."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SPEEDS)

    def learn(self, count: int, seconds: float) -> None:
        """Add the sample of a body, or of a part of a slow one."""
        self._samples.append(count / max(seconds, 1e-6))

    @property
    def slowest(self) -> float:
        """Bytes a second below which a connection is given up."""
        samples = sorted(self._samples)
        if len(samples) < _LEAST_SPEEDS:
            return SLOWEST_BYTES_PER_SECOND
        return min(SLOWEST_BYTES_PER_SECOND, samples[len(samples) // 2] * SLOWEST_SHARE)
