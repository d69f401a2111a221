"""Publish files with workers that read them: the driver lists names and sizes, and receives counts of characters.

A part is a file, or a range of a large one. Each task, which is some neighbouring parts, begins a frame, so workers
need not know each other's text; only the letters just after a task, which the columns of its last frames cover, are
read twice. A worker that does not find a file as it was listed gives its task back, and the driver does it.
"""

from __future__ import annotations

import codecs
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from functools import partial
from itertools import chain, dropwhile, islice
from pathlib import Path
from typing import IO, Any

from monocontext.errors import InvalidText
from monocontext.format.filters.frame_column import fold_head
from monocontext.options import StoreOptions
from monocontext.records import dataclass, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing.batches import (
    BATCH_BYTES,
    BORDER_BYTES,
    PARTS_AHEAD,
    Batch,
    Gathering,
    StoredBatch,
    border_in,
    store_batch,
)
from monocontext.writing.decoding import HEAD_BYTES, PIECE_BYTES, Decoder, NotText, Utf8, is_binary
from monocontext.writing.documents import DocumentRows
from monocontext.writing.input_options import InputOptions
from monocontext.writing.place import open_store_at
from monocontext.writing.segments import Progress, SegmentLayout, Written, cut_frames
from monocontext.writing.sources import Source, describe, find_files, may_be_cut, note_left_out, read_source
from monocontext.writing.stored_columns import make_filters, store_columns

_FOLLOWING = 64
"""The number of parts after a task that its worker knows."""


@dataclass(frozen=True, slots=True)
class Part:
    """Bytes [start, stop) of a file; both ends are between characters and not inside CR LF."""

    source: Source
    header: str
    """The header line before the document; empty for none."""
    start: int
    stop: int

    @property
    def is_whole(self) -> bool:
        return self.start == 0 and self.is_last

    @property
    def is_last(self) -> bool:
        return bool(self.stop == self.source.facts["bytes"])


@dataclass(frozen=True, slots=True)
class Task:
    """Neighbouring parts for one worker."""

    parts: tuple[Part, ...]
    following: tuple[Part, ...]
    """The first parts after them."""
    is_all: bool
    """Whether `following` has all parts after them."""
    ends_line: bool
    """Whether the text before them ends in a newline."""
    begins: bool
    """Whether no part precedes them."""


@dataclass(slots=True)
class Counts:
    """The size of a part's text: characters, bytes and newlines."""

    header: tuple[int, int, int] = (0, 0, 0)
    """The size of the header line before its document."""
    text: tuple[int, int, int] = (0, 0, 0)
    left_out: str = ""
    """The file and why it is left out; empty if it is not."""


@dataclass(slots=True)
class TaskResult:
    """The result of a task."""

    stored_batch: StoredBatch
    counts: list[Counts]
    notes: list[str]
    columns_key: str = ""
    """The object with the columns of its frames, until a worker has made filters of all columns."""


class _Changed(Exception):
    """A file is missing or differs from the list; the argument is its name."""


def can_read_apart(sources: object, reading: InputOptions) -> bool:
    """Whether workers may read these sources: files and folders, in UTF-8."""
    if reading.encoding.lower().replace("_", "-") not in ("utf-8", "utf8") or reading.errors != "strict":
        return False
    if isinstance(sources, list | tuple):
        return bool(sources) and all(isinstance(each, os.PathLike) for each in sources)
    return isinstance(sources, os.PathLike)


