"""One HTTP/1.1 connection: send a request, read a head, then a body, which ends by its length, by chunks, or with the
connection. One thread at a time."""

from __future__ import annotations

import socket

from monocontext.stores.http.http11 import BadReply, ChunkDecoder, ResponseHead, head_end, parse_head
from monocontext.stores.http.route import Endpoint
from monocontext.stores.http.timeouts import ExchangeTimer

Address = tuple[str, int]
# Heads take 400 to 700 bytes: one call reads the head, and no more of the body than is cheap to copy.
_HEAD_BYTES = 2 << 10
_INTERIM = range(100, 200)
_RECORD_BYTES = 16 << 10
_TOLD_BYTES = 64 << 10
_PIECE_BYTES = 64 << 10


class Connection:
    """An open connection. Its owner calls `begin` before each exchange and closes it after any error."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, address: Address, opened: float) -> None:
        self.endpoint = endpoint
        self.address = address
        self.opened = opened
        """Time at which it was opened, on the pool's clock."""
        self.idle_since = opened
        self.exchanges = 0
        """Requests answered so far."""
        self._socket = sock
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

    def begin(self, timer: ExchangeTimer) -> None:
        """Begin an exchange, whose silences `timer` limits."""
        self._timer = timer
        self._socket.settimeout(timer.seconds())

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read_head(self) -> ResponseHead:
        """Read the head of the next response; interim ones (1xx) are skipped. Raises `BadReply`."""
        while True:
            head = self._next_head()
            if head.status not in _INTERIM:
                return head

    def _next_head(self) -> ResponseHead:
        data, self._ahead = bytearray(self._ahead), b""
        while (end := head_end(data)) < 0:
            piece = bytearray(_HEAD_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count:
                raise BadReply(f"the connection was closed after {len(data)} bytes of a head" if data else "no answer")
            data += memoryview(piece)[:count]
        self._ahead = bytes(memoryview(data)[end:])
        return parse_head(memoryview(data)[:end].tobytes())

    def read_into(self, view: memoryview) -> int:
        """Read bytes of the body into the beginning of `view`; returns 0 when the server has closed."""
        return self._take_ahead(view) or self._receive_into(view)

    def _take_ahead(self, view: memoryview) -> int:
        """The same of what came with the head."""
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
        timer, receive = self._timer, self._socket.recv_into
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
                    self._socket.settimeout(timer.extend())
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
                count = self._socket.recv_into(view)
            except TimeoutError:
                self._socket.settimeout(timer.extend())
            else:
                timer.add_bytes(count)
                return count

    def is_quiet(self) -> bool:
        """Whether an idle connection is usable: the server has neither closed it nor sent bytes.

        Over TLS that cannot be known without reading a record; there the answer is yes.
        """
        if self.endpoint.scheme == "https":
            return True
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close the socket without a shutdown: a forked parent may be using the same connection."""
        self._socket.close()


class BodyCut(OSError):
    """The connection ended before the body did."""


class Body:
    """Reads the body that follows `head` on `connection`."""

    def __init__(self, connection: Connection, head: ResponseHead) -> None:
        self._connection = connection
        self._left = head.body_bytes
        self._chunks = ChunkDecoder() if head.is_chunked and self._left is None else None
        self._decoded = memoryview(b"")
        self._keeps_alive = head.keeps_alive
        self.read_bytes = 0
        """Bytes of the body that came."""
        self.is_accepted = False
        """Whether its receiver found that it answers the request."""

    @property
    def is_over(self) -> bool:
        """Whether its length says that all of it was read."""
        return self._left == 0

    @property
    def leaves_connection_usable(self) -> bool:
        """Whether the body was read to its end and the next response can follow."""
        ended = self._chunks.ended and not self._chunks.surplus if self._chunks else self._left == 0
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
        left, before = self._left, self.read_bytes
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
            self._left = left - count
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
