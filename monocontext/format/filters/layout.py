"""Locate, encode, decode and check the rows of a filter. `docs/format.md` describes the layout byte by byte.

A filter has a row for each hash value, a column for each of its frames, and a bit for each pair of them. Rows are
stored end to end in blocks: a few rows, and a checksum of these rows and their place. Each object (a part) has at most
`FILTER_PART_BYTES` of them. A search reads a few blocks, never the whole of a large filter. Its last block helps to
choose them: the *sparsity* of each row of grams, 4 bits that say how few frames have a bit there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.format.filters.grams import height
from monocontext.format.refs import FilterRef, filter_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_BYTES = 1024
"""Shorter rows share a block: a request for 1 KiB costs as much as one for 16 bytes, and there are fewer checksums."""
FILTER_PART_BYTES = 16 << 20  # the most bytes of rows in one object; a larger filter has several objects
WHOLE_BYTES = 1 << 20  # the most bytes of a small filter, and of one request
CHECKSUM_BYTES = 4
_MOST_READ = 16  # the most rows of one literal that a search reads in a large filter: each is a request
_FEW_FRAMES = 4  # it is cheaper to read so few frames than further rows
_SHARES = tuple(2.0 ** -(sparsity * sparsity / 16) for sparsity in range(16))
"""By the sparsity of a row of grams, the approximate share of columns that have a bit in it."""


class FilterLayout:
    """Where the rows of one filter are stored, which follows from its numbers of columns and rows."""

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
        self.is_small = self.blocks * self.block_bytes <= WHOLE_BYTES
        """Whether one request fetches all rows that a search reads. Then the filter has no sparsity."""
        self.sparsity_bytes = 0 if self.is_small else (1 << ref.bits) // 2 + CHECKSUM_BYTES
        self.size_bytes = self.blocks * self.block_bytes + self.sparsity_bytes

    def rows_worth_reading(self, rows: Sequence[int], sparsity: bytes, read_count: int, candidates: float) -> list[int]:
        """The rows of a literal to read next, after its `read_count` emptiest rows left `candidates` frames: those that
        are expected to rule out at least one frame each; if none was read, at least one row."""
        if read_count and candidates <= _FEW_FRAMES:
            return []
        sparsity_of = {row: sparsity[row // 2] >> row % 2 * 4 & 15 for row in rows}  # two rows a byte
        results: list[int] = []
        for row in sorted(rows, key=sparsity_of.__getitem__, reverse=True)[read_count:_MOST_READ]:
            remaining = candidates * _SHARES[sparsity_of[row]]
            if candidates - remaining < 1 and (read_count or results):
                break
            results.append(row)
            candidates = remaining
        return results

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """Yield the first row of each part, and the row after its last."""
        step = self.blocks_per_part * self.rows_per_block
        return ((start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def row_in(self, block: bytes, row: int) -> bytes:
        """A row of a checked block. Bit `i % 8` of byte `i // 8` is column i. Row `self.rows` is the sparsity."""
        if row == self.rows:
            return block
        start = row % self.rows_per_block * self.row_bytes
        return block[start : start + self.row_bytes]

    def address(self, block: int) -> tuple[str, int, int]:
        """The key of the object with a block, and its offset and length in it. Block `self.blocks` is the sparsity."""
        part = min(block // self.blocks_per_part, self.parts - 1)
        size = self.block_bytes if block < self.blocks else self.sparsity_bytes
        return filter_key(self.ref.parts[part]), (block - part * self.blocks_per_part) * self.block_bytes, size

    def check(self, stored: bytes, block: int) -> bytes:
        """The rows of a stored block, or the sparsity, without its checksum. Raises `DamagedData`.

        The checksum also covers the number of the block and the seed of the filter, so another block is refused."""
        rows, recorded = stored[:-CHECKSUM_BYTES], int.from_bytes(stored[-CHECKSUM_BYTES:], "little")
        computed = self._checksum(rows, block)
        if recorded != computed:
            key, _, size = self.address(block)
            raise DamagedData(
                f"block {block} of {key}: expected {size} bytes with crc32c {recorded:08x}, "
                f"found {len(stored)} with {computed:08x} (`monocontext index --filters --rebuild` rebuilds them)"
            )
        return rows

    def _checksum(self, rows: bytes, block: int) -> int:
        return int(google_crc32c.value(rows + block.to_bytes(4, "little") + self.ref.seed.to_bytes(4, "little")))

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

    def encode_sparsity(self, counts: Iterable[int]) -> bytes:
        """The stored form of the sparsity, given the number of bits that are set in each row of grams."""
        halvings = (math.log2(self.columns / max(count, 0.5)) for count in range(self.columns + 1))
        by_count = [min(round(4 * math.sqrt(number)), 15) for number in halvings]
        sparsity = [by_count[count] for count in counts]
        packed = bytes(even | odd << 4 for even, odd in zip(sparsity[::2], sparsity[1::2], strict=True))
        return packed + self._checksum(packed, self.blocks).to_bytes(CHECKSUM_BYTES, "little")

    def check_part(self, part: int, stored: bytes, *, checks_blocks: bool) -> bytes:
        """The blocks of rows in an object of the filter. Checks its length and, with `checks_blocks`, the checksum of
        each block. Raises `DamagedData`."""
        first = part * self.blocks_per_part
        stop = min(first + self.blocks_per_part, self.blocks)
        rows_bytes = (stop - first) * self.block_bytes
        size = rows_bytes + (self.sparsity_bytes if stop == self.blocks else 0)
        if len(stored) != size:
            raise DamagedData(f"{self.ref.keys[part]}: length differs: expected {size} bytes, found {len(stored)}")
        if checks_blocks:
            for block in range(first, stop + (size > rows_bytes)):
                _, start, length = self.address(block)
                self.check(stored[start : start + length], block)
        return stored[:rows_bytes]