def write_parts(
    url: str | Store,
    options: StoreOptions,
    sources: Any,
    reading: InputOptions,
    rows: DocumentRows,
    layout: SegmentLayout,
    executor: Executor,
    progress: Callable[[Progress], None] | None = None,
) -> Written:
    """Store the text of files like `batches.write_batches`; workers read them, and the driver holds no text.

    Where a worker runs on a machine without the files, the driver reads them.
    """
    gathering = Gathering(replace(layout, filters=False), progress)
    columns = layout.columns()
    reach = columns.reach if columns else 0
    keys: list[str] = []
    work = partial(
        read_and_store, url=url, options=options, layout=layout, reach=reach,
        reading=replace(reading, note=_no_note),
    )  # fmt: skip
    paths = [Path(each) for each in (sources if isinstance(sources, list | tuple) else [sources])]
    tasks: deque[Task] = deque()

    def noted() -> Iterator[Task]:
        for task in _cut_tasks(_parts(paths, reading)):
            tasks.append(task)
            yield task

    left_out: dict[str, list[str]] = {}
    for found in in_order(executor, work, noted(), PARTS_AHEAD):
        task = tasks.popleft()
        done = found or _store_here(task, work, paths, reading)
        gathering.add(done.stored_batch)
        keys += [done.columns_key] if done.columns_key else []
        for part, counts in zip(task.parts, done.counts, strict=True):
            if counts.left_out:
                left_out.setdefault(part.source.where, []).append(counts.left_out)
            else:
                _count(rows, part, counts)
        for note in done.notes:
            reading.note(note)
    note_left_out(left_out, reading)
    written = gathering.finish()
    if keys:
        written.filters = make_filters(executor, keys, url, options, layout)
    return written


def _no_note(text: str) -> None:
    """Ignore a note: the driver's own function may not be picklable."""


def _count(rows: DocumentRows, part: Part, counts: Counts) -> None:
    if part.start == 0:
        rows.add_counted_text(*counts.header)
        rows.begin(part.source.name)
    rows.add_counted_text(*counts.text)
    if part.is_last:
        rows.end()


# -- the driver: cut files into tasks ---------------------------------------------------------------------------------


def _parts(paths: Sequence[Path], reading: InputOptions) -> Iterator[Part]:
    for source in find_files(paths, reading):
        if not source.is_selected:
            continue
        header = reading.header.replace("{path}", source.name) if source.where else ""
        rest = Part(source, header, 0, source.facts["bytes"])
        if rest.stop > 2 * BATCH_BYTES:
            is_text = may_be_cut(source, reading)
            with source.open() as opened:
                while is_text and rest.stop - rest.start > 2 * BATCH_BYTES:
                    border = _border(opened, rest.start + BATCH_BYTES)
                    yield replace(rest, stop=border)
                    rest = replace(rest, start=border)
        yield rest


def _border(opened: IO[bytes], at: int) -> int:
    """The first byte from `at` on that begins a character, and is no LF after CR."""
    opened.seek(at - 1)
    return at - 1 + border_in(opened.read(BORDER_BYTES))


def _cut_tasks(parts: Iterable[Part]) -> Iterator[Task]:
    """Yield tasks of about `BATCH_BYTES`, each once the parts after it are known."""
    rest, ready = iter(parts), deque[Part]()
    ends_line = begins = True
    while True:
        taken: list[Part] = []
        size = 0
        while size < BATCH_BYTES:
            ready.extend(islice(rest, 1 if not ready else 0))
            if not ready or (taken and size + ready[0].stop - ready[0].start > BATCH_BYTES):
                break
            taken.append(ready.popleft())
            size += taken[-1].stop - taken[-1].start + len(taken[-1].header)
        if not taken:
            return
        ready.extend(islice(rest, max(_FOLLOWING - len(ready), 0)))
        more = next(rest, None)
        following = tuple(islice(ready, _FOLLOWING))
        yield Task(tuple(taken), following, more is None and len(following) == len(ready), ends_line, begins)
        begins = False
        if more is not None:
            ready.append(more)
        ends_line = _ends_line(taken, ends_line)


def _ends_line(parts: Sequence[Part], before: bool) -> bool:
    """Whether the text of these parts ends in a newline; `before` if they have no text."""
    for part in reversed(parts):
        with part.source.open() as opened:
            head = opened.read(HEAD_BYTES)
            if part.source.where and is_binary(head, "utf-8"):
                continue
            opened.seek(max(part.stop - 3, part.start))
            end = opened.read(part.stop - opened.tell())
        if end and not (end == codecs.BOM_UTF8 and part.source.facts["bytes"] == len(end)):
            return end.endswith(b"\n")
        if part.header and part.start == 0:
            return part.header.endswith("\n")
    return before


