"""Filters of a virtual context: nearly all columns are alike, so a row is computed where it is read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import google_crc32c

from monocontext.filters.building import GROUP_FRAMES, OVERLAP_BYTES, column, folded_head
from monocontext.filters.fold import TABLES
from monocontext.filters.grams import GRAM_BYTES, lowered
from monocontext.filters.layout import CHECKSUM_BYTES, Layout
from monocontext.manifest import FILTER_KIND, FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BITS = 16

Objects = dict[str, tuple[int, Callable[[int, int], bytes]]]


def virtual_filters(frames: int, plain: bytes, planted: Mapping[int, bytes], objects: Objects) -> tuple[FilterRef, ...]:
    """Filters over `frames` frames that hold `plain`, or what is planted; their parts are added to `objects`."""
    reach = OVERLAP_BYTES + GRAM_BYTES - 1

    def column_of(number: int) -> NDArray[np.uint8]:
        following = (planted.get(n, plain) for n in range(number + 1, min(frames, number + 1 + reach)))
        return lowered(column(planted.get(number, plain), folded_head(following, reach)).rows, BITS, axis=0)

    usual = lowered(column(plain, folded_head([plain] * reach, reach)).rows, BITS, axis=0)
    near = -(-reach // len(plain))
    changed = {n for number in planted for n in range(max(number - near, 0), number + 1)}
    changed |= set(range(max(frames - near, 0), frames))  # nothing follows the end
    special = {number: column_of(number) for number in changed}
    refs = []
    for first in range(0, frames, GROUP_FRAMES):
        size = min(GROUP_FRAMES, frames - first)
        here = {number - first: special[number] for number in special if first <= number < first + size}
        seed = google_crc32c.value(f"{first} {size}".encode())
        ref = FilterRef(FILTER_KIND, TABLES, first, size, BITS, OVERLAP_BYTES, 0, 0, (), seed)
        refs.append(_add(ref, usual, here, objects))
    return tuple(refs)


def _add(
    ref: FilterRef, usual: NDArray[np.uint8], special: Mapping[int, NDArray[np.uint8]], objects: Objects
) -> FilterRef:
    layout = Layout(ref)
    named = replace(ref, parts=tuple(_name(ref, part) for part in range(layout.parts)))

    def block(number: int) -> bytes:
        rows = b"".join(
            _row(layout, int(usual[row]), {at: int(bits[row]) for at, bits in special.items()})
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


def _row(layout: Layout, usual: int, special: Mapping[int, int]) -> bytes:
    row = ((1 << layout.columns) - 1) * usual
    for at, bit in special.items():
        row = row | 1 << at if bit else row & ~(1 << at)
    return row.to_bytes(layout.row_bytes, "little")


def _name(ref: FilterRef, part: int) -> str:
    return hashlib.sha256(f"virtual filter {ref.first_frame} {ref.frames} {part}".encode()).hexdigest()[:32]
