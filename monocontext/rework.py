"""The same text in another form, committed as the next generation, beside readers and appenders.

Other frames (`compact`) or other filters (`refilter`): the characters stay. Readers keep the generation that they
opened. What other writers append meanwhile is taken over as they stored it; where one replaced the text the work is
void: `AlreadyExists`, and nothing has changed.
"""

from __future__ import annotations

import dataclasses
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime

from monocontext.errors import AlreadyExists
from monocontext.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES, Columns, overlap_of
from monocontext.generations import commit, newest
from monocontext.index import Frame, FrameRecord, Run
from monocontext.manifest import FilterRef, Manifest, PageRef
from monocontext.opening import Opened
from monocontext.reader import Reader
from monocontext.writer import write_pages


class Rework:
    """One such piece of work: what it reads and stores, and how far it has come."""

    def __init__(self, opened: Opened, base: Manifest, progress: Callable[[int], None] | None = None):
        self.opened = opened
        self._progress = progress
        self._read_bytes = 0
        self._there: set[str] = set()
        self.name(base)

    def name(self, root: Manifest) -> None:
        """Take what a committed root names for stored."""
        self._there |= {page.key for page in root.pages} | {key for ref in root.filters for key in ref.keys}

    def put(self, key: str, data: bytes) -> None:
        """Store an object that is named by its content, unless it is there.

        To store it again would be right as well, but would give it another ETag (in directories at least), and who
        reads it would take it for another object.
        """
        if key not in self._there:
            self.opened.store.put(key, data)
            self._there.add(key)

    def get(self, key: str) -> bytes:
        return self.opened.store.get(key).data

    def text(self, root: Manifest) -> closing[Reader]:
        """A reader of a root, committed or not, for the length of a `with`."""
        return closing(self.opened.read(root))

    def pieces(self, text: Reader, start: int, stop: int) -> Iterator[bytes]:
        """The text of frames [start, stop), a frame at a time, read some 32 MiB ahead at most; shows the progress."""
        for piece in text.frames(first_character(text, start), first_character(text, stop)):
            self._read_bytes += len(piece.data)
            if self._progress:
                self._progress(self._read_bytes)
            yield piece.data


# -- frames ------------------------------------------------------------------------------------------------------------


def records(text: Reader, start: int, stop: int) -> Iterator[Frame]:
    """Frames [start, stop) (1 GET for each index page)."""
    return (text.frame(number) for number in range(start, stop))


def first_character(text: Reader, number: int) -> int:
    """Where a frame begins; the text's length for the number behind the last."""
    return text.frame(number).start if number < text.manifest.frames else text.characters


def first_byte(text: Reader, number: int) -> int:
    """The same in the UTF-8 form of the text."""
    return text.frame(number).start_byte if number < text.manifest.frames else text.manifest.text_bytes


def table(frames: Iterable[Frame]) -> tuple[list[Run], list[FrameRecord]]:
    """Frames as a writer has them: those that lie back to back are one run, whatever pages they came from."""
    runs: list[Run] = []
    rows: list[FrameRecord] = []
    end = counted = 0

    def close() -> None:
        nonlocal counted
        if counted:
            runs[-1] = dataclasses.replace(runs[-1], frames=counted)
        counted = 0

    for frame in frames:
        if not runs or not follows(frame, runs[-1].object, end):
            close()
            runs.append(Run(frame.object, frame.offset, 1, frame.codec, frame.etag))
        rows.append(FrameRecord(*(getattr(frame, name) for name in FrameRecord._fields)))
        end = frame.offset + frame.stored_bytes
        counted += 1
    close()
    return runs, rows


def follows(frame: Frame, name: str, end: int) -> bool:
    """Whether a frame lies back to back with one that ends at byte `end` of an object."""
    return frame.object == name and frame.offset == end


# -- filters -----------------------------------------------------------------------------------------------------------


def moved(ref: FilterRef, old: Reader, new: Reader) -> FilterRef:
    """A filter of one text as a filter of another that has the same frames at the same characters there.

    The frames before it may be others: its border then stands for those that hold the text of the old ones.
    """
    first = old.frame(ref.first_frame).start
    number = new.locate(first).number
    border = 0
    if ref.border_frames:
        border = number - new.locate(old.frame(ref.first_frame - ref.border_frames).start).number
    return dataclasses.replace(ref, first_frame=number, border_frames=border)


