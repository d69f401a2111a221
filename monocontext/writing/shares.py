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
from itertools import chain, islice
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
from monocontext.writing.decoding import PIECE_BYTES, Decoder, NotText, Utf8
from monocontext.writing.documents import DocumentRows
from monocontext.writing.input_options import InputOptions
from monocontext.writing.object_text import BORDER_BYTES, ObjectRange, border_in, index_objects
from monocontext.writing.place import open_store_at, own_options
from monocontext.writing.segments import Progress, SegmentLayout, Written, cut_frames, write_segments
from monocontext.writing.sources import Source, describe, find_files, may_be_cut, note_left_out, read_source

SHARE_BYTES = 32 << 20
"""Text in a share: about two segments, a second of one core's time."""
_SHARES_AHEAD = 64
"""Shares in progress at once where workers read the text themselves: only their small results wait in memory."""
_MOST_OBJECTS = 256
"""Objects in a share."""
_JOINED = 8
"""The filters that a worker joins at once: it holds 16 MiB of each. Up to 65,536 frames, as in one upload."""
_MOST_JOINED_FRAMES = 1 << 16

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class _Place:
    """The context to write, as a worker opens it, and how."""

    url: str | Store
    options: StoreOptions
    layout: SegmentLayout
    frames_before: int = 0

    def least(self, is_all: bool) -> int:
        """The `frames_before` of a share's columns: text of several shares is long enough for filters."""
        return self.frames_before if is_all else LEAST_FRAMES


@dataclass(slots=True)
class Counts:
    """The size of a part's text: characters, bytes and newlines."""

    header: tuple[int, int, int] = (0, 0, 0)
    """The size of the header line before its document."""
    text: tuple[int, int, int] = (0, 0, 0)
    left_out: str = ""
    """The file and why it is left out; empty if it is not."""


@dataclass(slots=True)
class Result:
    """The result of a share."""

    written: Written
    counts: list[Counts] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    adds_newline: bool = False
    """Whether a newline follows the last part, which belongs to no document."""
    objects: int = 0
    """The objects whose end an index has."""


# -- text that the driver sends ----------------------------------------------------------------------------------------


def write_text_shares(
    url: str | Store,
    options: StoreOptions,
    pieces: Iterable[bytes],
    layout: SegmentLayout,
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
    frames_before: int = 0,
) -> Written:
    """Store a text as `segments.write_segments` does, in the same frames, but on the workers of an executor.

    Holds about 8 shares of text in memory. Workers in threads can use any store; those in other processes need a URL.
    """
    location = _Place(url, options, layout, frames_before)
    shares = _with_ends(_cut_text(cut_frames(pieces, layout.frame_bytes)))
    return _join(in_order(executor, partial(_store_text, location), shares, AHEAD), location, executor, progress)


def _cut_text(frames: Iterable[bytes]) -> Iterator[list[bytes]]:
    share: list[bytes] = []
    for frame in frames:
        if share and sum(map(len, share)) + len(frame) > SHARE_BYTES:
            yield share
            share = []
        share.append(frame)
    if share:
        yield share


def _store_text(place: _Place, share: tuple[list[bytes], bool, bool]) -> Result:
    frames, is_first, is_last = share
    return Result(_store(place, frames, is_first, is_last))


# -- files -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes [start, stop) of a file; both ends are between characters and not inside CR LF."""

    source: Source
    header: str
    """The header line before the document; empty for none."""
    start: int
    stop: int

    @property
    def is_last(self) -> bool:
        return bool(self.stop == self.source.facts["bytes"])

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.is_last


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
    progress: Callable[[Progress], None] | None = None,
) -> Written:
    """Store the text of files like `write_text_shares`; workers read them, and the driver holds no text.

    Where the last files of a folder are no text, a newline may follow the text before them, outside of any document.
    """
    location = _Place(url, options, layout)
    work = partial(_store_files, location, replace(reading, note=_no_note))
    paths = [Path(source) for source in (sources if isinstance(sources, list | tuple) else [sources])]
    left_out: dict[str, list[str]] = {}

    def counted() -> Iterator[Result]:
        for share, result in _results(executor, work, _with_ends(_cut_parts(_parts(paths, reading)))):
            for part, counts in zip(share[0][0], result.counts, strict=True):
                _count(rows, part, counts, left_out)
            if result.adds_newline:
                rows.add_counted_text(1, 1, 1)
            for note in result.notes:
                reading.note(note)
            yield result

    written = _join(counted(), location, executor, progress)
    note_left_out(left_out, reading)
    return written


