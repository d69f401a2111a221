"""Gather the columns of a new filter in a temporary file, and read its rows from there, in bounded memory.

Columns are gathered in tiles of some hundred frames. Each tile is written row by row, so that a row of the filter is
read with one read for each tile.
"""

from __future__ import annotations

import math
import tempfile
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from monocontext.format.filters.grams import MAX_BITS, MIN_BITS, height, shrink_rows

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

FULL = 0.5
"""The share of a column's rows that may be set on average. In kernel source, the share of frames that pass without
containing a rare identifier is 9 % if columns are 49 % full, 2.1 % at 31 %, and 0.7 % at 18 %; each step doubles the
space. At this value code takes 2 ** 15 rows: half as many as at 0.43, for 2.6 % instead of 1.9 % of the bytes read."""
_TILE_FRAMES = 256
"""The frames whose columns are written together."""
_IN_MEMORY_BYTES = 4 << 20
"""A file up to this size is in memory instead."""


class ColumnFile:
    """The columns of one filter. Add those of the frames in order, then `flush`, then read `rows`."""

    def __init__(self) -> None:
        self.frames = 0
        self.bits = MIN_BITS
        """The columns so far need 2 ** bits rows."""
        self.top_bits = MAX_BITS
        """Tiles are stored with 2 ** top_bits rows."""
        self._grams: list[float] = []
        """The estimated number of distinct grams of each frame."""
        self._tile: list[NDArray[np.uint8]] = []
        self._tile_frames = 0
        self._tile_widths: list[int] = []
        """The width of each tile in the file, in bytes."""
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (lives as long as this object)
        # It is closed with this object: after a conflict with another writer, the next commit reads the rows again.
        weakref.finalize(self, self._file.close)

    def add(self, column: NDArray[np.uint8]) -> None:
        """Add the column of the next frame. Its rows are overwritten."""
        import numpy as np

        self._grams.append(_estimate_grams(int(np.count_nonzero(column[: 1 << MAX_BITS]))))
        location = self._tile_frames % 8
        if location == 0:
            self._tile.append(column.copy())
        else:
            bits = column.view(np.uint64)  # eight rows at once; a 1 stays in its byte
            bits <<= np.uint64(location)
            self._tile[-1] |= column
        self._tile_frames += 1
        self.frames += 1
        if self._tile_frames == _TILE_FRAMES:
            self.flush()

    def flush(self) -> None:
        """Write the tile to the file. The first tile sets the limit of stored rows: twice its own need."""
        import numpy as np

        self.bits = _bits_for(self._grams)
        if not self._tile:
            return
        if not self._tile_widths:
            self.top_bits = min(self.bits + 1, MAX_BITS)
        tile = shrink_rows(np.stack(self._tile), height(self.top_bits), axis=1)
        self._file.write(np.ascontiguousarray(tile.T).tobytes())
        self._tile_widths.append(len(tile))
        self._tile, self._tile_frames = [], 0
        self.bits = min(self.bits, self.top_bits)

    def rows(self, start: int, stop: int, bits: int) -> NDArray[np.uint8]:
        """Rows [start, stop) of `height(bits)`, packed eight columns a byte."""
        import numpy as np

        merged_rows = 1 << (self.top_bits - bits)  # stored rows that become one
        pieces, offset = [], 0
        for width in self._tile_widths:
            self._file.seek(offset + start * merged_rows * width)
            data = self._file.read((stop - start) * merged_rows * width)
            tile = np.frombuffer(data, np.uint8).reshape(-1, width)
            pieces.append(shrink_rows(tile, stop - start, axis=0))
            offset += width * height(self.top_bits)
        return np.concatenate(pieces, axis=1)


def _estimate_grams(set_count: int) -> float:
    """The most likely number of distinct grams that set `set_count` rows of 2 ** MAX_BITS."""
    rows = 1 << MAX_BITS
    return -rows * math.log1p(-min(set_count, rows - 1) / rows)


def _bits_for(grams: Sequence[float]) -> int:
    """The least height at which columns with this many distinct grams are at most `FULL` on average."""
    import numpy as np

    counts = np.asarray(grams)
    for bits in range(MIN_BITS, MAX_BITS):
        if float(np.mean(-np.expm1(-counts / (1 << bits)))) <= FULL:
            return bits
    return MAX_BITS
