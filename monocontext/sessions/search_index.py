"""Keep search filters over the sessions of a project: a search reads a few kilobytes of them instead of all text.

    search/<project>/index.json             texts with filters, in the order of their columns; texts still without
    search/<project>/pieces-<sha256>.json   earlier texts of that list, a thousand an object
    search/<project>/filters/<id>.flt       as those of a context (docs/format.md), a column for each 256 KiB of text

A search reads a text that the index does not name, and ignores a name whose text is gone. So an upload that dies before
it adds its texts here, or loses a race, makes searches slower but never wrong.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from typing import Any

from monocontext.errors import AlreadyExists, DamagedData, NotFound, UnsupportedFormat
from monocontext.format.codec import RAW_FRAME_BYTES, Framer
from monocontext.format.filters.building import Columns
from monocontext.format.filters.frame_column import overlap_for
from monocontext.format.filters.planner import Planner
from monocontext.format.filters.query import Literal
from monocontext.format.index import Frame
from monocontext.format.refs import FilterRef, filter_refs
from monocontext.sessions import names
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store, get_bounded, put_own

FORMAT = 2
"""Format 1 had filters of earlier kinds; its readers took any filter for one of them."""
WAITING_BYTES = 1 << 20
"""An upload makes filters once the texts without any have this size: it writes the last filter, up to 4 MiB, again."""
PIECES_PER_PAGE = 1000
"""The entries of one page of the index."""
_MOST_BYTES = 64 << 20
"""The largest object of the index that is read."""
_ATTEMPTS = 10
"""The most compare-and-swap attempts of one update."""
_THREADS = 32
"""GETs at once."""

Piece = tuple[str, str]
"""A text: the path of its session below the project, and its name."""


@dataclass(frozen=True, slots=True)
class _Entry:
    """A text in the index."""

    path: str
    name: str
    bytes: int
    frames: int = 0
    """The number of its columns; 0 while it has no filters."""

    @property
    def piece(self) -> Piece:
        return self.path, self.name


@dataclass(frozen=True, slots=True)
class _Index:
    """The content of `index.json`."""

    pages: tuple[str, ...] = ()
    """Names of the objects with the earlier texts."""
    paged_frames: int = 0
    """The number of columns of these texts."""
    entries: tuple[_Entry, ...] = ()
    """The later texts with filters."""
    waiting: tuple[_Entry, ...] = ()
    """Texts without filters."""
    filters: tuple[FilterRef, ...] = ()

    @property
    def frames(self) -> int:
        return self.paged_frames + sum(entry.frames for entry in self.entries)

    def to_bytes(self) -> bytes:
        return json.dumps({
            "format": FORMAT,
            "write_id": uuid.uuid4().hex,
            "pages": self.pages,
            "paged_frames": self.paged_frames,
            "pieces": [[e.path, e.name, e.bytes, e.frames] for e in self.entries],
            "waiting": [[e.path, e.name, e.bytes] for e in self.waiting],
            "filters": [asdict(ref) for ref in self.filters],
        }).encode()  # fmt: skip

    @classmethod
    def from_bytes(cls, data: bytes, where: str) -> _Index:
        found = _parse(data, where)
        try:
            return cls(
                tuple(found["pages"]),
                int(found["paged_frames"]),
                tuple(_Entry(*row) for row in found["pieces"]),
                tuple(_Entry(*row) for row in found["waiting"]),
                filter_refs(found["filters"]),
            )
        except (TypeError, KeyError, ValueError) as error:
            raise _not_an_index(where, error) from None


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """What the filters say about one word."""

    covered: frozenset[Piece] = frozenset()
    """The texts with filters."""
    holding: frozenset[Piece] = frozenset()
    """The texts among these that may contain it."""

    def may_hold(self, piece: Piece) -> bool:
        """Whether a text may contain the word; also True for one without filters."""
        return piece not in self.covered or piece in self.holding


class SearchIndex:
    """The search filters over the sessions of one project."""

    def __init__(self, store: Store, project_part: str) -> None:
        self._store = store
        self._texts = f"{names.TRANSCRIPTS}/{project_part}"
        self._folder = f"{names.SEARCH}/{project_part}"
        self._key = f"{self._folder}/index.json"

    def ask(self, word: str) -> FilterAnswer:
        """The texts that may contain a word, in any case (1 GET, then at once 16 of 1 KiB and 1 a thousand texts)."""
        # Only the longest line is looked up: `render` may put a space before a line of a turn.
        return self.ask_all([Literal(max(word.split("\n"), key=len), re.IGNORECASE)])[0]

    def ask_all(self, literals: Sequence[Literal]) -> list[FilterAnswer]:
        """The answer to each literal, anywhere in a match (cost as of `ask`, with the rows of all literals at once)."""
        for attempt in range(_ATTEMPTS):
            index, etag = self._load()
            try:
                return self._ask(index, [replace(each, earliest=0, latest=0) for each in literals])
            except NotFound:  # another process has replaced these filters
                if attempt == _ATTEMPTS - 1 or self._load()[1] == etag:
                    raise
        raise AssertionError("unreachable")

    def _ask(self, index: _Index, literals: Sequence[Literal]) -> list[FilterAnswer]:
        planner = Planner(index.filters, index.frames)
        wanted: dict[Any, dict[int, None]] = {}  # the numbers of rows, by the layout of their filter
        for literal in literals:
            for layout, row in planner.rows_to_read(literal):
                wanted.setdefault(layout, {})[row] = None
        places = [
            (layout, block, address)
            for layout, numbers in wanted.items()
            for block, address in layout.addresses(list(numbers)).items()
        ]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-sessions") as threads:
            pages = [threads.submit(self._page, name) for name in index.pages]
            blocks = list(in_order(threads, lambda place: self._block(*place), places, _THREADS))
            entries = [entry for page in pages for entry in page.result()] + list(index.entries)
        blocks_of: dict[Any, dict[int, bytes]] = {}
        for (layout, number, _), block in zip(places, blocks, strict=True):
            blocks_of.setdefault(layout, {})[number] = block
        rows = {}
        for layout, numbers in wanted.items():
            rows.update(layout.rows_in(blocks_of[layout], list(numbers)))
        covered = frozenset(entry.piece for entry in entries)
        return [
            _answer(entries, covered, planner.candidates(literal, rows, _NoRecords(), within_line=True))
            for literal in literals
        ]

    def add(self, pieces: Iterable[tuple[str, str, int]], *, flush: bool = False) -> int:
        """Add texts (path of the session, name, bytes) that are not in the index; returns their number.

        Filters are made once the texts without any have `WAITING_BYTES`, with `flush` at once. Cost: 1 GET, 1 PUT; with
        filters 1 GET a text and 2 of each up to 4 MiB. If another process writes at the same time, this one starts
        again; after ten attempts it leaves the texts to the next `sessions index`.
        """
        given = [_Entry(*piece) for piece in pieces]
        for _ in range(_ATTEMPTS):
            before, etag = self._load()
            known = {entry.piece for entry in (*before.entries, *before.waiting)}
            if flush:
                known |= {entry.piece for name in before.pages for entry in self._page(name)}
            new = tuple(entry for entry in given if entry.piece not in known)
            after = replace(before, waiting=(*before.waiting, *new))
            if after.waiting and (flush or sum(entry.bytes for entry in after.waiting) >= WAITING_BYTES):
                after = self._with_filters(after)
            if after == before:
                return 0
            try:
                put_own(self._store, self._key, after.to_bytes(), if_match=etag)
            except (AlreadyExists, NotFound):
                self._drop(after, self._load()[0])
                continue
            self._drop(before, after)
            return len(new)
        return 0

    def remove(self) -> None:
        """Remove the index and its filters (1 LIST, 1 DELETE an object)."""
        for info in list(self._store.list(f"{self._folder}/")):
            self._store.delete(info.key)

    # -- objects -------------------------------------------------------------------------------------------------------

    def _load(self) -> tuple[_Index, str | None]:
        """The index and its ETag; an empty one without an ETag if there is none."""
        try:
            blob = get_bounded(self._store, self._key, _MOST_BYTES)
        except NotFound:
            return _Index(), None
        return _Index.from_bytes(blob.data, f"{self._store.url}/{self._key}"), blob.etag

    def _page(self, name: str) -> list[_Entry]:
        key = f"{self._folder}/{name}"
        data = get_bounded(self._store, key, _MOST_BYTES).data
        if hashlib.sha256(data).hexdigest()[:32] not in name:
            raise DamagedData(f"{self._store.url}/{key} is not what was stored; `sessions index --rebuild`")
        return [_Entry(*row) for row in _parse(data, key)["pieces"]]

    def _block(self, layout: Any, block: int, address: tuple[str, int]) -> bytes:
        key, offset = address
        stored = self._store.get_range(f"{self._folder}/{key}", offset, layout.block_bytes).data
        rows: bytes = layout.check(stored, block)
        return rows

    def _with_filters(self, index: _Index) -> _Index:
        """The index with filters for the waiting texts. A removed text is left out."""
        columns = Columns(overlap_for(RAW_FRAME_BYTES), 1)
        entries = list(index.entries)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-sessions") as threads:
            texts = in_order(threads, self._text, index.waiting, 8)
            for entry, data in zip(index.waiting, texts, strict=True):
                frames = _frames(data)
                for frame in frames:
                    columns.feed(frame)
                if frames:
                    entries.append(replace(entry, frames=len(frames)))
        columns.finish()
        filters = columns.store(
            lambda key, data: self._store.put(f"{self._folder}/{key}", data),
            lambda key: self._store.get(f"{self._folder}/{key}").data,
            index,
            lambda: iter([b"\n"]),  # no word is looked for across two texts
        )
        pages, paged_frames = list(index.pages), index.paged_frames
        while len(entries) >= PIECES_PER_PAGE:
            page, entries = entries[:PIECES_PER_PAGE], entries[PIECES_PER_PAGE:]
            rows = [[e.path, e.name, e.bytes, e.frames] for e in page]
            data = json.dumps({"format": FORMAT, "pieces": rows}).encode()
            pages.append(f"pieces-{hashlib.sha256(data).hexdigest()[:32]}.json")
            self._store.put(f"{self._folder}/{pages[-1]}", data)
            paged_frames += sum(e.frames for e in page)
        return _Index(tuple(pages), paged_frames, tuple(entries), (), filters)

    def _drop(self, old: _Index, new: _Index) -> None:
        """Remove the filters of `old` that `new`, the stored index, does not have. A search that misses one starts
        again."""
        for key in {key for ref in old.filters for key in ref.keys} - {key for ref in new.filters for key in ref.keys}:
            self._store.delete(f"{self._folder}/{key}")

    def _text(self, entry: _Entry) -> bytes:
        try:
            return self._store.get(f"{self._texts}/{entry.path}/{entry.name}").data
        except NotFound:
            return b""


def _answer(entries: Iterable[_Entry], covered: frozenset[Piece], candidates: Any) -> FilterAnswer:
    """The answer that follows from the candidates among the frames; None for candidates means all of them."""
    if candidates is None:
        return FilterAnswer(covered, covered)
    holding, first = set(), 0
    for entry in entries:
        if candidates[first : first + entry.frames].any():
            holding.add(entry.piece)
        first += entry.frames
    return FilterAnswer(covered, frozenset(holding))


def _frames(data: bytes) -> Sequence[bytes]:
    framer = Framer(RAW_FRAME_BYTES)
    return [bytes(frame) for part in (framer.feed(data), framer.finish()) for frame in part]


def _not_an_index(where: str, error: Exception) -> DamagedData:
    return DamagedData(
        f"{where} is not an index of sessions: {error!r}; rebuild it with `monocontext sessions index --rebuild`"
    )


def _parse(data: bytes, where: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(data)
        if found["format"] > FORMAT:
            raise UnsupportedFormat(f"{where}: format {found['format']}, this version reads {FORMAT}")
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, DamagedData):
            raise
        raise _not_an_index(where, error) from None
    return found


class _NoRecords:
    """The frame records that a planner asks for; never here, since literals are at no distance from their match."""

    def prefetch_pages(self, numbers: Sequence[int]) -> None:
        raise AssertionError(numbers)

    def frame(self, number: int) -> Frame:
        raise AssertionError(number)

    def number_at(self, character: int) -> int:
        raise AssertionError(character)
