"""Make search filters for frames of a stored text: it is read again, and their columns become one filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from monocontext.format.filters.building import (
    LEAST_FRAME_BYTES,
    LEAST_FRAMES,
    Columns,
    add_columns,
    fold_head,
    overlap_for,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef
from monocontext.records import replace
from monocontext.writing.stored_text import StoredText


def wants_filters(root: Manifest) -> bool:
    """Whether a text has enough frames, and large enough ones, for filters."""
    return root.frames >= LEAST_FRAMES and root.frame_bytes >= LEAST_FRAME_BYTES


def gaps(refs: Sequence[FilterRef], frames: int) -> list[tuple[int, int]]:
    """The ranges of a text's frames that have no filter column."""
    ranges, start = [], 0
    for first, _, count in sorted(run for ref in refs for run in ref.runs):
        if start < first:
            ranges.append((start, first))
        start = first + count
    return [*ranges, (start, frames)] if start < frames else ranges


def covered(text: StoredText, ranges: Iterable[tuple[int, int]], *, strict: bool = False) -> Manifest:
    """The root of a text, with a new filter for these ranges of frames, which have none, joined with small ones.

    Reads their text, and some after each range (1 GET for some 4 MiB), in memory bounded by about 64 MiB; 1 PUT for
    each 16 MiB of filter. Frames that may not be read stay without a column; with `strict`, they raise `ForeignObject`.
    """
    root = text.root
    columns = Columns(overlap_for(root.frame_bytes), 1)
    least_after = 3 * columns.reach  # case folding can shrink a character to a third of its bytes
    if root.sources and not strict:
        ranges = _readable(text, ranges, least_after)
    parts = [(first, stop, _end_after(text, stop, least_after)) for first, stop in ranges]
    texts = text.decoded(frame for first, _, end in parts for frame in text.frames(first, end))
    for first, stop, end in parts:
        for frame in islice(texts, stop - first):
            text.report(len(frame))
            columns.feed(frame)
        columns.end(fold_head(list(islice(texts, end - stop)), columns.reach))
    columns.finish()
    numbers = [(first, stop - first) for first, stop, _ in parts]
    return replace(root, filters=add_columns(root.filters, columns, numbers, text.get, text.store.put))


def _end_after(text: StoredText, number: int, least_bytes: int) -> int:
    """The number of the first frame that has at least so many bytes of text between it and the frame `number`."""
    size = 0
    while size < least_bytes and number < text.root.frames:
        size += text.frame(number).bytes
        number += 1
    return number


def _readable(text: StoredText, ranges: Iterable[tuple[int, int]], reach: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of ranges whose frames, and `reach` bytes after each, may be read."""

    def may_read(number: int) -> bool:
        return all(map(text.may_read, text.frames(number, _end_after(text, number + 1, reach))))

    for start, stop in ranges:
        for is_readable, numbers in groupby(range(start, stop), key=may_read):
            if is_readable:
                first, *others = numbers
                yield first, first + len(others) + 1
