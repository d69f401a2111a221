"""Read the body of one response, which ends by its length, by chunks, or with the connection."""

from __future__ import annotations

from monocontext.stores.http.connection import Connection
from monocontext.stores.http.http11 import ChunkDecoder, ResponseHead

_PIECE_BYTES = 64 << 10


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
