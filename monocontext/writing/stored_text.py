"""Read the text of a root, committed or not, to change it: its frames in order, and their stored bytes."""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing
from copy import copy as shallow_copy
from functools import cache
from itertools import chain, islice
from operator import attrgetter

from monocontext.engine.open import ContextHandle
from monocontext.format import inline
from monocontext.format.codec import decode
from monocontext.format.directories import expand
from monocontext.format.index import Frame, Page
from monocontext.format.manifest import Manifest
from monocontext.format.refs import MOST_PAGE_BYTES, PageDirectory, PageRef
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import RangeReader, Store

READ_BYTES = 8 << 20  # the most bytes of one read, unless a frame is longer
READS_AHEAD = 4  # the most reads at once
_MOST_PAGES = 64  # the most index pages in memory, some 300 KB each
_FRAMES, _CHARACTERS = attrgetter("frames"), attrgetter("characters")  # the counts up to the end of an index page


class Extent(NamedTuple):
    """The place of some frames in a text."""

    start: int  # their first character
    stop: int  # the character after them
    text_bytes: int  # the length of their text in UTF-8


class StoredText(AbstractContextManager["StoredText"]):
    """A root, the store of its context, and the frames of its text. Use it in a `with` block."""

    def __init__(
        self,
        store: Store,
        root: Manifest,
        *,
        allow: Iterable[str | os.PathLike[str]] = (),
        store_options: StoreOptions | None = None,
        progress: Callable[[int], None] = lambda read_bytes: None,
    ):
        """`progress` is called with the bytes of text read so far. Other parameters are as for `Monocontext.open`."""
        self.store = store
        self._progress = progress
        self._read_bytes = 0
        self._foreign = cache(  # opens objects outside the context, which few texts have
            lambda: ContextHandle(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        )
        self.root, self._entries = root, root.pages
        self._pages: dict[int, Page] = {}

    def __exit__(self, *_: object) -> None:
        if self._foreign.cache_info().currsize:
            self._foreign().close()

    def after(self, root: Manifest) -> StoredText:
        """The text of another root of this context, with the same options; it is closed with this one."""
        other = shallow_copy(self)
        other.root, other._entries, other._pages = root, root.pages, {}
        return other

    def get(self, key: str) -> bytes:
        """The bytes of an object of the context (1 GET)."""
        return self.store.get(key).data

    def frame(self, number: int) -> Frame:
        """The frame with this number (at most 1 GET, for its index page)."""
        page = self._find_page(_FRAMES, number)
        return page[number - page.first_frame]

    def locate(self, character: int) -> Frame:
        """The frame that contains a character of the text (at most 1 GET, for its index page)."""
        page = self._find_page(_CHARACTERS, character)
        return page[page.number_at(character)]

    def frames(self, start: int, stop: int) -> Iterator[Frame]:
        """Yield frames [start, stop) (1 GET for each index page)."""
        return map(self.frame, range(start, stop))

    def extent(self, first: int, stop: int) -> Extent:
        """The place of frames [first, stop) in the text; the end of the text if there are none."""
        if first == stop:
            return Extent(self.root.characters, self.root.characters, 0)
        begin, last = self.frame(first), self.frame(stop - 1)
        return Extent(begin.start, last.start + last.characters, last.start_byte + last.bytes - begin.start_byte)

    def _find_page(self, count: Callable[[PageRef], int], offset: int) -> Page:
        """The index page with the frame or the character at an offset; `count`: `_FRAMES` or `_CHARACTERS`."""
        number = bisect_right(self._entries, offset, key=count)
        if isinstance(self._entries[number], PageDirectory):
            self._entries = expanded(self.store, self.root).pages
            self._pages.clear()
            return self._find_page(count, offset)
        page = self._pages.get(number)
        if page is None:
            embedded = self.root.last_page if number == len(self._entries) - 1 else None
            data = embedded or self.store.get(self._entries[number].key, most_bytes=MOST_PAGE_BYTES).data
            page = Page(data, self._entries[number], self._entries[number - 1] if number else None)
            if len(self._pages) >= _MOST_PAGES:
                self._pages.clear()
            self._pages[number] = page
        return page

    def locate_foreign(self, frame: Frame) -> tuple[RangeReader, str]:
        """The store and the key of a frame outside the context. Raises `ForeignObject` if it may not be read."""
        return self._foreign().find_foreign(frame.object, self.root.sources)

    def stored(self, frames: Iterable[Frame]) -> Iterator[tuple[Frame, bytes]]:
        """Yield frames with their stored bytes (1 GET per 8 MiB of neighbours; none for a text in its root)."""
        groups = neighbours(frames)
        first_groups = list(islice(groups, 2))
        if len(first_groups) < 2:  # needs no threads
            for group in first_groups:
                yield from self.read_range(group)
            return
        with (
            ThreadPoolExecutor(READS_AHEAD, thread_name_prefix="monocontext-read") as threads,
            closing(in_order(threads, self.read_range, chain(first_groups, groups), READS_AHEAD)) as ranges,
        ):
            yield from chain.from_iterable(ranges)

    def read_range(self, group: list[Frame]) -> list[tuple[Frame, bytes]]:
        """Neighbouring frames, each with its stored bytes (1 GET)."""
        first, size = group[0], sum(frame.stored_bytes for frame in group)
        if self.root.text:
            start = self._find_page(_FRAMES, 0).stored_starts[first.number]  # a text in its root has one page
            data = inline.text_in(self.root, start, start + size)
        else:
            store, key = self.locate_foreign(first) if "://" in first.object else (self.store, first.object)
            data = store.get_range(key, first.offset, size, etag=first.etag).data
        starts = [frame.offset - first.offset for frame in group]
        return [(frame, data[begin : begin + frame.stored_bytes]) for frame, begin in zip(group, starts, strict=True)]

    def texts(self, frames: Iterable[Frame]) -> Iterator[bytes]:
        """Yield the text of frames in UTF-8, and report the bytes so far to `progress`. Raises `DamagedData`."""
        for frame, stored in self.stored(frames):
            data = decode(stored, frame)
            self._read_bytes += len(data)
            self._progress(self._read_bytes)
            yield data

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop) of the text."""
        if stop <= start:
            return ""
        first = self.locate(start)
        frames = self.frames(first.number, self.locate(stop - 1).number + 1)
        text = b"".join(decode(stored, frame) for frame, stored in self.stored(frames)).decode()
        return text[start - first.start : stop - first.start]


def expanded(store: Store, root: Manifest) -> Manifest:
    """The root with pages and filters in place of their directories (1 GET each). It may be too large to commit."""
    return expand(root, lambda directory: store.get(directory.key).data) if root.has_directories else root


def neighbours(frames: Iterable[Frame], most_bytes: int = READ_BYTES) -> Iterator[list[Frame]]:
    """Yield groups of frames that are adjacent in the text and in one object, each of at most `most_bytes` stored."""
    group: list[Frame] = []
    for frame in frames:
        if group:
            last = group[-1]
            follows = (last.number + 1, last.object, last.offset + last.stored_bytes) == frame[:3]
            if not follows or frame.offset + frame.stored_bytes - group[0].offset > most_bytes:
                yield group
                group = []
        group.append(frame)
    if group:
        yield group
