"""Look at the bytes of a folded text once, for its grams and its words. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

EDGE = 8
"""Zeros before and after the text: 8 bytes begin and end at every byte of it."""
LEAST_BYTES = 3
"""The least number of bytes in a word."""


class Signs:
    """A folded text, and the facts about its bytes that both grams and words need. Offsets include the zeros before
    it."""

    __slots__ = ("digits", "eights", "inside", "others", "raw", "size", "starts", "stops", "threes")

    def __init__(self, *parts: bytes):
        import numpy as np

        data = b"".join((bytes(EDGE), *parts, bytes(EDGE)))
        self.size = len(data) - 2 * EDGE
        """Bytes of the text."""
        self.raw: NDArray[np.uint8] = np.frombuffer(data, np.uint8)
        self.eights: NDArray[np.uint64] = np.ascontiguousarray(np.ndarray(len(data) - EDGE + 1, "<u8", data, 0, 1))
        """The 8 bytes that begin at each offset. Looked up often, so an aligned copy is cheaper than a view."""
        # Comparisons of all bytes at once take half the time of a table.
        self.digits: NDArray[np.bool_] = self.raw - np.uint8(ord("0")) < 10
        self.others: NDArray[np.bool_] = self.raw >= 128
        """Bytes of other scripts than ASCII."""
        self.inside: NDArray[np.bool_] = (self.raw | np.uint8(32)) - np.uint8(ord("a")) < 26
        """Bytes of words: letters of ASCII, digits, `_` and bytes of other scripts."""
        inside = self.inside
        inside |= self.raw == ord("_")
        inside |= self.digits
        inside |= self.others
        self.threes: NDArray[np.bool_] = inside[:-2] & inside[1:-1]
        self.threes &= inside[2:]
        """The positions at which 3 bytes of a word begin."""
        edges = np.flatnonzero(self.threes[1:] != self.threes[:-1])
        self.starts: NDArray[np.intp] = edges[::2] + 1
        """The positions at which words begin."""
        self.stops: NDArray[np.intp] = edges[1::2] + LEAST_BYTES
        """The positions at which they end."""
