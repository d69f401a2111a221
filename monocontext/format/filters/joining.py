"""Join stored filters of neighbouring frames into one, and store the objects of a filter.

Each filter but the first of a text may have a border column: it covers the text across the beginning of the filter's
frames. In a joined filter its bits are part of the columns of the frames that it covers.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from monocontext.format.filters.grams import height, shrink_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FILTER_KIND, FilterRef, filter_key
from monocontext.records import replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROWS_AT_ONCE_BYTES = 1 << 20
"""The rows of filters to read at a time."""


def can_join(before: FilterRef, ref: FilterRef) -> bool:
    """Whether two filters may become one: they follow each other, with a border column between them."""
    same = (before.fold, before.overlap_bytes, before.stop_frame) == (ref.fold, ref.overlap_bytes, ref.first_frame)
    similar = before.kind == ref.kind == FILTER_KIND and abs(before.bits - ref.bits) < 2
    are_unedited = before.columns is None and ref.columns is None
    return same and similar and are_unedited and 0 < ref.border_frames <= before.frames


def joined_ref(refs: Sequence[FilterRef]) -> FilterRef:
    """The entry of one filter over the frames of several that follow each other, without the names of its objects."""
    first, last = refs[0], refs[-1]
    return replace(
        first,
        frames=last.stop_frame - first.first_frame,
        bits=min(ref.bits for ref in refs),
        tail_frames=last.tail_frames if last.tail_frames < last.frames else last.frames + last.border_frames,
        seed=fresh_seed(),
    )


def join_columns(filters: Iterable[tuple[FilterRef, NDArray[np.uint8]]]) -> NDArray[np.uint8]:
    """The columns of a joined filter, packed, given the unpacked columns of filters that follow each other.

    Each has the columns of its frames, then its border column if it has one. The arrays are changed.
    """
    import numpy as np

    columns: list[NDArray[np.uint8]] = []
    for ref, bits in filters:
        border = bits[:, ref.frames :]
        if columns:
            columns[-1][:, -ref.border_frames :] |= border
        else:
            first_border = border
        columns.append(bits[:, : ref.frames])
    return np.packbits(np.concatenate([*columns, first_border], axis=1), axis=1, bitorder="little")


def join(refs: Sequence[FilterRef], get: Callable[[str], bytes], put: Callable[[str, bytes], object]) -> FilterRef:
    """Store one filter over the frames of several that follow each other (1 GET and 1 PUT for each object)."""
    import numpy as np

    joined = joined_ref(refs)
    packed = [read_rows(ref, get, joined.bits) for ref in refs]

    def encode(start: int, stop: int) -> bytes:
        columns = join_columns(
            (ref, np.unpackbits(rows[start:stop], axis=1, count=FilterLayout(ref).columns, bitorder="little"))
            for ref, rows in zip(refs, packed, strict=True)
        )
        return FilterLayout(joined).encode(columns, start)

    return put_parts(joined, encode_parts(joined, encode, joined.frames), put)


def read_rows(ref: FilterRef, get: Callable[[str], bytes], bits: int) -> NDArray[np.uint8]:
    """The rows of a stored filter, packed, at the height of 2 ** bits rows of grams (1 GET for each object)."""
    import numpy as np

    layout = FilterLayout(ref)
    rows = np.concatenate([layout.decode(part, get(key)) for part, key in enumerate(ref.keys)])
    return shrink_rows(rows, height(bits), axis=0)


def encode_parts(ref: FilterRef, encode: Callable[[int, int], bytes], bytes_per_row: int) -> Iterator[bytes]:
    """The objects of a filter, in order. `encode` gives rows [start, stop) as stored, a MiB of memory at a time."""
    layout = FilterLayout(ref)
    step = max(_ROWS_AT_ONCE_BYTES // bytes_per_row, layout.rows_per_block)
    step -= step % layout.rows_per_block
    for first, last in layout.row_ranges():
        yield b"".join(encode(start, min(start + step, last)) for start in range(first, last, step))


def put_parts(ref: FilterRef, parts: Iterable[bytes], put: Callable[[str, bytes], object]) -> FilterRef:
    """Store the objects of a filter, named by their content, and return its entry with their names."""
    names: list[str] = []
    for part in parts:
        names.append(hashlib.sha256(part).hexdigest()[:32])
        put(filter_key(names[-1]), part)
    return replace(ref, parts=tuple(names))


def fresh_seed() -> int:
    """A random number that distinguishes the blocks of a new filter from those of all others, even of an equal text."""
    return int.from_bytes(os.urandom(4), "little")
