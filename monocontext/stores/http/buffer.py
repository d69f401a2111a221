"""A receive buffer that is filled through a view and then becomes `bytes` without a copy.

`BytesIO` gives out its own buffer, first as a view to write to, then as a `bytes` object. A `bytearray` would have to
be copied to become `bytes`: 1 ms for a MiB, most of it page faults on the second buffer.
"""

from __future__ import annotations

from io import BytesIO


class ReceiveBuffer:
    """Room for exactly `length` bytes."""

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
