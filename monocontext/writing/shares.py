"""Store or index a text with the workers of an executor: each takes a share of the text, stores its frames and their
search filter, and returns their records; the driver joins these.

A share begins a frame, so no worker needs the text of another. The columns of the last frames of a share would cover
text of the next one, so these frames have none until the commit (`appended`). A share is some text that the driver
sends, or names files or objects that the worker reads. A worker that does not find a file as it was listed gives the
share back, and the driver does it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from functools import cache, partial
from itertools import chain, pairwise
from pathlib import Path
from typing import Any, TypeVar

from monocontext.errors import AccessDenied, ContextChanged, InvalidText, NotFound
from monocontext.format.filters.building import LEAST_FRAMES, Columns
from monocontext.format.filters.frame_column import overlap_for
from monocontext.format.filters.joining import Moved, can_join, join, moved
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import dataclass, field, replace
from monocontext.stores import options_for
from monocontext.stores.parallel import AHEAD, in_order
from monocontext.stores.protocol import Store
from monocontext.writing.cover import moved_by
from monocontext.writing.documents import DocumentRows, RecordedRows
from monocontext.writing.input_options import InputOptions
from monocontext.writing.inputs import read_files
from monocontext.writing.object_text import ObjectRange, index_objects
from monocontext.writing.place import open_store_at, own_options
from monocontext.writing.segments import Progress, SegmentLayout, Written, cut_frames, write_segments
from monocontext.writing.sources import Source, find_files, may_be_cut, note_left_out

SHARE_BYTES = 32 << 20
"""Text in a share: about two segments, a second of one core's time."""
_SHARES_AHEAD = 64
"""Shares in progress at once where workers read the text themselves: only their small results wait in memory."""
_MOST_OBJECTS = 256
"""Files or objects in a share."""
_JOINED = 8
"""The filters that a worker joins at once: it holds 16 MiB of each. Up to 65,536 frames, as in one upload."""
_MOST_JOINED_FRAMES = 1 << 16

_T = TypeVar("_T")
_Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Target:
    """The context to write, as a worker opens it, and how."""

    url: str | Store
    options: StoreOptions
    layout: SegmentLayout

    def store(self, stack: ExitStack) -> Store:
        return stack.enter_context(open_store_at(self.url, own_options(self.url, self.options)))


@dataclass(slots=True)
class Result:
    """The result of a share."""

    written: Written = field(default_factory=Written)
    rows: RecordedRows = field(default_factory=RecordedRows)
    """The documents of the text."""
    left_out: dict[str, list[str]] = field(default_factory=dict)
    """The files that are no text, by folder (`sources.note_left_out`)."""
    notes: list[str] = field(default_factory=list)
    objects: int = 0
    """The objects whose end an index has."""


