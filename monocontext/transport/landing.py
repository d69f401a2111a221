"""Where a body lands: filled through a view, and then `bytes`, without a copy between the two.

`BytesIO` hands its own buffer out, first as a view to write to and then as the `bytes` object that it is. A
`bytearray` would have to be copied to become one: 1 ms for a MiB, most of it page faults on the second buffer.
"""

from __future__ import annotations

from io import BytesIO


class Landing:
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

    def rest(self) -> memoryview:
        """What is still empty. To be used by `with` alone, so that it is released whatever happens.

        A view that an exception's frames keep alive becomes cyclic garbage together with its `BytesIO`, and the
        collector of Python 3.11 and 3.12 crashes when it takes these two apart in the wrong order (3.13 complains).
        """
        with self._memory.getbuffer() as whole:
            return whole[self.filled_bytes :]

    def take(self) -> bytes:
        """What landed."""
        return self._memory.getvalue()