def _no_note(text: str) -> None:
    """Ignore a note: the driver's own function may not be picklable."""


def _count(rows: DocumentRows, part: Part, counts: Counts, left_out: dict[str, list[str]]) -> None:
    if counts.left_out:
        left_out.setdefault(part.source.where, []).append(counts.left_out)
        return
    if part.start == 0:
        rows.add_counted_text(*counts.header)
        rows.begin(part.source.name)
    rows.add_counted_text(*counts.text)
    if part.is_last:
        rows.end()


def _parts(paths: Sequence[Path], reading: InputOptions) -> Iterator[Part]:
    """Yield each file as one part, a large one as several."""
    for source in find_files(paths, reading):
        if not source.is_selected:
            continue
        header = reading.header.replace("{path}", source.name) if source.where else ""
        rest = Part(source, header, 0, source.facts["bytes"])
        if rest.stop > 2 * SHARE_BYTES and may_be_cut(source, reading):
            with source.open() as opened:
                while rest.stop - rest.start > 2 * SHARE_BYTES:
                    opened.seek(rest.start + SHARE_BYTES - 1)
                    border = rest.start + SHARE_BYTES - 1 + border_in(opened.read(BORDER_BYTES))
                    yield replace(rest, stop=border)
                    rest = replace(rest, start=border)
        yield rest


def _cut_parts(parts: Iterable[Part]) -> Iterator[tuple[list[Part], bool]]:
    """Yield parts of about `SHARE_BYTES`, and whether a header line follows them."""
    share: list[Part] = []
    size = 0
    for part in parts:
        length = part.stop - part.start
        if share and size + length > SHARE_BYTES:
            yield share, bool(part.header) and part.start == 0
            share, size = [], 0
        share.append(part)
        size += length + len(part.header)
    if share:
        yield share, False


def _store_files(
    place: _Place,
    reading: InputOptions,
    share: tuple[tuple[list[Part], bool], bool, bool],
    is_driver: bool = False,
) -> Result | None:
    """Read the parts of a share, and store their text.

    Returns None if a worker does not find a file as it was listed. The driver accepts a file that has grown, and raises
    `InvalidText` for one of which it reads only a range and that was written over.
    """
    (parts, ends_line), is_first, is_last = share
    result = Result(Written())
    ours = replace(reading, note=result.notes.append)
    try:
        texts = _texts(parts, ends_line, ours, result, is_driver)
        result.written = _store(place, texts, is_first, is_last)
    except _Changed as error:
        if is_driver:
            raise InvalidText(f"{error}: it changed while it was read; start again") from None
        return None
    except OSError:
        if is_driver:
            raise
        return None
    return result


def _texts(
    parts: Iterable[Part], ends_line: bool, reading: InputOptions, result: Result, is_driver: bool
) -> Iterator[bytes]:
    """Yield the text of parts, and append the counts of each to `result`. With `ends_line`, it ends in a newline."""
    is_ended = True
    for part in parts:
        outcome = Counts()
        result.counts.append(outcome)
        _check_listed(part, is_driver)
        pieces = read_source(part.source, reading) if part.is_whole else _read_range(part, reading)
        try:
            first = list(islice(pieces, 1))
        except NotText as error:
            if not part.source.where or not part.is_whole:
                raise
            outcome.left_out = describe(part.source, error)
            continue
        if part.header and part.start == 0:
            header = ("" if is_ended else "\n") + part.header
            outcome.header = len(header), len(header.encode()), header.count("\n")
            is_ended = header.endswith("\n")
            yield header.encode()
        for data, characters in chain(first, pieces):
            before = outcome.text
            outcome.text = before[0] + characters, before[1] + len(data), before[2] + data.count(b"\n")
            if data:
                is_ended = data.endswith(b"\n")
                yield data
    if ends_line and not is_ended:
        result.adds_newline = True
        yield b"\n"