def _cut(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Yield the items in shares."""
    share: list[_T] = []
    size = 0
    for item in items:
        length = size_of(item)
        if share and size + length > SHARE_BYTES:
            yield share
            share, size = [], 0
        share.append(item)
        size += length
    if share:
        yield share


def _ranges(size: int) -> list[tuple[int, int]]:
    """The ranges of bytes of a file or object that are items of shares: one, unless it is large."""
    if size <= 2 * SHARE_BYTES:
        return [(0, size)]
    return [(start, min(start + SHARE_BYTES, size)) for start in range(0, size, SHARE_BYTES)]


def _size_of(part: Source | ObjectRange) -> int:
    return max(part.stop - part.start, SHARE_BYTES // _MOST_OBJECTS)


# -- text that the driver sends ----------------------------------------------------------------------------------------


def write_text_shares(
    url: str | Store,
    options: StoreOptions,
    pieces: Iterable[bytes],
    layout: SegmentLayout,
    executor: Executor,
    progress: _Report,
) -> Written:
    """Store a text as `segments.write_segments` does, in the same frames, but on the workers of an executor.

    Holds about 8 shares of text in memory. Workers in threads can use any store; those in other processes need a URL.
    """
    target = _Target(url, options, layout)
    shares = _cut(cut_frames(pieces, layout.frame_bytes), len)
    results = in_order(executor, partial(_store_text, target), shares, AHEAD)
    return _join(results, target, executor, progress)


def _store_text(target: _Target, frames: list[bytes]) -> Result:
    return Result(_store(target, frames))


# -- files -------------------------------------------------------------------------------------------------------------


class _Changed(Exception):
    """A file is missing or differs from the list; the argument is its name."""


def can_share(sources: object, reading: InputOptions) -> bool:
    """Whether workers may read these sources: files and folders, in UTF-8."""
    if reading.encoding.lower().replace("_", "-") not in ("utf-8", "utf8") or reading.errors != "strict":
        return False
    if isinstance(sources, list | tuple):
        return bool(sources) and all(isinstance(source, os.PathLike) for source in sources)
    return isinstance(sources, os.PathLike)


def write_file_shares(
    url: str | Store,
    options: StoreOptions,
    sources: Any,
    reading: InputOptions,
    rows: DocumentRows,
    layout: SegmentLayout,
    executor: Executor,
    progress: _Report,
) -> Written:
    """Store the text of files like `write_text_shares`; workers read them, and the driver holds no text.

    Where the last files of a folder are no text, a newline may follow the text before them, outside of any document.
    """
    target = _Target(url, options, layout)
    paths = [Path(source) for source in (sources if isinstance(sources, list | tuple) else [sources])]
    parts = (part for source in find_files(paths, reading) if source.is_selected for part in _parts(source, reading))
    shares = (
        (share, bool(reading.header and following and following[0].where and following[0].start == 0))
        for share, following in pairwise(chain(_cut(parts, _size_of), [[]]))
    )
    left_out: dict[str, list[str]] = {}

    def reported() -> Iterator[Result]:
        for result in _results(executor, partial(_store_files, target, replace(reading, note=_no_note)), shares):
            result.rows.replay(rows)
            for where, names in result.left_out.items():
                left_out.setdefault(where, []).extend(names)
            for note in result.notes:
                reading.note(note)
            yield result

    written = _join(reported(), target, executor, progress)
    note_left_out(left_out, reading)
    return written


def _no_note(text: str) -> None:
    """Ignore a note: the driver's own function may not be picklable."""


def _parts(source: Source, reading: InputOptions) -> Iterator[Source]:
    """Yield a file, or ranges of a large one."""
    ranges = _ranges(source.size_bytes)
    if len(ranges) == 1 or not may_be_cut(source, reading):
        yield source
    else:
        yield from (replace(source, range=limits) for limits in ranges)


def _store_files(
    target: _Target, reading: InputOptions, share: tuple[list[Source], bool], is_driver: bool = False
) -> Result | None:
    """Read the files of a share, and store their text, with a newline at its end if a header line follows it.

    Returns None if a worker does not find a file as it was listed. The driver accepts a file that has grown, and raises
    `InvalidText` for one of which it reads only a range and that was written over.
    """
    parts, ends_line = share
    result = Result()
    try:
        for part in parts:
            _check_listed(part, is_driver)
        reading = replace(reading, note=result.notes.append)
        result.written = _store(target, read_files(parts, reading, result.rows, result.left_out, ends_line))
    except _Changed as error:
        if is_driver:
            raise InvalidText(f"{error}: it changed while it was read; start again") from None
        return None
    except OSError:
        if is_driver:
            raise
        return None
    return result


def _check_listed(part: Source, is_driver: bool) -> None:
    """Raise `_Changed` for a file that differs from the list. The driver accepts one that has grown, and any if it
    reads the whole of it."""
    with part.open() as opened:
        now = os.fstat(opened.fileno())
    is_same = {"bytes": now.st_size, "modified_ns": now.st_mtime_ns} == part.facts
    if not is_same and not (is_driver and (part.range is None or now.st_size > part.size_bytes)):
        raise _Changed(part.label)


# -- objects -----------------------------------------------------------------------------------------------------------


def index_shares(
    url: str | Store,
    options: StoreOptions,
    objects: Sequence[ObjectRange],
    layout: SegmentLayout,
    executor: Executor,
    note: Callable[[str], None],
    progress: _Report,
) -> Written:
    """Index objects with the workers of an executor, large ones in ranges, each of which begins a frame."""
    target = _Target(url, options, layout)
    parts = (replace(item, start=first, stop=stop) for item in objects for first, stop in _ranges(item.info.size_bytes))

    def reported() -> Iterator[Result]:
        for result in _results(executor, partial(_index, target), _cut(parts, _size_of)):
            for text in result.notes:
                note(text)
            yield result

    return _join(reported(), target, executor, progress)


def _index(target: _Target, ranges: list[ObjectRange], is_driver: bool = False) -> Result | None:
    """Cut the objects of a share into frames, and store their filter. Returns None if a worker does not find a file as
    it was listed."""
    result = Result(objects=sum(item.is_last for item in ranges))
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, target.options)))

        try:
            columns = target.layout.columns(LEAST_FRAMES)
            written = index_objects(ranges, store_of, target.layout.frame_bytes, columns, result.notes.append)
        except (NotFound, ContextChanged):
            if is_driver or not ranges[0].place.startswith("file:"):
                raise
            return None
        result.written = _with_filters(written, target.store(stack), target.layout)
    return result


