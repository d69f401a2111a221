"""Find the texts of a project's sessions that may hold a word, by search filters: a few kilobytes instead of all text.

    search/<project>/index.json             the texts that filters cover, in the order of their columns; texts that wait
    search/<project>/pieces-<sha256>.json   earlier texts of that list, a thousand an object
    search/<project>/filters/<id>.flt       as those of a context (docs/format.md), a column for each 256 KiB of text

The index leaves out, and never adds: a text that it does not name is read, and a name whose text is gone is not asked.
So an upload that dies before it came here, and one that loses a race here, cost a search time and nothing else.
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
"""The amount of text that waits before an upload makes its filters: the last filter, up to 4 MiB, is then written
again."""
PIECES_PER_PAGE = 1000
_MOST_BYTES = 64 << 20
_ATTEMPTS = 10
_THREADS = 32

Piece = tuple[str, str]
"""A text: the path of its session below the project, and its name."""


@dataclass(frozen=True, slots=True)
class _Entry:
    path: str
    name: str
    bytes: int
    frames: int = 0
    """Its columns; 0 while it waits."""

    @property
    def piece(self) -> Piece:
        return self.path, self.name


@dataclass(frozen=True, slots=True)
class _Root:
    pages: tuple[str, ...] = ()
    paged_frames: int = 0
    entries: tuple[_Entry, ...] = ()
    """The rows after those of the pages."""
    waiting: tuple[_Entry, ...] = ()
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
    def from_bytes(cls, data: bytes, where: str) -> _Root:
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
            raise DamagedData(f"{where} is not an index of sessions: {error!r}; `sessions index --rebuild`") from None


@dataclass(frozen=True, slots=True)
class FilterAnswer:
    """The answer of the filters about a word."""

    known: frozenset[Piece] = frozenset()
    """The texts that they cover."""
    holding: frozenset[Piece] = frozenset()
    """The pieces among these that may hold it."""

    def may_hold(self, piece: Piece) -> bool:
        return piece not in self.known or piece in self.holding


class SearchIndex:
    """The search filters over the sessions of one project."""

    def __init__(self, store: Store, project_part: str) -> None:
        self._store = store
        self._texts = f"{names.TRANSCRIPTS}/{project_part}"
        self._folder = f"{names.SEARCH}/{project_part}"
        self._key = f"{self._folder}/index.json"

    def ask(self, word: str) -> FilterAnswer:
        """The texts that may hold a word, in any case (1 GET, then at once 16 of 1 KiB and 1 a thousand texts)."""
        # A line of a turn is a part of a line of its text; more than one line may have got a space between.
        return self.ask_all([Literal(max(word.split("\n"), key=len), re.IGNORECASE)])[0]

    def ask_all(self, literals: Sequence[Literal]) -> list[FilterAnswer]:
        """Like `ask`, for each of some literals, anywhere in a match (the rows of all at once)."""
        for attempt in range(_ATTEMPTS):
            root, etag = self._load()
            try:
                return self._ask(root, [replace(each, earliest=0, latest=0) for each in literals])
            except NotFound:  # another has replaced these filters
                if attempt == _ATTEMPTS - 1 or self._load()[1] == etag:
                    raise
        raise AssertionError("unreachable")

    def _ask(self, root: _Root, literals: Sequence[Literal]) -> list[FilterAnswer]:
        planner = Planner(root.filters, root.frames)
        asked: dict[Any, dict[int, None]] = {}
        for literal in literals:
            for layout, row in planner.rows_to_read(literal):
                asked.setdefault(layout, {})[row] = None
        places = [(each, *place) for each, rows in asked.items() for place in each.addresses(list(rows)).items()]
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-sessions") as threads:
            pages = [threads.submit(self._page, name) for name in root.pages]
            blocks = list(in_order(threads, lambda place: self._block(*place), places, _THREADS))
            entries = [entry for page in pages for entry in page.result()] + list(root.entries)
        by_layout: dict[Any, dict[int, bytes]] = {}
        for (layout, block, _), rows_of_block in zip(places, blocks, strict=True):
            by_layout.setdefault(layout, {})[block] = rows_of_block
        rows = {
            key: row
            for each, numbers in asked.items()
            for key, row in each.rows_in(by_layout[each], list(numbers)).items()
        }
        known = frozenset(entry.piece for entry in entries)
        return [
            _hits_of(entries, known, planner.candidates(literal, rows, _NoRecords(), within_line=True))
            for literal in literals
        ]

    def add(self, pieces: Iterable[tuple[str, str, int]], *, flush: bool = False) -> int:
        """Add texts (path of the session, name, bytes) that it does not name yet; returns how many.

        They wait until they are `WAITING_BYTES`, or with `flush` no longer: then their filters are made. Cost: 1 GET, 1
        PUT; with filters 1 GET a text and 2 of each up to 4 MiB. Another who writes at the same time goes first; after
        ten such the texts are left to the next `sessions index`.
        """
        given = [_Entry(*piece) for piece in pieces]
        for _ in range(_ATTEMPTS):
            root, etag = self._load()
            there = {entry.piece for entry in (*root.entries, *root.waiting)}
            there |= {entry.piece for name in root.pages for entry in self._page(name)} if flush else set()
            new = tuple(entry for entry in given if entry.piece not in there)
            after = replace(root, waiting=(*root.waiting, *new))
            if after.waiting and (flush or sum(entry.bytes for entry in after.waiting) >= WAITING_BYTES):
                after = self._with_filters(after)
            if after == root:
                return 0
            try:
                put_own(self._store, self._key, after.to_bytes(), if_match=etag)
            except (AlreadyExists, NotFound):
                self._drop(after, self._load()[0])
                continue
            self._drop(root, after)
            return len(new)
        return 0

    def remove(self) -> None:
        """Forget all, to be made again. What its filters were is removed too."""
        for info in list(self._store.list(f"{self._folder}/")):
            self._store.delete(info.key)

    # -- objects -------------------------------------------------------------------------------------------------------

    def _load(self) -> tuple[_Root, str | None]:
        try:
            blob = get_bounded(self._store, self._key, _MOST_BYTES)
        except NotFound:
            return _Root(), None
        return _Root.from_bytes(blob.data, f"{self._store.url}/{self._key}"), blob.etag

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

    def _with_filters(self, root: _Root) -> _Root:
        """The root with filters for the waiting texts. A removed text is left out."""
        columns = Columns(overlap_for(RAW_FRAME_BYTES), 1)
        entries = list(root.entries)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="monocontext-sessions") as threads:
            texts = in_order(threads, self._text, root.waiting, 8)
            for entry, data in zip(root.waiting, texts, strict=True):
                frames = _frames(data)
                for frame in frames:
                    columns.feed(frame)
                if frames:
                    entries.append(replace(entry, frames=len(frames)))
        columns.finish()
        filters = columns.store(
            lambda key, data: self._store.put(f"{self._folder}/{key}", data),
            lambda key: self._store.get(f"{self._folder}/{key}").data,
            root,
            lambda: iter([b"\n"]),  # no word is looked for across two texts
        )
        pages, paged = list(root.pages), root.paged_frames
        while len(entries) >= PIECES_PER_PAGE:
            page, entries = entries[:PIECES_PER_PAGE], entries[PIECES_PER_PAGE:]
            rows = [[e.path, e.name, e.bytes, e.frames] for e in page]
            data = json.dumps({"format": FORMAT, "pieces": rows}).encode()
            pages.append(f"pieces-{hashlib.sha256(data).hexdigest()[:32]}.json")
            self._store.put(f"{self._folder}/{pages[-1]}", data)
            paged += sum(e.frames for e in page)
        return _Root(tuple(pages), paged, tuple(entries), (), filters)

    def _drop(self, old: _Root, new: _Root) -> None:
        """Remove the filters that `new`, which is stored, has no more. A search that misses one asks again."""
        for key in {key for ref in old.filters for key in ref.keys} - {key for ref in new.filters for key in ref.keys}:
            self._store.delete(f"{self._folder}/{key}")

    def _text(self, entry: _Entry) -> bytes:
        try:
            return self._store.get(f"{self._texts}/{entry.path}/{entry.name}").data
        except NotFound:
            return b""


def _hits_of(entries: Iterable[_Entry], known: frozenset[Piece], frames: Any) -> FilterAnswer:
    if frames is None:
        return FilterAnswer(known, known)
    holding, at = set(), 0
    for entry in entries:
        if frames[at : at + entry.frames].any():
            holding.add(entry.piece)
        at += entry.frames
    return FilterAnswer(known, frozenset(holding))


def _frames(data: bytes) -> Sequence[bytes]:
    framer = Framer(RAW_FRAME_BYTES)
    return [bytes(frame) for part in (framer.feed(data), framer.finish()) for frame in part]


def _parse(data: bytes, where: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(data)
        if found["format"] > FORMAT:
            raise UnsupportedFormat(f"{where}: format {found['format']}, this version reads {FORMAT}")
    except (ValueError, TypeError, KeyError) as error:
        if isinstance(error, DamagedData):
            raise
        raise DamagedData(f"{where} is not an index of sessions: {error!r}; `sessions index --rebuild`") from None
    return found


class _NoRecords:
    """A literal at the beginning of a match is not traced back."""

    def prefetch_pages(self, numbers: Sequence[int]) -> None:
        raise AssertionError(numbers)

    def frame(self, number: int) -> Frame:
        raise AssertionError(number)

    def number_at(self, character: int) -> int:
        raise AssertionError(character)