def _check_listed(part: Part, is_driver: bool) -> None:
    """Raise `_Changed` for a file that differs from the list. The driver accepts one that has grown, and any if it
    reads the whole of it."""
    with part.source.open() as opened:
        now = os.fstat(opened.fileno())
    facts = part.source.facts
    is_same = (now.st_size, now.st_mtime_ns) == (facts["bytes"], facts["modified_ns"])
    if not is_same and not (is_driver and (part.is_whole or now.st_size > facts["bytes"])):
        raise _Changed(part.source.label)


def _read_range(part: Part, reading: InputOptions) -> Iterator[Utf8]:
    """Yield the text of a range in pieces."""
    decoder = Decoder(part.source.label, reading, part.start)
    with part.source.open() as opened:
        opened.seek(part.start)
        remaining = part.stop - part.start
        while remaining:
            data = opened.read(min(PIECE_BYTES, remaining))
            if not data:
                raise _Changed(part.source.label)
            remaining -= len(data)
            yield decoder.feed(data)
    yield decoder.finish()


# -- objects -----------------------------------------------------------------------------------------------------------


def index_shares(
    url: str | Store,
    options: StoreOptions,
    ranges: Sequence[ObjectRange],
    layout: SegmentLayout,
    executor: Executor,
    note: Callable[[str], None],
    progress: Callable[[Progress], None] | None = None,
) -> Written:
    """Index objects with the workers of an executor, large ones in ranges, each of which begins a frame."""
    location = _Place(url, options, layout)
    shares = _with_ends(_cut_ranges([part for item in ranges for part in _ranges(item)]))

    def noted() -> Iterator[Result]:
        for _, result in _results(executor, partial(_index, location), shares):
            for text in result.notes:
                note(text)
            yield result

    return _join(noted(), location, executor, progress)


def _ranges(whole: ObjectRange) -> Iterator[ObjectRange]:
    rest = whole
    while rest.stop - rest.start > 2 * SHARE_BYTES:
        border = rest.start + SHARE_BYTES
        yield replace(rest, stop=border)
        rest = replace(rest, start=border)
    yield rest


def _cut_ranges(ranges: Iterable[ObjectRange]) -> Iterator[list[ObjectRange]]:
    share: list[ObjectRange] = []
    size = 0
    for item in ranges:
        length = item.stop - item.start
        if share and (size + length > SHARE_BYTES or len(share) == _MOST_OBJECTS):
            yield share
            share, size = [], 0
        share.append(item)
        size += length
    if share:
        yield share


def _index(place: _Place, share: tuple[list[ObjectRange], bool, bool], is_driver: bool = False) -> Result | None:
    """Cut the objects of a share into frames, and store their filter. Returns None if a worker does not find a file as
    it was listed."""
    ranges, is_first, is_last = share
    notes: list[str] = []
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, place.options)))

        try:
            columns = place.layout.columns(place.least(is_first and is_last))
            written = index_objects(ranges, store_of, place.layout.frame_bytes, columns, notes.append)
        except (NotFound, ContextChanged):
            if is_driver or not ranges[0].place.startswith("file:"):
                raise
            return None
    with open_store_at(place.url, own_options(place.url, place.options)) as own:
        _keep_filters(written, own, place.layout, is_last)
    return Result(written, notes=notes, objects=sum(item.is_last for item in ranges))


# -- shares of any kind ------------------------------------------------------------------------------------------------


