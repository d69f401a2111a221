"""Index plain text objects with workers that read them: the driver lists names, and receives records of frames.

A part is some neighbouring objects, or a range of a large one. Each begins a frame, as each object does; only the
letters after a part, which the columns of its last frames cover, are read twice. Workers leave columns in the store.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from functools import cache, partial

from monocontext.errors import ContextChanged, NotFound
from monocontext.format.filters.frame_column import fold_head
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing import batches
from monocontext.writing.batches import PARTS_AHEAD, Batch, compute_columns
from monocontext.writing.object_text import ObjectRange, read_objects
from monocontext.writing.place import open_store_at
from monocontext.writing.segments import SegmentLayout, Written
from monocontext.writing.stored_columns import make_filters, store_columns

_MOST = 256
"""Objects in a part."""
_FOLLOWING = 16
"""The number of ranges after a part that its worker knows."""
_HEAD_BYTES = 64 << 10
"""The length of the first read after a part: columns cover some 4 KB of the text there."""


@dataclass(frozen=True, slots=True)
class _Task:
    """Neighbouring ranges for one worker."""

    ranges: Sequence[ObjectRange]
    following: Sequence[ObjectRange]
    """The first ranges after them."""
    is_all: bool
    """Whether `following` has all ranges after them."""


@dataclass(slots=True)
class PartResult:
    """The result of indexing the ranges of a task."""

    runs: list[FrameRun] = field(default_factory=list)
    records: list[FrameRecord] = field(default_factory=list)
    final_newline: bool = False
    end_byte: int = 0
    """The byte at which its last frame ends, in the object of that frame."""
    objects: int = 0
    """The number of objects whose end it holds."""
    notes: list[str] = field(default_factory=list)
    columns_key: str = ""
    """The object with the columns of its frames, until a worker has made filters of all columns."""


def index_parts(
    url: str | Store,
    options: StoreOptions,
    ranges: Sequence[ObjectRange],
    layout: SegmentLayout,
    executor: Executor,
    add: Callable[[PartResult], None],
) -> Written:
    """Index ranges of objects with the workers of an executor. `add` is called with the result of each task.

    If a worker does not find a file as it was listed, the driver reads it.
    """
    written = Written()
    columns = layout.columns()
    reach = columns.reach if columns else 0
    parts = [part for each in ranges for part in _cut(each)]
    work = partial(_read_part, url=url, options=options, layout=layout, reach=reach)
    tasks = list(_tasks(parts))
    keys, end_byte = [], 0
    for task, given in zip(tasks, in_order(executor, work, tasks, PARTS_AHEAD), strict=True):
        found = given or _read_here(task, parts, work)
        _join(written, end_byte, found)
        end_byte = found.end_byte if found.runs else end_byte
        keys += [found.columns_key] if found.columns_key else []
        add(found)
    if keys:
        written.filters = make_filters(executor, keys, url, options, layout)
    return written


def _cut(whole: ObjectRange) -> Iterator[ObjectRange]:
    rest = whole
    while rest.stop - rest.start > 2 * batches.BATCH_BYTES:
        border = rest.start + batches.BATCH_BYTES
        yield replace(rest, stop=border)
        rest = replace(rest, start=border)
    yield rest


def _tasks(parts: Sequence[ObjectRange]) -> Iterator[_Task]:
    first = size = 0
    for number, part in enumerate(parts):
        length = part.stop - part.start
        if number > first and (size + length > batches.BATCH_BYTES or number - first == _MOST):
            yield _task(parts, first, number, _FOLLOWING)
            first, size = number, 0
        size += length
    if parts:
        yield _task(parts, first, len(parts), _FOLLOWING)


def _task(parts: Sequence[ObjectRange], first: int, stop: int, following: int) -> _Task:
    return _Task(parts[first:stop], parts[stop : stop + following], stop + following >= len(parts))


def _read_here(task: _Task, parts: Sequence[ObjectRange], work: Callable[..., PartResult | None]) -> PartResult:
    """Do a task that a worker gave back: it found another file, or too little text in `following`."""
    found = work(task, is_driver=True)
    if found is None:
        stop = parts.index(task.ranges[-1]) + 1
        found = work(_task(parts, stop - len(task.ranges), stop, len(parts)), is_driver=True)
    assert found is not None
    return found


def _join(written: Written, end_byte: int, found: PartResult) -> None:
    """Add the frames of the next part. If they follow the last run, which ends at `end_byte`, they extend it."""
    runs = found.runs
    if written.runs and runs:
        last, run = written.runs[-1], runs[0]
        if (last.object, last.etag, end_byte) == (run.object, run.etag, run.offset):
            written.runs[-1] = replace(last, frames=last.frames + run.frames)
            runs = runs[1:]
    written.runs += runs
    written.records += found.records
    if found.records:
        written.final_newline = found.final_newline


# -- a worker ----------------------------------------------------------------------------------------------------------


def _read_part(
    task: _Task, *, url: str | Store, options: StoreOptions, layout: SegmentLayout, reach: int, is_driver: bool = False
) -> PartResult | None:
    """Cut the objects of a task into frames, and store their columns.

    Returns None if `following` has too little text, or if a worker does not find a file as it was listed.
    """
    found = PartResult()
    frames: list[bytes] = []
    with ExitStack() as stack:

        @cache
        def store_of(place: str) -> Store:
            return stack.enter_context(open_store_at(place, options if place.startswith("s3:") else {}))

        try:
            for text in read_objects(task.ranges, store_of, found.notes.append):
                count = len(frames)
                for frame, record in text.frames(layout.frame_bytes):
                    frames.append(frame)
                    found.records.append(record)
                found.objects += text.source.is_last
                if len(frames) > count:
                    etag = text.source.info.etag
                    found.runs.append(FrameRun(text.source.url, text.offset, len(frames) - count, "raw", etag))
                    found.end_byte = text.offset + sum(map(len, frames[count:]))
            text_after = b""
            for following in task.following if reach else ():  # one after the other: the first is nearly always enough
                text_after += _fold_head(following, store_of, reach - len(text_after))
                if len(text_after) == reach:
                    break
        except (NotFound, ContextChanged):
            if is_driver or not task.ranges[0].place.startswith("file:"):
                raise
            return None
    if len(text_after) < reach and not task.is_all:
        return None
    found.final_newline = bool(frames) and frames[-1].endswith(b"\n")
    if reach and frames:
        with open_store_at(url, options) as own:
            found.columns_key = store_columns(own, list(compute_columns(Batch(frames, text_after), reach)))
    return found


def _fold_head(source: ObjectRange, store_of: Callable[[str], Store], size: int) -> bytes:
    """The first `size` bytes of a range's folded text, or all of them if there are fewer."""
    head = b""
    for stop in (min(source.start + _HEAD_BYTES, source.stop), source.stop):
        for text in read_objects([replace(source, stop=stop)], store_of):
            head = fold_head((frame for frame, _ in text.frames(_HEAD_BYTES)), size)
        if len(head) == size or stop == source.stop:  # folding drops marks, which may fill the beginning
            break
    return head
