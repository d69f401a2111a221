"""Replace and delete documents of a context, as its next generation.

Only frames that hold changed text are stored again. Index pages and pages of documents without a change keep their
objects. Search filters keep the columns of frames whose text, and the text right behind them, stays
(`FilterRef.columns`). Readers keep the generation that they opened. Where another writer commits first, the edit is
worked out again on what that one wrote.
"""

from __future__ import annotations

import os
import time
import uuid
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from monocontext.engine.fetch.threads import in_threads
from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import InvalidText, NotFound
from monocontext.format.codec import encode
from monocontext.format.document_refs import DocumentPageRef, DocumentsRef, NameTableRef, documents_key
from monocontext.format.documents import (
    DOCUMENTS_PER_PAGE,
    INLINE_BYTES,
    DocumentPage,
    DocumentRow,
    encode_metadata,
    encode_names,
    encode_page,
    entries_of,
    first_doubled,
    last_of_each_name,
    name_hash,
    page_ref,
)
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.folding import opened
from monocontext.format.generations import commit, read_newest
from monocontext.format.history import History
from monocontext.format.index import OF_TEXT, FrameRecord, FrameRun, flags_of_text
from monocontext.format.manifest import Manifest, generation_key
from monocontext.format.refs import UNKNOWN, FilterRef, PageRef, fresh_id
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple, dataclass
from monocontext.records import replace as changed
from monocontext.stores.protocol import Store, seconds_now
from monocontext.writing.documents import DocumentInputs
from monocontext.writing.documents import documents as as_inputs
from monocontext.writing.inputs import HEADER, InputOptions, read_pieces
from monocontext.writing.pages import as_runs, write_pages
from monocontext.writing.publish import Place, append, open_store_at
from monocontext.writing.segments import SegmentLayout, cut_frames
from monocontext.writing.tail import Pieces
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.rewrite import (
    Rewrite,
    fill_filters,
    first_character,
    records,
    wants_filters,
    with_copies,
)

MOST_RUNS = 512
"""A filter whose columns changes have cut into more runs is made again."""
_REQUESTS = 8
_READ_CACHE_BYTES = 64 << 20
_FRAMES_AT_ONCE = 32
_LOOK_SECONDS = 0.1


class Change(NamedTuple):
    """The change of one document."""

    text: str | None
    """None: it goes."""
    metadata: bytes | None = None
    """None: it stays as it is."""


Changes = Callable[[Sequence[bytes]], Mapping[int, Change]]
"""The changes by number, given the names of all documents in their order."""


