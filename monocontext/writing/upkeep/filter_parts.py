"""Make the filters of a stored text with workers that read it: the driver names frames, and receives filters.

A worker stores the columns of its frames, and then one worker makes filters from all columns, as in an upload.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import closing, contextmanager
from functools import partial

from monocontext.engine.frame import FrameText
from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.format.filters.building import Columns, fold_head, overlap_for
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef, PageRef
from monocontext.options import StoreOptions
from monocontext.records import dataclass, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing import batches
from monocontext.writing.batches import PARTS_AHEAD, Batch, compute_columns
from monocontext.writing.pages import moved_page
from monocontext.writing.place import open_store_at
from monocontext.writing.stored_columns import load_columns, remove_columns, store_columns

_AFTER_BYTES = 1 << 20
"""A worker gets the index pages of at least this much text after its part: columns cover some 4 KB of it."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """The arguments with which a worker opens a context."""

    url: str | Store
    options: StoreOptions
    allow: tuple[str, ...]

    @contextmanager
    def open(self, root: Manifest) -> Iterator[tuple[Store, Reader]]:
        """Yield the store, and a reader of a root, committed or not."""
        with open_store_at(self.url, self.options) as store:
            context = ContextHandle(
                store, cache_bytes=0, allow=self.allow, store_options=self.options, owns_store=False
            )
            with closing(context), closing(context.read(root)) as text:
                yield store, text


@dataclass(frozen=True, slots=True)
class Part:
    """Some frames for one worker."""

    root: Manifest
    """A root with only the index pages of the part and of some text after it. Frames are numbered from its first."""
    first: int
    stop: int
    is_all: bool
    """Whether these pages go to the end of the text."""

    def frames(self, text: Reader) -> Iterator[FrameText]:
        """Yield the frames of the part, read ahead by `text`, a reader of `root`."""
        start = text.frame(self.first).start
        return text.frames(start, text.frame(self.stop).start if self.stop < self.root.frames else text.characters)


def fill_gap(
    executor: Executor,
    place: WorkerContext,
    root: Manifest,
    first: int,
    stop: int,
    earlier: tuple[FilterRef, ...],
    report: Callable[[int], None],
) -> tuple[FilterRef, ...]:
    """Make filters for frames [first, stop) with the workers of an executor. Returns them after the `earlier` ones.

    `report` is called with the number of bytes of text that a worker has read.
    """
    bare = replace(root, text=b"", head="", tail="", filters=(), documents=None)
    work = partial(_store_columns, place=place, overlap_bytes=overlap_for(root.frame_bytes))
    step = max(batches.BATCH_BYTES // root.frame_bytes, 1)
    bounds = [(at, min(at + step, stop)) for at in range(first, stop, step)]
    parts = (cut_part(bare, *each) for each in bounds)
    keys = []
    for (begin, end), found in zip(bounds, in_order(executor, work, parts, PARTS_AHEAD), strict=True):
        key, read_bytes = found or _some(work(Part(bare, begin, end, True)))
        keys.append(key)
        report(read_bytes)
    make = partial(_make, keys, place=place, root=bare, first=first, earlier=earlier)
    refs = executor.submit(make).result()
    with open_store_at(place.url, place.options) as store:
        remove_columns(store, keys)
    return refs


def head_root(root: Manifest, frames: int, filters: tuple[FilterRef, ...]) -> Manifest:
    """A root of the first frames of a text, with no more fields than making filters needs."""
    return replace(root, pages=(PageRef("", 0, 0, frames, 0, 0, 0),) if frames else (), filters=filters)


def frames_before(text: Reader, frame: int) -> Iterator[bytes]:
    """Yield the text of the frames before one, the last one first (1 GET each). A filter's border takes one or two."""
    return (text.load(text.frame(number)).data for number in range(frame - 1, -1, -1))


def cut_part(root: Manifest, first: int, stop: int) -> Part:
    """Make the part of frames [first, stop)."""
    root = replace(root, text=b"", head="", tail="", filters=(), documents=None)
    pages = root.pages
    begin = bisect_right(pages, first, key=lambda page: page.frames)
    last = bisect_left(pages, stop, key=lambda page: page.frames)
    border = pages[last].bytes
    while last < len(pages) - 1 and pages[last].bytes - border < _AFTER_BYTES:
        last += 1
    before = pages[begin - 1] if begin else None
    first_frame = before.frames if before else 0
    is_all = last == len(pages) - 1
    moved = tuple(moved_page(page, before, None) for page in pages[begin : last + 1])
    part = replace(root, pages=moved, last_page=root.last_page if is_all else None)
    return Part(part, first - first_frame, stop - first_frame, is_all)


def _some(found: tuple[str, int] | None) -> tuple[str, int]:
    assert found is not None  # all of the text was there
    return found


def _store_columns(part: Part, *, place: WorkerContext, overlap_bytes: int) -> tuple[str, int] | None:
    """Store the columns of a part. Returns their key and the bytes of text, or None if its root has too little text
    after it."""
    reach = Columns(overlap_bytes, 1).reach
    with place.open(part.root) as (store, text):
        frames = [piece.data for piece in part.frames(text)]
        text_after = fold_head(_frames_from(text, part.stop), reach)
        if len(text_after) < reach and not part.is_all:
            return None
        key = store_columns(store, list(compute_columns(Batch(frames, text_after), reach)))
    return key, sum(map(len, frames))


def _make(
    keys: list[str], *, place: WorkerContext, root: Manifest, first: int, earlier: tuple[FilterRef, ...]
) -> tuple[FilterRef, ...]:
    columns = Columns(overlap_for(root.frame_bytes), 1)
    with place.open(root) as (store, text):
        columns.head = fold_head(_frames_from(text, first), columns.reach)
        load_columns(store, keys, columns)
        return columns.store(
            store.put,
            lambda key: store.get(key).data,
            head_root(root, first, earlier),
            lambda: frames_before(text, first),
        )


def _frames_from(text: Reader, first: int) -> Iterator[bytes]:
    """Yield the text of the frames from number `first` on (1 GET each)."""
    return (text.load(text.frame(number)).data for number in range(first, text.manifest.frames))
