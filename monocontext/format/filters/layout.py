"""Locate, encode, decode and check the rows of a filter. `docs/format.md` describes the layout byte by byte.

A filter has a row for each hash value, a column for each of its frames, and a bit for each pair of them. Rows are
stored end to end in blocks: a few rows, and a checksum of these rows and their place. Each object (a part) has at most
`FILTER_PART_BYTES`. A search reads a few blocks, never the whole of a large filter.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.format.filters.grams import height
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_BYTES = 1024
"""Shorter rows share a block: a request for 1 KiB costs as much as one for 16 bytes, and there are fewer checksums."""
FILTER_PART_BYTES = 16 << 20  # the size of an object of a filter; a larger filter has several
WHOLE_BYTES = 1 << 20  # the size of a small filter: a request is never longer
CHECKSUM_BYTES = 4


class FilterLayout:
    """The places of the rows of one filter, which follow from its numbers of columns and rows."""

    def __init__(self, ref: FilterRef):
        self.ref = ref
        self.rows = height(ref.bits)
        self.columns = ref.width
        self.row_bytes = -(-self.columns // 8)
        self.rows_per_block = 1
        while 2 * self.rows_per_block * self.row_bytes <= BLOCK_BYTES and self.rows % (2 * self.rows_per_block) == 0:
            self.rows_per_block *= 2
        self.block_bytes = self.rows_per_block * self.row_bytes + CHECKSUM_BYTES
        self.blocks_per_part = max(FILTER_PART_BYTES // self.block_bytes, 1)
        self.blocks = self.rows // self.rows_per_block
        self.parts = -(-self.blocks // self.blocks_per_part)
        self.size_bytes = self.blocks * self.block_bytes

    def first_rows(self, rows: Sequence[int]) -> Sequence[int]:
        """The first rows of a literal, enough to leave about one wrong frame: each rules out at least half."""
        return rows if self.is_small else rows[: self.columns.bit_length() * 4 // 5]

    @property
    def is_small(self) -> bool:
        """Whether one request fetches all rows that a search reads."""
        return self.size_bytes <= WHOLE_BYTES

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each part, and the row after its last."""
        step = self.blocks_per_part * self.rows_per_block
        return ((start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def rows_in(self, blocks: Mapping[int, bytes], rows: Iterable[int]) -> dict[tuple[FilterLayout, int], bytes]:
        """The rows in these checked blocks, by filter and number. Bit `i % 8` of byte `i // 8` is column i."""
        results = {}
        for row in rows:
            number, position = divmod(row, self.rows_per_block)
            if (block := blocks.get(number)) is not None:
                results[self, row] = block[position * self.row_bytes : (position + 1) * self.row_bytes]
        return results

    def addresses(self, rows: Iterable[int]) -> dict[int, tuple[str, int]]:
        """The blocks with these rows, by number: the key of the object, and the offset of the block in it."""
        results = {}
        for row in rows:
            block = row // self.rows_per_block
            part, position = divmod(block, self.blocks_per_part)
            results[block] = self.ref.keys[part], position * self.block_bytes
        return results

    def check(self, stored: bytes, block: int) -> bytes:
        """The rows of a stored block, without its checksum. Raises `DamagedData`.

        The checksum also covers the number of the block and the seed of the filter, so another block is refused."""
        rows, recorded = stored[:-CHECKSUM_BYTES], int.from_bytes(stored[-CHECKSUM_BYTES:], "little")
        computed = google_crc32c.value(rows + block.to_bytes(4, "little") + self.ref.seed.to_bytes(4, "little"))
        if len(stored) != self.block_bytes or recorded != computed:
            key = self.ref.keys[block // self.blocks_per_part]
            raise DamagedData(
                f"block {block} of {key}: expected {self.block_bytes} bytes with crc32c {recorded:08x}, "
                f"found {len(stored)} with {computed:08x} (`monocontext index --filters --rebuild` rebuilds them)"
            )
        return rows

    def encode(self, rows: NDArray[np.uint8], first_row: int) -> bytes:
        """The stored form of whole blocks of rows, given as an array of shape (rows, row_bytes)."""
        import numpy as np

        size = self.rows_per_block * self.row_bytes
        blocks = rows.reshape(-1, size)
        # All blocks at once, each with its number and the seed: one by one they would take twice the time.
        ends = np.full((len(blocks), 2), self.ref.seed, "<u4")
        ends[:, 0] = np.arange(len(blocks)) + first_row // self.rows_per_block
        covered = np.hstack([blocks, ends.view(np.uint8)]).tobytes()
        checksums = [google_crc32c.value(covered[i : i + size + 8]) for i in range(0, len(covered), size + 8)]
        return np.hstack([blocks, np.array(checksums, "<u4").view(np.uint8).reshape(-1, CHECKSUM_BYTES)]).tobytes()

    def check_part(self, part: int, stored: bytes, *, blocks: bool) -> None:
        """Check the length of an object of the filter and, if asked, its blocks. Raises `DamagedData`."""
        first = part * self.blocks_per_part
        count, size = min(self.blocks_per_part, self.blocks - first), self.block_bytes
        if len(stored) != count * size:
            key = self.ref.keys[part]
            raise DamagedData(f"{key}: length differs: expected {count * size} bytes, found {len(stored)}")
        for i in range(count if blocks else 0):
            self.check(stored[i * size : (i + 1) * size], first + i)
