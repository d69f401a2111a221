"""Make search filters for frames of a stored text: it is read again, and their columns become one filter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from monocontext.format.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES, Columns, add_columns
from monocontext.format.filters.frame_column import fold_head, overlap_for
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef
from monocontext.records import replace
from monocontext.stores.parallel import in_order
from monocontext.writing.stored_text import StoredText

_FRAMES_AT_ONCE = 16
"""The frames that one thread reads: 4 MiB of text."""
_THREADS = 8


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
    if root.sources and not strict:
        ranges = _readable(text, ranges, 3 * columns.reach)

    def load(part: tuple[int, int, bool]) -> tuple[list[bytes], bytes]:
        first, stop, is_last = part
        return list(text.texts(first, stop)), fold_head(_following(text, stop), columns.reach) if is_last else b""

    parts = list(_cut(ranges))
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-cover") as threads:
        loaded = in_order(threads, load, iter(parts), _THREADS)
        for (_, _, is_last), (frames, text_after) in zip(parts, loaded, strict=True):
            text.report(sum(map(len, frames)))
            for frame in frames:
                columns.feed(frame)
            if is_last:
                columns.end(text_after)
    columns.finish()
    numbers = [(first, stop - first) for first, stop, _ in parts]
    return replace(root, filters=add_columns(root.filters, columns, numbers, text.get, text.store.put))


def _readable(text: StoredText, ranges: Iterable[tuple[int, int]], reach: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of ranges whose frames, and `reach` bytes after each, may be read."""
    for start, stop in ranges:
        first = start
        for number in range(start, stop):
            last, after = number, 0
            while (is_readable := text.may_read(text.frame(last))) and after < reach and last < text.root.frames - 1:
                last += 1
                after += text.frame(last).bytes
            if not is_readable:
                if first < number:
                    yield first, number
                first = number + 1
        if first < stop:
            yield first, stop


def _cut(ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int, bool]]:
    """Yield parts of ranges: the first frame, the one after the last, and whether it ends its range."""
    for start, end in ranges:
        for first in range(start, end, _FRAMES_AT_ONCE):
            stop = min(first + _FRAMES_AT_ONCE, end)
            yield first, stop, stop == end


def _following(text: StoredText, first: int) -> Iterator[bytes]:
    """Yield the text of the frames from `first` on (1 GET each)."""
    return (text.reader.load(frame).data for frame in text.frames(first, text.root.frames))