def _store_here(
    task: Task, work: Callable[..., TaskResult | None], paths: Sequence[Path], reading: InputOptions
) -> TaskResult:
    """Do a task that a worker gave back."""
    found = work(task, is_driver=True)
    if found is None:  # `following` has too little text
        from_last = dropwhile(
            lambda part: (part.source.name, part.start) != (task.parts[-1].source.name, task.parts[-1].start),
            _parts(paths, replace(reading, note=_no_note)),
        )
        found = work(replace(task, following=tuple(islice(from_last, 1, None)), is_all=True), is_driver=True)
    assert found is not None
    return found


# -- a worker: read and store ---------------------------------------------------------------------------------------


def read_and_store(
    task: Task,
    *,
    url: str | Store,
    options: StoreOptions,
    layout: SegmentLayout,
    reach: int,
    reading: InputOptions,
    is_driver: bool = False,
) -> TaskResult | None:
    """Read the parts of a task, encode their text and store it.

    Returns None if `following` has too little text, or if a worker does not find a file as it was listed. The driver
    accepts a file that has grown, and raises `InvalidText` for one that has shrunk, or of which it reads only a range.
    """
    notes: list[str] = []
    counts: list[Counts] = []
    ours, quiet = replace(reading, note=notes.append), replace(reading, note=_no_note)
    try:
        frames = list(cut_frames(_texts(task.parts, task.ends_line, ours, counts, is_driver), layout.frame_bytes))
        ends_line = frames[-1].endswith(b"\n") if frames else task.ends_line
        text_after = fold_head(_texts(task.following, ends_line, quiet, [], is_driver), reach) if reach else b""
    except _Changed as exc:
        if is_driver:
            raise InvalidText(f"{exc}: it changed while it was read; start again") from None
        return None
    except OSError:
        if is_driver:
            raise
        return None
    if len(text_after) < reach and not task.is_all:
        return None
    stored_batch = StoredBatch()
    if frames:
        stored_batch = store_batch(Batch(frames, text_after), url=url, options=options, layout=layout, reach=reach)
    if task.following or not task.begins:
        stored_batch.gathered.stored = (
            None  # a text of several batches is not part of its root: do not send it to the driver
        )
    key = ""
    if stored_batch.columns:
        with open_store_at(url, options) as store:
            key = store_columns(store, stored_batch.columns)
        stored_batch.columns = []
    return TaskResult(stored_batch, counts, notes, key)


def _texts(
    parts: Iterable[Part], ends_line: bool, reading: InputOptions, counts: list[Counts], is_driver: bool
) -> Iterator[bytes]:
    """Yield the text of parts, and append the sizes of each to `counts`.

    `ends_line`: whether the text before them ends in a newline.
    """
    for part in parts:
        found = Counts()
        counts.append(found)
        _check_listed(part, is_driver)
        pieces = read_source(part.source, reading) if part.is_whole else _read_range(part, reading)
        try:
            first = list(islice(pieces, 1))
        except NotText as error:
            if not part.source.where or not part.is_whole:
                raise
            found.left_out = describe(part.source, error)
            continue
        if part.header and part.start == 0:
            header = ("" if ends_line else "\n") + part.header
            found.header = len(header), len(header.encode()), header.count("\n")
            ends_line = header.endswith("\n")
            yield header.encode()
        for data, characters in chain(first, pieces):
            before = found.text
            found.text = before[0] + characters, before[1] + len(data), before[2] + data.count(b"\n")
            if data:
                ends_line = data.endswith(b"\n")
                yield data


def _check_listed(part: Part, is_driver: bool) -> None:
    """Raise `_Changed` for a file that differs from the list. The driver accepts one that has grown, and any if it
    reads the whole of it."""
    with part.source.open() as opened:
        now = os.fstat(opened.fileno())
    facts = part.source.facts
    same = (now.st_size, now.st_mtime_ns) == (facts["bytes"], facts["modified_ns"])
    if not same and not (is_driver and (part.is_whole or now.st_size > facts["bytes"])):
        raise _Changed(part.source.label)


def _read_range(part: Part, reading: InputOptions) -> Iterator[Utf8]:
    """Yield the text of a range in pieces."""
    decoder = Decoder(part.source.label, reading, part.start)
    with part.source.open() as opened:
        opened.seek(part.start)
        left = part.stop - part.start
        while left:
            read = opened.read(min(PIECE_BYTES, left))
            if not read:
                raise _Changed(part.source.label)
            left -= len(read)
            yield decoder.feed(read)
    yield decoder.finish()