def replace(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the texts of documents in the context at `url`, found by name, and return the root that was committed.

    `documents` is a mapping of name to text, or an iterable of (name, text) and (name, text, metadata); a text is a
    `str` or the path of a file. Without metadata those of the document stay. Of several documents with one name the
    last is replaced, which a dict of the documents has. The result is the text that `publish` makes of the same
    documents. The new texts are held in memory. `allow`: as for `Monocontext.open`.

    Raises `NotFound`, and changes nothing, where a name is not there (`update` appends those). Earlier generations stay
    readable until `gc` removes them. Bytes written grow with what changed. Cost: 1 GET a page of 4096 documents, 1 for
    each index page and each stretch of frames that changes; 1 PUT for 16 MiB of new frames, for each index page and
    each page of documents with a change; some 6 requests for the commit. Two writers at once both succeed.
    """
    given = _texts_of(documents)

    def changes(names: Sequence[bytes]) -> Mapping[int, Change]:
        found, missing = _split(given, names)
        if missing:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise NotFound(f"no document {next(iter(missing))!r}{more} to replace: `update` adds new ones")
        return found

    return _edit(url, changes, allow, store_options)


def update(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the documents whose names are there, and append the others, in a generation each; returns the last root.

    Parameters and cost as for `replace`, and those of `append`.
    """
    given = _texts_of(documents)
    added: dict[str, Change] = {}

    def changes(names: Sequence[bytes]) -> Mapping[int, Change]:
        nonlocal added
        found, added = _split(given, names)
        return found

    root = _edit(url, changes, allow, store_options)
    if not added:
        return root
    new = [(name, change.text, _metadata_of(change)) for name, change in added.items()]
    return append(as_inputs(new), url, store_options=store_options)


def delete(
    url: Place,
    names: str | Iterable[str],
    *,
    forget: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Delete documents from the context at `url`, and return the root that was committed. The line that an upload of a
    folder writes before a file goes with it, unless that upload had a `header` of its own.

    `names` is a name or a glob, or an iterable of names. All documents with such a name go. The documents behind them
    are numbered anew. Earlier generations hold the text until `gc` removes them. Parameters and cost as for `replace`;
    where documents have tables of names (more than 4096) these are written again, 16 bytes a document.

    `forget`: leave the text in no object below `url`. Objects that share one with it are stored again, and `gc` without
    a grace period removes earlier generations; readers that have one open fail at their next read of a removed object.
    Where that `gc` did not come to its end, run it again. `find_leftovers` proves it. Copies elsewhere (disk caches of
    readers, versions that a bucket keeps) are not reached.

    Raises `NotFound`, and changes nothing, where no document has such a name.
    """
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f"names are one name or glob, or an iterable of names, not {type(names).__name__}")
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if wrong := [name for name in wanted if not isinstance(name, str)]:
        raise TypeError(f"the name of a document is a str, not {type(wrong[0]).__name__}: {str(wrong[0])[:80]!r}")
    is_glob = isinstance(names, str)

    def changes(there: Sequence[bytes]) -> Mapping[int, Change]:
        exact = {name.encode("utf-8", "surrogatepass") for name in wanted}
        found = {number: Change(None) for number, name in enumerate(there) if name in exact}
        if is_glob and not found:
            found = {number: Change(None) for number, name in enumerate(there) if fnmatchcase(name.decode(), wanted[0])}
        if is_glob and not found:
            raise NotFound(f"no document is named {wanted[0]!r}, nor matches that as a glob")
        if missing := sorted(exact - {there[number] for number in found}) if not is_glob else []:
            raise NotFound(f"no document {missing[0].decode(errors='replace')!r} to delete")
        return found

    root = _edit(url, changes, allow, store_options, forget)
    if forget:
        with open_store_at(url, store_options) as store:
            _wait_for_clock(store, root.generation)
            gc(store, older_than_seconds=0)
    return root


def _wait_for_clock(store: Store, generation: int) -> None:
    """Wait until the store's clock, which may count whole seconds, is past a commit: what came before is older then."""
    while committed := next(iter(store.list(generation_key(generation))), None):  # as `gc` looks at it
        if seconds_now(store, committed.now_seconds) > committed.modified_seconds:
            return
        time.sleep(_LOOK_SECONDS)


# -- what is asked for -------------------------------------------------------------------------------------------------


def _texts_of(documents: Mapping[str, str] | Iterable[Any]) -> dict[str, Change]:
    """The new texts by name. Raises `InvalidText`, `TypeError`."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable | DocumentInputs):
        raise TypeError(f"documents are a mapping of name to text, or tuples of these, not {type(documents).__name__}")
    items = documents.items if isinstance(documents, DocumentInputs) else as_inputs(documents).items
    found: dict[str, Change] = {}
    for number, item in enumerate(items):
        if not (isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[0], str)):
            raise InvalidText(f"document {number}: expected (name, text) or (name, text, metadata)")
        name, text = item[0], item[1]
        if not isinstance(text, str | os.PathLike):
            raise InvalidText(f"document {number} ({name!r}): its text is a str or a path, not {type(text).__name__}")
        if isinstance(text, str):
            text = b"".join(read_pieces(text, InputOptions())).decode()
        else:
            text = b"".join(read_pieces([text], InputOptions())).decode()
        metadata = encode_metadata(item[2], number) if len(item) == 3 and item[2] is not None else None
        found[name] = Change(text, metadata)
    return found


def _split(given: Mapping[str, Change], names: Sequence[bytes]) -> tuple[dict[int, Change], dict[str, Change]]:
    """The changes of documents that are there, by number, and the others by name."""
    last = {name: number for number, name in enumerate(names)}
    found: dict[int, Change] = {}
    missing: dict[str, Change] = {}
    for name, change in given.items():
        number = last.get(name.encode("utf-8", "surrogatepass"))
        if number is None:
            missing[name] = change
        else:
            found[number] = change
    return found, missing


def _metadata_of(change: Change) -> Any:
    import json

    return json.loads(change.metadata) if change.metadata else None


# -- the edit ----------------------------------------------------------------------------------------------------------


def _edit(
    url: Place,
    changes: Changes,
    allow: Iterable[str | os.PathLike[str]],
    store_options: StoreOptions | None,
    forget: bool = False,
) -> Manifest:
    with open_store_at(url, store_options) as store:
        newest = read_newest(store)
        if newest is None:
            raise NotFound(f"{store.url}: no context there to change: `upload` makes one")
        context = ContextHandle(
            store, cache_bytes=_READ_CACHE_BYTES, allow=allow, store_options=store_options, owns_store=False
        )
        work = Rewrite(context)
        unchanged: Manifest | None = None

        def build(base: Manifest | None) -> Manifest:
            nonlocal unchanged
            assert base is not None  # generations are never taken back
            root = _edited(work, opened(base, lambda ref: work.get(ref.key)), changes, forget)
            if root is None:
                unchanged = base
                raise _NothingToDo
            return root

        try:
            return commit(store, newest, build)
        except _NothingToDo:
            assert unchanged is not None
            return unchanged
        finally:
            context.close()


class _NothingToDo(Exception):
    """No document changes."""


def _edited(work: Rewrite, base: Manifest, changes: Changes, forget: bool) -> Manifest | None:
    """The root to commit on `base`; None: nothing changes."""
    pages = _load_documents(work.context.store, base.documents)
    names = [page.raw_name(i) for page in pages for i in range(len(page))]
    wanted = changes(names)
    if not wanted:
        return None
    spots = _spots(pages, wanted, base.characters)
    with work.text(base) as text:
        stretches = _group(text, spots)
        if forget:
            stretches = _with_neighbours(text, stretches)
        stretches = in_threads(lambda stretch: _rewrite(text, stretch), stretches, _REQUESTS, "monocontext-edit")
        pieces = Pieces(work.context.store, SegmentLayout(base.frame_bytes, codec=base.codec))
        new_runs, new_rows = _store(pieces, stretches)
        index, last_page, dropped_bytes = _write_index(work, text, stretches, new_runs, new_rows)
        filters, is_lost = _keep_filters(text, stretches)
        table = _write_documents(work.context.store, base, pages, wanted, stretches)
    write_id = uuid.uuid4().hex
    root = changed(
        base,
        generation=base.generation + 1,
        write_id=write_id,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pages=index,
        last_page=last_page,
        text=b"",
        head="",
        tail="",
        stored_bytes=base.stored_bytes - dropped_bytes + sum(row.stored_bytes for row in pieces.records),
        flags=flags_of_text(pieces.records, base.flags if index else OF_TEXT),
        filters=filters,
        documents=table,
        open_frames=0,
        history=History(write_id),
        extra={},
    )
    root = changed(root, final_newline=_ends_line(work, root))
    if is_lost:
        root = fill_filters(work, root) if wants_filters(root) else changed(root, filters=())
    root = with_copies(work, root, root)
    root.check()
    return root


def _ends_line(work: Rewrite, root: Manifest) -> bool:
    if not root.characters:
        return False
    with work.text(root) as text:
        return text.read(root.characters - 1, root.characters) == "\n"


# -- text --------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Spot:
    """Where a document that changes lies in the old text."""

    number: int
    name: bytes
    change: Change
    before: int
    """The character at which the document before ends."""
    start: int
    stop: int
    has_more: bool
    """Whether text follows that belongs to no document."""
    header: int = 0
    """Characters of its header line, which goes with it."""
    newline: int = 0
    """1 where a newline behind it, which belongs to none, goes with it."""

    @property
    def low(self) -> int:
        """The first character that may change."""
        gap = self.start - self.before
        is_headed = self.change.text is None and 0 < gap <= len(HEADER) + len(self.name) + 1
        return self.before if is_headed else self.start

    @property
    def high(self) -> int:
        return self.stop + (1 if self.has_more else 0)

    @property
    def new_text(self) -> str:
        """The document, and a newline behind it if it does not end in one."""
        text = self.change.text or ""
        return text if not text or text.endswith("\n") else text + "\n"


@dataclass(slots=True)
class _Stretch:
    """Neighbouring frames that are stored again: `first` to `last`, and those in their place."""

    first: int
    last: int
    spots: list[_Spot]
    frames: list[tuple[bytes, FrameRecord]]
    """Stored form and record of each new frame."""

    @property
    def stop(self) -> int:
        return self.last + 1

    @property
    def grown(self) -> int:
        """How many frames more there are."""
        return len(self.frames) - (self.stop - self.first)


def _spots(pages: Sequence[DocumentPage], wanted: Mapping[int, Change], characters: int) -> list[_Spot]:
    found = list[_Spot]()
    before = 0
    waiting: _Spot | None = None
    for page in pages:
        for i in range(len(page)):
            start, stop = page.starts[i], page.stops[i]
            if waiting:
                waiting.has_more = start > waiting.stop
                waiting = None
            if (change := wanted.get(page.first + i)) is not None:
                waiting = _Spot(page.first + i, page.raw_name(i), change, before, start, stop, False)
                found.append(waiting)
            before = stop
    if waiting:
        waiting.has_more = characters > waiting.stop
    return found


def _group(text: Reader, spots: Iterable[_Spot]) -> list[_Stretch]:
    """Stretches of frames for changes that lie in the same or neighbouring frames."""
    found: list[_Stretch] = []
    end = text.manifest.frames - 1
    for spot in spots:
        first = text.locate(spot.low).number if spot.low < text.characters else end
        last = text.locate(spot.high - 1).number if spot.high > spot.low else first
        first, last = max(first, 0), max(last, first)
        if end < 0:
            first, last = 0, -1  # a text of empty documents has no frames
        if found and first <= found[-1].stop:
            found[-1].last = max(found[-1].last, last)
            found[-1].spots.append(spot)
        else:
            found.append(_Stretch(first, last, [spot], []))
    return found


def _with_neighbours(text: Reader, stretches: Sequence[_Stretch]) -> list[_Stretch]:
    """The stretches, and between them all other frames that share an object with one of theirs."""
    frames = text.manifest.frames
    objects = {frame.object for stretch in stretches for frame in records(text, stretch.first, stretch.stop)}
    found: list[_Stretch] = []
    stops = [0, *(stretch.stop for stretch in stretches)]
    for start, stretch in zip(stops, [*stretches, _Stretch(frames, frames - 1, [], [])], strict=True):
        for frame in records(text, start, max(stretch.first, start)):
            if frame.object in objects and "://" not in frame.object:
                last = found[-1] if found else None
                if last and not last.spots and last.stop == frame.number and last.stop - last.first < _FRAMES_AT_ONCE:
                    last.last = frame.number
                else:
                    found.append(_Stretch(frame.number, frame.number, [], []))
        if stretch.spots:
            found.append(stretch)
    return found


def _rewrite(text: Reader, stretch: _Stretch) -> _Stretch:
    """Read the text of a stretch as far as it stays, and encode its new frames (1 GET a frame, or some at once)."""
    frame_bytes, codec = text.manifest.frame_bytes, text.manifest.codec
    at = first_character(text, stretch.first)
    parts: list[str] = []
    for spot in stretch.spots:
        _look_around(text, spot)
        parts += [text.read(at, spot.start - spot.header), spot.new_text]
        at = spot.stop + spot.newline
    parts.append(text.read(at, first_character(text, stretch.stop)))
    data = "".join(parts).encode()
    for frame in _cut(data, frame_bytes):
        stretch.frames.append(encode(frame, codec))
    return stretch


def _look_around(text: Reader, spot: _Spot) -> None:
    """Find the newline behind a document, and its header line if it goes."""
    if spot.has_more and spot.stop > spot.start:
        spot.newline = int(text.read(spot.stop - 1, spot.stop) != "\n" and text.read(spot.stop, spot.stop + 1) == "\n")
    if spot.low < spot.start:
        header = HEADER.replace("{path}", spot.name.decode())
        if text.read(spot.low, spot.start).removeprefix("\n") == header:
            spot.header = len(header)


def _cut(data: bytes, frame_bytes: int) -> Iterator[bytes]:
    """Frames of about the same length: none is a rest of a few bytes."""
    count = max(1, round(len(data) / frame_bytes))
    limit = max(len(data), 1) if count == 1 else -(-9 * len(data) // (8 * count))
    return cut_frames([data], limit) if data else iter(())


def _store(pieces: Pieces, stretches: Sequence[_Stretch]) -> tuple[list[FrameRun], list[FrameRecord]]:
    """Store the new frames; returns one run for each, and their records."""
    for stretch in stretches:
        for stored, record in stretch.frames:
            pieces.add(stored, record)
    pieces.finish()
    runs: list[FrameRun] = []
    at = 0
    for run in pieces.runs:
        offset = run.offset
        for record in pieces.records[at : at + run.frames]:
            runs.append(changed(run, offset=offset, frames=1))
            offset += record.stored_bytes
        at += run.frames
    return runs, pieces.records


def _write_index(
    work: Rewrite,
    text: Reader,
    stretches: Sequence[_Stretch],
    new_runs: Sequence[FrameRun],
    rows: Sequence[FrameRecord],
) -> tuple[tuple[PageRef, ...], bytes | None, int]:
    """Store index pages for the frames of changed pages; others keep their object. Returns the pages of the text, a
    copy of the last one, and the stored bytes of the frames that are gone."""
    base = text.manifest
    pages: tuple[PageRef, ...] = ()
    last_page: bytes | None = None
    runs_here: list[FrameRun] = []
    rows_here: list[FrameRecord] = []
    dropped = at = taken = 0

    def keep(first: int, stop: int) -> None:
        runs, kept = as_runs(records(text, first, stop))
        runs_here.extend(runs)
        rows_here.extend(kept)

    left = list(stretches)
    for number, ref in enumerate(base.pages):
        before = base.pages[number - 1] if number else None
        first = before.frames if before else 0
        if at <= first and (not left or left[0].first >= ref.frames):
            if rows_here:
                pages, _ = write_pages(work.put, pages, _joined(runs_here, rows_here), rows_here)
                runs_here, rows_here = [], []
            pages = (*pages, _moved(ref, before, pages[-1] if pages else None))
            last_page = base.last_page if number == len(base.pages) - 1 else None
            at = ref.frames
            continue
        last_page = None
        while left and left[0].first < ref.frames:
            stretch = left.pop(0)
            keep(max(at, first), stretch.first)
            count = len(stretch.frames)
            runs_here.extend(new_runs[taken : taken + count])
            rows_here.extend(rows[taken : taken + count])
            taken += count
            dropped += sum(frame.stored_bytes for frame in records(text, stretch.first, stretch.stop))
            at = stretch.stop
        if max(at, first) < ref.frames:
            keep(max(at, first), ref.frames)
            at = ref.frames
    for stretch in left:  # in a text that had no frames
        count = len(stretch.frames)
        runs_here.extend(new_runs[taken : taken + count])
        rows_here.extend(rows[taken : taken + count])
        taken += count
    if rows_here:
        pages, last_page = write_pages(work.put, pages, _joined(runs_here, rows_here), rows_here)
    return pages, last_page if pages else None, dropped


def _moved(ref: PageRef, before: PageRef | None, now_before: PageRef | None) -> PageRef:
    """An index page that stays, behind other text."""
    old = before or PageRef("", 0, 0, 0, 0, 0, 0)
    new = now_before or PageRef("", 0, 0, 0, 0, 0, 0)
    return changed(
        ref,
        frames=new.frames + ref.frames - old.frames,
        bytes=new.bytes + ref.bytes - old.bytes,
        characters=new.characters + ref.characters - old.characters,
        newlines=new.newlines + ref.newlines - old.newlines,
    )


def _joined(runs: Sequence[FrameRun], rows: Sequence[FrameRecord]) -> list[FrameRun]:
    """Runs that lie back to back in one object as one."""
    found: list[FrameRun] = []
    end = at = 0
    for run in runs:
        size = sum(row.stored_bytes for row in rows[at : at + run.frames])
        last = found[-1] if found else None
        if last and (last.object, last.codec, last.etag) == (run.object, run.codec, run.etag) and run.offset == end:
            found[-1] = changed(last, frames=last.frames + run.frames)
        else:
            found.append(run)
        end = run.offset + size
        at += run.frames
    return found


# -- filters -----------------------------------------------------------------------------------------------------------


def _keep_filters(text: Reader, stretches: Sequence[_Stretch]) -> tuple[tuple[FilterRef, ...], bool]:
    """The filters of the new text, and whether one is lost that could be made again.

    A column also covers some text behind its frame. So frames right before a stretch lose theirs, too.
    """
    refs = text.manifest.filters
    if not refs:
        return (), False
    margin = 3 * max(ref.reach_bytes for ref in refs)  # folding makes a third of some characters' bytes
    touched = [(_first_touched(text, stretch.first, margin), stretch) for stretch in stretches]
    found, is_lost = [], False
    for ref in refs:
        kept = _keep_filter(ref, touched)
        is_lost = is_lost or kept is None
        if kept is not None:
            found.append(kept)
    return tuple(found), is_lost


def _first_touched(text: Reader, frame: int, margin: int) -> int:
    """The first frame whose column may cover text of `frame`."""
    between = 0
    while frame and between < margin:
        frame -= 1
        between += text.frame(frame).bytes
    return frame


def _keep_filter(ref: FilterRef, touched: Sequence[tuple[int, _Stretch]]) -> FilterRef | None:
    """A filter without the columns of frames that changed; None: too few are left."""
    grown = [stretch.grown for _, stretch in touched]
    stops = [stretch.stop for _, stretch in touched]

    def moved(frame: int) -> int:
        """The new number of a frame that stays."""
        return frame + sum(grown[: bisect_right(stops, frame)])

    near = [(low, stretch) for low, stretch in touched if low < ref.stop_frame and stretch.stop > ref.first_frame]
    border = ref.border_frames
    if any(low < ref.first_frame and stretch.stop > ref.first_frame - border for low, stretch in touched):
        border = 0
    if not near and border == ref.border_frames:
        return changed(ref, first_frame=moved(ref.first_frame))
    runs: list[tuple[int, int]] = []
    """Of frames from the first known one on."""
    first_known, at = -1, ref.first_frame

    def know(first: int, stop: int) -> None:
        nonlocal first_known
        for column, frames in _columns_of(ref, first, stop):
            if first_known < 0:
                if column == UNKNOWN:
                    first += frames
                    continue
                first_known = first
            _add(runs, column, frames)

    for low, stretch in near:
        stale = max(low, at)
        know(at, stale)
        if first_known >= 0:
            _add(runs, UNKNOWN, max(stretch.first - stale, 0) + len(stretch.frames))
        at = max(at, stretch.stop)
    know(at, ref.stop_frame)
    is_cut = at >= ref.stop_frame
    if runs and runs[-1][0] == UNKNOWN:
        runs.pop()
    known = sum(frames for column, frames in runs if column != UNKNOWN)
    if 2 * known < ref.frames or len(runs) > MOST_RUNS:
        return None
    frames = sum(count for _, count in runs)
    first = moved(first_known)
    return changed(
        ref,
        first_frame=first,
        frames=frames,
        tail_frames=0 if is_cut else min(ref.tail_frames, frames),
        border_frames=border if first_known == ref.first_frame else 0,
        columns=tuple(runs),
        width=FilterLayout(ref).columns,
    )


def _columns_of(ref: FilterRef, first: int, stop: int) -> Iterator[tuple[int, int]]:
    """Columns of frames [first, stop) of a group, as `FilterRef.columns` has them."""
    at = ref.first_frame
    for column, frames in ref.columns or ((0, ref.frames),):
        low, high = max(first, at), min(stop, at + frames)
        if low < high:
            yield (UNKNOWN if column == UNKNOWN else column + low - at), high - low
        at += frames


def _add(runs: list[tuple[int, int]], column: int, frames: int) -> None:
    if frames <= 0:
        return
    if runs and ((column == UNKNOWN == runs[-1][0]) or (column != UNKNOWN != runs[-1][0] and sum(runs[-1]) == column)):
        runs[-1] = (runs[-1][0], runs[-1][1] + frames)
    else:
        runs.append((column, frames))


# -- documents ---------------------------------------------------------------------------------------------------------


def _load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """All pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []
    last = len(ref.pages) - 1

    def load(number: int) -> DocumentPage:
        page = ref.pages[number]
        held = ref.last_page if number == last else None
        data = held if held is not None else store.get(documents_key(page.id)).data
        return DocumentPage(data, page, ref.pages[number - 1] if number else None)

    return in_threads(load, range(len(ref.pages)), _REQUESTS, "monocontext-edit")


def _write_documents(
    store: Store,
    base: Manifest,
    pages: Sequence[DocumentPage],
    wanted: Mapping[int, Change],
    stretches: Sequence[_Stretch],
) -> DocumentsRef | None:
    """Store the pages of documents with a change, and where some are gone the table of names."""
    ref = base.documents
    assert ref is not None
    spots = {spot.number: spot for stretch in stretches for spot in stretch.spots}
    refs: list[DocumentPageRef] = []
    bodies: list[bytes | None] = []
    """The data to store for each page; None if its object stays."""
    shift = lines = 0
    numbers = sorted(wanted)
    for at, page in enumerate(pages):
        before = refs[-1] if refs else None
        end, end_line = (before.characters, before.newlines) if before else (0, 0)
        touched = bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        old, old_before = ref.pages[at], ref.pages[at - 1] if at else None
        start, start_line = old.start + shift, old.start_newline + lines
        if not touched and start >= end and start_line >= end_line:
            refs.append(
                changed(
                    old,
                    documents=(before.documents if before else 0) + len(page),
                    start=start,
                    start_newline=start_line,
                    characters=old.characters + shift,
                    newlines=old.newlines + lines,
                    bytes=(before.bytes if before else 0) + old.bytes - (old_before.bytes if old_before else 0),
                )
            )
            bodies.append(None)
            continue
        rows: list[DocumentRow] = []
        first, first_line = end, end_line
        """Where the page counts from."""
        for i, row in enumerate(page.rows()):
            start, line = page.starts[i], page[i].first_line
            spot = spots.get(page.first + i)
            if spot is not None and spot.change.text is None:
                shift -= spot.header + row.characters + spot.newline
                lines -= int(spot.header > 0) + row.newlines + spot.newline
                continue
            if spot is not None:
                row = _changed_row(row, spot.change)
            gap, gap_lines = start + shift - end, line + lines - end_line
            row = row._replace(gap=gap, gap_newlines=gap_lines)
            end, end_line = end + gap + row.characters, end_line + gap_lines + row.newlines
            rows.append(row)
            if spot is not None:
                shift += len(spot.new_text) - (spot.stop - spot.start) - spot.newline
                lines += spot.new_text.count("\n") - page.newlines[i] - spot.newline
        if rows:
            data = encode_page(rows)
            refs.append(changed(page_ref(data, rows, before, first, first_line), id=fresh_id()))
            bodies.append(data)
    if not refs:
        return None
    last_page = bodies[-1] if bodies[-1] is not None and len(bodies[-1]) <= INLINE_BYTES else None
    if bodies[-1] is None and refs[-1].id == ref.pages[-1].id:
        last_page = ref.last_page
    for page_of, body in zip(refs, bodies, strict=True):
        if body is not None and body is not last_page:
            store.put(documents_key(page_of.id), body)
    if all(change.text is not None for change in wanted.values()):
        return DocumentsRef(tuple(refs), last_page, ref.names, ref.doubled)
    gone = {number for number, change in wanted.items() if change.text is None}
    hashes = b"".join(
        name_hash(page.raw_name(i)) for page in pages for i in range(len(page)) if page.first + i not in gone
    )
    names, doubled = _write_names(store, hashes, refs[-1].documents, ref)
    return DocumentsRef(tuple(refs), last_page, names, doubled)


def _changed_row(row: DocumentRow, change: Change) -> DocumentRow:
    text = change.text or ""
    return row._replace(
        characters=len(text),
        text_bytes=len(text.encode()),
        newlines=text.count("\n"),
        metadata=row.metadata if change.metadata is None else change.metadata,
    )


def _write_names(
    store: Store, hashes: bytes, count: int, before: DocumentsRef
) -> tuple[tuple[NameTableRef, ...], int | None]:
    """A table of all names, where there are more documents than a page holds; and the first doubled name."""
    entries = entries_of(hashes) if before.doubled is not None or count > DOCUMENTS_PER_PAGE else None
    doubled = None
    if before.doubled is not None and (found := first_doubled(entries)) is not None:
        doubled = found[1]
    if count <= DOCUMENTS_PER_PAGE:
        return (), doubled
    entries = last_of_each_name(entries)
    data, buckets, stride = encode_names(entries)
    ref = NameTableRef(fresh_id(), count, len(entries), buckets, stride)
    store.put(documents_key(ref.id), data)
    return (ref,), doubled
