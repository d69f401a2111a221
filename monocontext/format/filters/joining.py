"""Update the filters of a text: reassign their columns to frames after an edit, and join small filters.

An edit drops the columns of changed frames by changing `FilterRef.runs`, in the root alone. Columns without a frame
stay in the stored object until the filter is joined with others.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from monocontext.errors import DamagedData, NotFound
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FilterRef, FilterRun, filter_key
from monocontext.records import NamedTuple, replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SMALL_FRAMES = 64  # a filter of at most this many frames is joined with the next one
MOST_RUNS = 512  # a filter whose frames are cut into more runs is joined with the later ones, to keep roots small
_MOST_FRAMES = 1 << 16  # the most columns of a joined filter
_MOST_BYTES = 64 << 20  # the largest filter that is joined with much smaller ones, since it is stored again
_ROWS_AT_ONCE_BYTES = 1 << 20  # the rows of filters to read or write at a time

Put = Callable[[str, bytes], object]
Get = Callable[[str], bytes]


class FrameChange(NamedTuple):
    """The frames [first, stop) of a text, which an edit replaces with others."""

    stale: int
    """The first frame, before `first`, whose column may cover text that is replaced; `first` if there is none."""
    first: int
    stop: int
    grown: int  # how many more frames there are afterwards; negative if fewer


def apply_changes(refs: Iterable[FilterRef], changes: Sequence[FrameChange]) -> tuple[FilterRef, ...]:
    """The filters of a text after `changes`, which are in order: without the columns of replaced frames, and without
    columns that cover replaced text. A filter that loses all columns is left out."""
    stops = [change.stop for change in changes]
    shifts = list(accumulate((change.grown for change in changes), initial=0))

    def remaining_runs(ref: FilterRef) -> Iterator[FilterRun]:
        for run in ref.runs:
            frame = run.first_frame
            number = bisect_right(stops, frame)  # the first change that ends after `frame`, if any does
            while frame < run.stop_frame:
                change = changes[number] if number < len(changes) else None
                stop = min(change.stale, run.stop_frame) if change else run.stop_frame
                if frame < stop:
                    column = run.first_column + frame - run.first_frame
                    yield FilterRun(frame + shifts[number], column, stop - frame)
                if change is None:
                    break
                frame = max(stop, frame, change.stop)
                number += 1

    result = ((ref, tuple(remaining_runs(ref))) for ref in refs)
    return tuple(ref if runs == ref.runs else replace(ref, runs=runs) for ref, runs in result if runs)


def runs_of(frames: Iterable[range]) -> tuple[FilterRun, ...]:
    """The runs of a filter whose columns belong to these ranges of frames, in order."""
    runs: list[FilterRun] = []
    column = 0
    for numbers in frames:
        if runs and runs[-1].stop_frame == numbers.start:
            runs[-1] = runs[-1]._replace(frames=runs[-1].frames + len(numbers))
        else:
            runs.append(FilterRun(numbers.start, column, len(numbers)))
        column += len(numbers)
    return tuple(runs)


def append_filters(
    refs: Sequence[FilterRef], new: Sequence[FilterRef], get: Get, put: Put, *, most_times: int = 2
) -> tuple[FilterRef, ...]:
    """All filters of a text: the old ones in `refs`, then the `new` ones (1 GET for each joined object, 1 PUT). If all
    can be read, one with at most twice the frames of all later ones (small: `most_times`) is joined with them."""
    kept = _count_kept(refs, new, most_times) if new else len(refs)
    if kept == len(refs):
        return (*refs, *new)
    try:
        return (*refs[:kept], join([*refs[kept:], *new], get, put))
    except (DamagedData, NotFound):
        return (*refs, *new)


def _count_kept(refs: Sequence[FilterRef], new: Sequence[FilterRef], most_times: int) -> int:
    """The number of filters that stay as they are; those after them are joined with the new ones."""
    kept, frames = len(refs), sum(ref.frames for ref in new)
    while kept:
        before = refs[kept - 1]
        times = most_times if FilterLayout(before).size_bytes <= _MOST_BYTES else 2
        if before.frames > max(times * frames, SMALL_FRAMES):
            break
        kept -= 1
        frames += before.frames
    kept = next((number for number, ref in enumerate(refs[:kept]) if len(ref.runs) > MOST_RUNS), kept)
    while kept < len(refs) and not can_join([*refs[kept:], *new]):
        kept += 1
    return kept


def can_join(refs: Sequence[FilterRef]) -> bool:
    """Whether filters can be joined: rows mean the same, none loses over half of its rows, and columns are few."""
    if len({(ref.fold, ref.overlap_bytes) for ref in refs}) > 1 or sum(ref.frames for ref in refs) > _MOST_FRAMES:
        return False
    return max(ref.bits for ref in refs) - _joined_bits(refs) < 2


def _joined_bits(refs: Sequence[FilterRef]) -> int:
    """The `bits` of a joined filter: the most that keep it within 1.5 times the size of the filters that it joins."""
    frames, size = sum(ref.frames for ref in refs), sum(ref.frames << ref.bits for ref in refs)
    return next(bits for bits in range(max(ref.bits for ref in refs), 0, -1) if frames << bits <= size * 3 // 2)


def join(refs: Sequence[FilterRef], get: Get, put: Put) -> FilterRef:
    """Store one filter with the columns of several, and return its entry (1 GET and 1 PUT for each object)."""
    import numpy as np

    from monocontext.format.filters.columns import StoredRows

    pieces = sorted((run, number) for number, ref in enumerate(refs) for run in ref.runs)
    bits = _joined_bits(refs)
    runs = runs_of(range(run.first_frame, run.stop_frame) for run, _ in pieces)
    width = sum(run.frames for run, _ in pieces)
    joined = replace(refs[0], bits=bits, width=width, runs=runs, parts=(), seed=fresh_seed())
    stored = [StoredRows(ref, get) for ref in refs]
    if errors := [error for source in stored for error in source.errors]:
        raise errors[0]

    def rows(start: int, stop: int) -> NDArray[np.uint8]:
        tables = [source.read(start, stop, bits) for source in stored]
        columns = [tables[number][:, run.first_column : run.first_column + run.frames] for run, number in pieces]
        return np.packbits(np.concatenate(columns, axis=1), axis=1, bitorder="little")

    return put_filter(joined, rows, put)


def clear_unused(ref: FilterRef, get: Get, put: Put) -> FilterRef:
    """Store a filter again without the bits of columns that have no frame, and return its entry (1 GET, 1 PUT each)."""
    import numpy as np

    from monocontext.format.filters.columns import StoredRows

    stored = StoredRows(ref, get)
    if stored.errors:
        raise stored.errors[0]
    columns = np.zeros(ref.width, np.uint8)
    for run in ref.runs:
        columns[run.first_column : run.first_column + run.frames] = 1
    kept = np.packbits(columns, bitorder="little")
    return put_filter(replace(ref, seed=fresh_seed()), lambda start, stop: stored.rows[start:stop] & kept, put)


def put_filter(ref: FilterRef, rows: Callable[[int, int], NDArray[np.uint8]], put: Put) -> FilterRef:
    """Store the objects of a filter, named by their content, and return its entry with their names.
    `rows(start, stop)` returns these rows, eight columns in each byte; it is asked for about 1 MiB at once."""
    layout = FilterLayout(ref)
    step = max(_ROWS_AT_ONCE_BYTES // max(ref.width, 1), layout.rows_per_block)
    step -= step % layout.rows_per_block
    names: list[str] = []
    counts: list[int] = []
    for first, last in layout.row_ranges():
        blocks: list[bytes] = []
        for start in range(first, last, step):
            packed = rows(start, min(start + step, last))
            blocks.append(layout.encode(packed, start))
            if not layout.is_small:
                counts += _bits_of_rows(packed)
        if last == layout.rows and not layout.is_small:
            blocks.append(layout.encode_sparsity(counts[: 1 << ref.bits]))
        part = b"".join(blocks)
        names.append(hashlib.sha256(part).hexdigest()[:32])
        put(filter_key(names[-1]), part)
    return replace(ref, parts=tuple(names))


def _bits_of_rows(rows: NDArray[np.uint8]) -> list[int]:
    """The number of set bits of each row: those among two neighbours are added, then those among four and eight."""
    twos = rows - (rows >> 1 & 0x55)
    fours = (twos & 0x33) + (twos >> 2 & 0x33)
    return list((fours + (fours >> 4) & 0x0F).sum(1, "u4").tolist())


def fresh_seed() -> int:
    """A random number that tells the blocks of a new filter from those of every other one, even of the same text."""
    return int.from_bytes(os.urandom(4), "little")
