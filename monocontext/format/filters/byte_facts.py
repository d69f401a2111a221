"""Facts about each byte of a folded text, which both its grams and its words need, computed once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EDGE = 8
"""The number of zeros before and after the text, so that 8 bytes begin and end at each of its bytes."""
LEAST_BYTES = 3
"""The least number of bytes in a word."""


class ByteFacts:
    """A folded text and arrays with a fact about each of its bytes. Offsets include the zeros before the text."""

    __slots__ = ("digits", "eights", "inside", "others", "raw", "size", "starts", "stops", "threes")

    def __init__(self, *parts: bytes):
        import numpy as np

        data = b"".join((bytes(EDGE), *parts, bytes(EDGE)))
        self.size = len(data) - 2 * EDGE
        """The length of the text in bytes."""
        self.raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.eights: NDArray[np.uint64] = np.ascontiguousarray(np.ndarray(len(data) - EDGE + 1, "<u8", data, 0, 1))
        """The 8 bytes that begin at each offset. An aligned copy is cheaper than a view, since they are used often."""
        # Comparisons of all bytes at once take half the time of a table.
        self.digits: NDArray[np.bool_] = self.raw - np.uint8(ord("0")) < 10
        self.others: NDArray[np.bool_] = self.raw >= 128
        """Whether a byte is part of a character outside of ASCII."""
        self.inside: NDArray[np.bool_] = (self.raw | np.uint8(32)) - np.uint8(ord("a")) < 26
        """Whether a byte is part of a word: an ASCII letter, a digit, `_`, or part of another character."""
        inside = self.inside
        inside |= self.raw == ord("_")
        inside |= self.digits
        inside |= self.others
        self.threes: NDArray[np.bool_] = inside[:-2] & inside[1:-1]
        self.threes &= inside[2:]
        """Whether 3 bytes of a word begin at a byte."""
        edges = np.flatnonzero(self.threes[1:] != self.threes[:-1])
        self.starts: NDArray[np.intp] = edges[::2] + 1
        """The offsets at which words of 3 bytes or more begin."""
        self.stops: NDArray[np.intp] = edges[1::2] + LEAST_BYTES
        """The offsets at which these words end."""
