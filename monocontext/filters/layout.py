"""Where a row of a filter lies, and how it is checked. `docs/format.md` has it byte by byte.

A filter covers a group of frames: one row for each hash value, one column for each frame, one bit for each pair; one
more column, the last, stands for the border to the text before the group. Rows lie one after another, a few of them in
a block that ends in a checksum of them and of where they belong, blocks in objects of at most `PART_BYTES`. A needle
reads a few blocks, never the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.manifest import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BLOCK_BYTES = 1024
"""Rows shorter than this share a block: a request of 1 KiB costs what one of 16 bytes does, a checksum for each not."""
PART_BYTES = 16 << 20
CHECKSUM_BYTES = 4


class Layout:
    """The geometry of one filter: everything follows from the number of columns and of rows."""

    __slots__ = ("block_bytes", "blocks_per_part", "columns", "ref", "row_bytes", "rows", "rows_per_block")

    def __init__(self, ref: FilterRef):
        self.ref = ref
        self.rows = 1 << ref.bits
        self.columns = ref.frames + (1 if ref.border_frames else 0)
        self.row_bytes = -(-self.columns // 8)
        self.rows_per_block = 1
        while 2 * self.rows_per_block * self.row_bytes <= BLOCK_BYTES and 2 * self.rows_per_block <= self.rows:
            self.rows_per_block *= 2
        self.block_bytes = self.rows_per_block * self.row_bytes + CHECKSUM_BYTES
        self.blocks_per_part = max(PART_BYTES // self.block_bytes, 1)

    @property
    def blocks(self) -> int:
        return self.rows // self.rows_per_block

    @property
    def parts(self) -> int:
        """Number of objects."""
        return -(-self.blocks // self.blocks_per_part)

    @property
    def size_bytes(self) -> int:
        return self.blocks * self.block_bytes

    def row_ranges(self) -> Iterator[tuple[int, int]]:
        """The rows of each part."""
        step = self.blocks_per_part * self.rows_per_block
        return ((start, min(start + step, self.rows)) for start in range(0, self.rows, step))

    def block_of(self, row: int) -> int:
        return row // self.rows_per_block

    def address(self, block: int) -> tuple[str, int]:
        """The object that holds a block, and the block's first byte in it."""
        part, place = divmod(block, self.blocks_per_part)
        return self.ref.key(part), place * self.block_bytes

    def row(self, block: bytes, row: int) -> bytes:
        """One row out of its (checked) block: bit `i % 8` of byte `i // 8` is column i."""
        start = row % self.rows_per_block * self.row_bytes
        return block[start : start + self.row_bytes]

    def check(self, stored: bytes, block: int) -> bytes:
        """The rows of a stored block. Raises `DamagedData`."""
        rows = stored[:-CHECKSUM_BYTES]
        recorded, found = int.from_bytes(stored[-CHECKSUM_BYTES:], "little"), self.checksum(rows, block)
        if len(stored) != self.block_bytes or recorded != found:
            key, _ = self.address(block)
            raise DamagedData(
                f"block {block} of {key}: expected {self.block_bytes} bytes with crc32c {recorded:08x}, "
                f"found {len(stored)} with {found:08x} (`monocontext index --filters --rebuild` makes filters anew)"
            )
        return rows

    def checksum(self, rows: bytes, block: int) -> int:
        """What a block ends in. With its number and the filter's seed in it, an answer that holds another block of the
        same length is damage, where the rows alone would be believed."""
        found: int = google_crc32c.value(rows)
        if self.ref.seed is None:
            return found
        place = block.to_bytes(4, "little") + self.ref.seed.to_bytes(4, "little")
        return int(google_crc32c.extend(found, place))

    def encode(self, rows: NDArray[np.uint8], first_row: int) -> bytes:
        """Blocks of whole rows, shape (rows, row_bytes), as they are stored."""
        blocks = rows.reshape(-1, self.rows_per_block * self.row_bytes)
        return b"".join(
            block + self.checksum(block, number).to_bytes(CHECKSUM_BYTES, "little")
            for number, block in enumerate((one.tobytes() for one in blocks), self.block_of(first_row))
        )

    def decode(self, part: int, stored: bytes) -> NDArray[np.uint8]:
        """All rows of a part, shape (rows, row_bytes), checked. Raises `DamagedData`."""
        import numpy as np

        first = part * self.blocks_per_part
        count = min(self.blocks_per_part, self.blocks - first)
        if len(stored) != count * self.block_bytes:
            raise DamagedData(
                f"{self.ref.key(part)}: length differs: expected {count * self.block_bytes} bytes, found {len(stored)}"
            )
        size = self.block_bytes
        blocks = [self.check(stored[i * size : (i + 1) * size], first + i) for i in range(count)]
        return np.frombuffer(b"".join(blocks), np.uint8).reshape(-1, self.row_bytes)