# -- shares of any kind ------------------------------------------------------------------------------------------------


def _results(executor: Executor, work: Callable[..., Result | None], shares: Iterable[_T]) -> Iterator[Result]:
    """Yield the result of each share. The driver does those that workers give back."""
    taken: list[_T] = []

    def noted() -> Iterator[_T]:
        for share in shares:
            taken.append(share)
            yield share

    for result in in_order(executor, work, noted(), _SHARES_AHEAD):
        share = taken.pop(0)
        outcome = result or work(share, is_driver=True)
        assert outcome is not None
        yield outcome


def _store(target: _Target, pieces: Iterable[bytes]) -> Written:
    """Store the frames of a share and their filter. Runs in any thread or process."""
    with ExitStack() as stack:
        store = target.store(stack)
        written = write_segments(store, pieces, target.layout, frames_before=LEAST_FRAMES)
        if sum(record.bytes for record in written.records) > SHARE_BYTES // 2:
            written.gathered.stored = None  # so that not all of a large text is sent to the driver
        return _with_filters(written, store, target.layout)


def _with_filters(written: Written, store: Store, layout: SegmentLayout) -> Written:
    """Store the filters of a share, without the columns of its last frames, since other text may follow."""
    refs = written.columns.store(store.put) if written.columns and written.columns.frames else ()
    stop = stale = len(written.records)
    remaining = 3 * Columns(overlap_for(layout.frame_bytes), 1).reach  # folding may shrink a character to a third
    while stale and remaining > 0:
        stale -= 1
        remaining -= written.records[stale].bytes
    written.columns, written.filters = None, moved(refs, [Moved(stale, stop, stop, 0)])
    drop_filters(store, refs, written.filters)
    return written


def _join(results: Iterable[Result], target: _Target, executor: Executor, progress: _Report) -> Written:
    """Join the results of shares, in order, into that of the whole text, and report the progress."""
    whole, done = Written(layout=target.layout), Progress()
    filters: list[FilterRef] = []
    end_byte = 0
    for result in results:
        new = result.written
        filters += moved_by(new.filters or (), len(whole.records))
        runs = list(new.runs)
        if whole.runs and runs:
            last, run = whole.runs[-1], runs[0]
            if (last.object, last.etag, end_byte) == (run.object, run.etag, run.offset):  # a range after another one
                whole.runs[-1] = replace(last, frames=last.frames + run.frames)
                del runs[0]
        whole.runs += runs
        if new.runs:
            last = new.runs[-1]
            end_byte = last.offset + sum(record.stored_bytes for record in new.records[-last.frames :])
        whole.records += new.records
        if new.records:
            whole.final_newline = new.final_newline
        whole.gathered.extend(new.gathered)
        done = Progress(
            done.text_bytes + sum(record.bytes for record in new.records),
            done.stored_bytes + sum(record.stored_bytes for record in new.records),
            done.segments + (result.objects or len(new.runs)),
        )
        progress(done)
    whole.filters = _join_filters(filters, target, executor)
    return whole


def _join_filters(filters: Sequence[FilterRef], target: _Target, executor: Executor) -> tuple[FilterRef, ...]:
    """Let workers join the filters of shares into large ones, since a search reads a row of each."""
    refs = list(filters)
    while True:
        groups: list[list[FilterRef]] = []
        for ref in refs:
            last = groups[-1] if groups else []
            is_full = len(last) == _JOINED or sum(item.frames for item in last) + ref.frames > _MOST_JOINED_FRAMES
            if last and not is_full and can_join([*last, ref]):
                last.append(ref)
            else:
                groups.append([ref])
        if len(groups) == len(refs):
            return tuple(refs)
        refs = list(in_order(executor, partial(_join_here, target), groups))


def _join_here(target: _Target, refs: Sequence[FilterRef]) -> FilterRef:
    if len(refs) == 1:
        return refs[0]
    with ExitStack() as stack:
        store = target.store(stack)
        joined = join(refs, lambda key: store.get(key).data, store.put)
        drop_filters(store, refs, [joined])
    return joined


def drop_filters(store: Store, old: Iterable[FilterRef], new: Iterable[FilterRef]) -> None:
    """Remove the filters that were joined into others (1 DELETE each). What may not be deleted stays until `gc`."""
    kept = {key for ref in new for key in ref.keys}
    with suppress(AccessDenied):
        for key in (key for ref in old for key in ref.keys if key not in kept):
            store.delete(key)