def gaps(filters: Sequence[FilterRef], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Stretches of frames [start, stop) that no filter covers."""
    for ref in filters:
        if start < min(ref.first_frame, stop):
            yield start, min(ref.first_frame, stop)
        start = max(start, ref.stop_frame)
    if start < stop:
        yield start, stop


def wants_filters(root: Manifest) -> bool:
    """Whether a text has frames enough, and large enough, for filters."""
    return root.frames >= LEAST_FRAMES and root.frame_bytes >= LEAST_FRAME_BYTES


def filled(work: Rework, root: Manifest, start: int = 0) -> Manifest:
    """`root` with filters for those of its frames from `start` on that have none.

    Their text is read once (1 GET for some 8 MiB), in memory bounded by the reader's window; 1 PUT for each 16 MiB of
    filter, and 1 GET for a short filter that grows. Raises `ForeignObject` for text that may not be read.
    """
    if not wants_filters(root):
        return root
    found: tuple[FilterRef, ...] = ()
    with work.text(root) as text:
        for first, stop in gaps(root.filters, start, root.frames):
            found += tuple(ref for ref in root.filters if found_stop(found) <= ref.first_frame < first)
            columns = Columns(overlap_of(root.frame_bytes), 1)
            for piece in work.pieces(text, first, stop):
                columns.feed(piece)
            columns.finish()
            found = columns.store(
                work.put,
                work.get,
                _ending(root, first, found),
                lambda at=first: _backwards(text, at),  # type: ignore[misc]
            )
    found += tuple(ref for ref in root.filters if found_stop(found) <= ref.first_frame)
    return dataclasses.replace(root, filters=found)


def found_stop(filters: Sequence[FilterRef]) -> int:
    return filters[-1].stop_frame if filters else 0


def _ending(root: Manifest, frames: int, filters: tuple[FilterRef, ...]) -> Manifest:
    """The root of the first frames of a text, so far as filters that follow look at it."""
    return dataclasses.replace(root, pages=(PageRef("", 0, 0, frames, 0, 0, 0),) if frames else (), filters=filters)


def _backwards(text: Reader, frame: int) -> Iterator[bytes]:
    """The frames before one, from the last (1 GET each): a border takes one or two."""
    return (text.load(text.frame(number)).data for number in range(frame - 1, -1, -1))


# -- commit ------------------------------------------------------------------------------------------------------------


def commit_reworked(work: Rework, base: Manifest, root: Manifest, *, filters: bool) -> Manifest:
    """Commit `root`, which has the text of `base` in another form, and what was appended to `base` meanwhile.

    4 requests, and for each round that another writer wins those that its frames take; with `filters` its text is read
    where it has no filter of its own. Raises `AlreadyExists` when the text of `base` was replaced.
    """
    done, ours = base, root

    def build(latest: Manifest | None) -> Manifest:
        nonlocal done, ours
        assert latest is not None  # generations are never taken back
        if latest.write_id != done.write_id:
            work.name(latest)
            grown = _extended(work, done, ours, latest)
            ours, done = filled(work, grown, ours.frames) if filters else grown, latest
        next_root = dataclasses.replace(
            ours,
            generation=done.generation + 1,
            write_id=uuid.uuid4().hex,
            created=datetime.now(UTC).isoformat(timespec="seconds"),
            extra={},
        )
        next_root.check()
        return next_root

    return commit(work.opened.store, newest(work.opened.store), build)


def _extended(work: Rework, before: Manifest, ours: Manifest, latest: Manifest) -> Manifest:
    """`ours`, which has the text of `before`, with the frames and filters that `latest` added to it."""
    with work.text(before) as old, work.text(latest) as new, work.text(ours) as mine:
        if not _extends(old, new):
            url = work.opened.store.url
            raise AlreadyExists(
                f"{url}: another writer replaced generation {before.generation}, on which this began: "
                f"{latest.generation} has another text or other frames; nothing was changed, begin anew"
            )
        if latest.frames == before.frames:
            return ours
        kept = ours.pages[:-1]
        tail = records(mine, kept[-1].frames if kept else 0, ours.frames)
        runs, rows = table([*tail, *records(new, before.frames, latest.frames)])
        pages, last_page = write_pages(work.put, kept, runs, rows)
        grown = dataclasses.replace(
            ours,
            pages=pages,
            last_page=last_page,
            final_newline=latest.final_newline,
            stored_bytes=ours.stored_bytes + latest.stored_bytes - before.stored_bytes,
            sources=latest.sources,
        )
        with work.text(grown) as text:
            added = tuple(moved(ref, new, text) for ref in latest.filters if ref.first_frame >= before.frames)
        return dataclasses.replace(grown, filters=(*ours.filters, *added))


def _extends(old: Reader, new: Reader) -> bool:
    """Whether a text begins with all frames of another. The old one's last page may have grown."""
    pages, frames = old.manifest.pages, old.manifest.frames
    whole = pages[:-1]
    if new.manifest.frames < frames or new.manifest.pages[: len(whole)] != whole:
        return False
    first = whole[-1].frames if whole else 0
    return all(old.frame(number) == new.frame(number) for number in range(first, frames))
