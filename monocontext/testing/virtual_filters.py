"""The search filters of a virtual context, computed row by row when they are read.

Nearly all columns are equal, since nearly all frames are equal.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import google_crc32c

from monocontext.format.filters.building import GROUP_FRAMES
from monocontext.format.filters.case_folding import TABLES
from monocontext.format.filters.frame_column import OVERLAP_BYTES, compute_column, fold_head
from monocontext.format.filters.grams import height, shrink_rows
from monocontext.format.filters.layout import CHECKSUM_BYTES, FilterLayout
from monocontext.format.refs import FILTER_KIND, GRAM_BYTES, FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS = 16

Objects = dict[str, tuple[int, Callable[[int, int], bytes]]]


def virtual_filters(frames: int, plain: bytes, planted: Mapping[int, bytes], objects: Objects) -> tuple[FilterRef, ...]:
    """The filters of `frames` frames with the text `plain` or a planted one. Adds their parts to `objects`."""
    reach = OVERLAP_BYTES + GRAM_BYTES - 1

    def column_of(number: int) -> NDArray[np.uint8]:
        following = (planted.get(n, plain) for n in range(number + 1, min(frames, number + 1 + reach)))
        column = compute_column(planted.get(number, plain), fold_head(following, reach))
        return shrink_rows(column, height(BITS), axis=0)

    usual = shrink_rows(compute_column(plain, fold_head([plain] * reach, reach)), height(BITS), axis=0)
    near = -(-reach // len(plain))
    changed = {n for number in planted for n in range(max(number - near, 0), number + 1)}
    changed |= set(range(max(frames - near, 0), frames))  # these have no frame after them
    special = {number: column_of(number) for number in changed}
    refs = []
    for first in range(0, frames, GROUP_FRAMES):
        size = min(GROUP_FRAMES, frames - first)
        here = {number - first: special[number] for number in special if first <= number < first + size}
        seed = google_crc32c.value(f"{first} {size}".encode())
        ref = FilterRef(FILTER_KIND, TABLES, BITS, OVERLAP_BYTES, size, ((first, 0, size),), (), seed)
        refs.append(_add(ref, usual, here, objects))
    return tuple(refs)


def _add(
    ref: FilterRef, usual: NDArray[np.uint8], special: Mapping[int, NDArray[np.uint8]], objects: Objects
) -> FilterRef:
    """Add the parts of a filter to `objects`, and name them in its entry. `special` has the other columns by number."""
    layout = FilterLayout(ref)
    named = replace(ref, parts=tuple(_name(ref, part) for part in range(layout.parts)))

    def block(number: int) -> bytes:
        rows = b"".join(
            _row(layout, int(usual[row]), {offset: int(bits[row]) for offset, bits in special.items()})
            for row in range(number * layout.rows_per_block, (number + 1) * layout.rows_per_block)
        )
        return rows + layout.checksum(rows, number).to_bytes(CHECKSUM_BYTES, "little")

    for part, key in enumerate(named.keys):
        first = part * layout.blocks_per_part
        count = min(layout.blocks_per_part, layout.blocks - first)

        def read(start: int, stop: int, first: int = first) -> bytes:
            size = layout.block_bytes
            low, high = start // size, -(-stop // size)
            return b"".join(block(first + n) for n in range(low, high))[start - low * size : stop - low * size]

        objects[key] = (count * layout.block_bytes, read)
    return named


def _row(layout: FilterLayout, usual: int, special: Mapping[int, int]) -> bytes:
    """One row of a filter: the bit `usual` in all columns except those of `special`."""
    row = ((1 << layout.columns) - 1) * usual
    for key, bit in special.items():
        row = row | 1 << key if bit else row & ~(1 << key)
    return row.to_bytes(layout.row_bytes, "little")


def _name(ref: FilterRef, part: int) -> str:
    return hashlib.sha256(f"virtual filter {ref.first_frame} {ref.frames} {part}".encode()).hexdigest()[:32]