def _with_ends(shares: Iterable[_T]) -> Iterator[tuple[_T, bool, bool]]:
    """Yield each share, and whether it is the first and whether it is the last one."""
    rest = iter(shares)
    now = list(islice(rest, 1))
    is_first = True
    while now:
        following = list(islice(rest, 1))
        yield now[0], is_first, not following
        now, is_first = following, False


def _results(
    executor: Executor, work: Callable[..., Result | None], shares: Iterable[_T]
) -> Iterator[tuple[_T, Result]]:
    """Yield each share with its result. The driver does those that workers give back."""
    taken: list[_T] = []

    def noted() -> Iterator[_T]:
        for share in shares:
            taken.append(share)
            yield share

    for result in in_order(executor, work, noted(), _SHARES_AHEAD):
        share = taken.pop(0)
        outcome = result or work(share, is_driver=True)
        assert outcome is not None
        yield share, outcome


def _store(place: _Place, pieces: Iterable[bytes], is_first: bool, is_last: bool) -> Written:
    """Store the frames of a share and their filter. Runs in any thread or process."""
    with open_store_at(place.url, own_options(place.url, place.options)) as store:
        written = write_segments(store, pieces, place.layout, None, place.least(is_first and is_last))
        _keep_filters(written, store, place.layout, is_last)
    if not (is_first and is_last):
        written.gathered.stored = None  # a text of several shares is not part of its root
    return written


def _keep_filters(written: Written, store: Store, layout: SegmentLayout, is_last: bool) -> None:
    """Store the filters of a share, without the columns of its last frames if other text follows."""
    refs = written.columns.store(store.put) if written.columns and written.columns.frames else ()
    if not is_last:
        stop = stale = len(written.records)
        remaining = 3 * Columns(overlap_for(layout.frame_bytes), 1).reach  # folding may shrink a character to a third
        while stale and remaining > 0:
            stale -= 1
            remaining -= written.records[stale].bytes
        stored, refs = refs, moved(refs, [Moved(stale, stop, stop, 0)])
        drop_filters(store, stored, refs)
    written.columns, written.filters = None, refs


def _join(
    results: Iterable[Result],
    place: _Place,
    executor: Executor,
    progress: Callable[[Progress], None] | None,
) -> Written:
    """Join the results of shares, in order, into that of the whole text, and report the progress."""
    whole, done = Written(layout=place.layout), Progress()
    filters: list[FilterRef] = []
    end_byte = 0
    for result in results:
        new = result.written
        frames = len(whole.records)
        for ref in new.filters or ():
            filters.append(
                replace(ref, runs=tuple((first + frames, offset, count) for first, offset, count in ref.runs))
            )
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
        stored_bytes = sum(record.stored_bytes for record in new.records)
        count = result.objects or len(new.runs)
        text_bytes = sum(record.bytes for record in new.records)
        done = Progress(done.text_bytes + text_bytes, done.stored_bytes + stored_bytes, done.segments + count)
        if progress:
            progress(done)
    whole.filters = _join_filters(filters, place, executor)
    return whole


def _join_filters(filters: Sequence[FilterRef], place: _Place, executor: Executor) -> tuple[FilterRef, ...]:
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
        refs = list(in_order(executor, partial(_join_here, place), groups))


def _join_here(place: _Place, refs: Sequence[FilterRef]) -> FilterRef:
    if len(refs) == 1:
        return refs[0]
    with open_store_at(place.url, own_options(place.url, place.options)) as store:
        joined = join(refs, lambda key: store.get(key).data, store.put)
        drop_filters(store, refs, [joined])
    return joined


def drop_filters(store: Store, old: Iterable[FilterRef], new: Iterable[FilterRef]) -> None:
    """Remove the filters that were joined into others (1 DELETE each). What may not be deleted stays until `gc`."""
    kept = {key for ref in new for key in ref.keys}
    with suppress(AccessDenied):
        for key in (key for ref in old for key in ref.keys if key not in kept):
            store.delete(key)
