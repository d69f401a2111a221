"""Make filters of stored text by workers that read it: the driver names frames, and receives the names of filters.

A worker leaves the columns of its frames in the store, and one worker makes the filters of all, as in an upload.
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
from monocontext.format.filters.building import Columns
from monocontext.format.filters.frame_column import fold_head, overlap_for
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef, PageRef
from monocontext.options import StoreOptions
from monocontext.records import dataclass, replace
from monocontext.stores.parallel import in_order
from monocontext.stores.protocol import Store
from monocontext.writing import batches
from monocontext.writing.batches import PARTS_AHEAD, Batch, compute_columns
from monocontext.writing.place import open_store_at
from monocontext.writing.stored_columns import load_columns, remove_columns, store_columns

_BEHIND_BYTES = 1 << 20
"""Text after a part, or more, whose pages its worker is told: columns cover some 4 KB of it."""


@dataclass(frozen=True, slots=True)
class Place:
    """What a worker needs to open a context."""

    url: str | Store
    options: StoreOptions
    allow: tuple[str, ...]

    @contextmanager
    def open(self, root: Manifest) -> Iterator[tuple[Store, Reader]]:
        """The store, and a reader of a root, committed or not, for a `with` block."""
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
    """The first frame of the pages that hold the part and the text after it; frames are numbered from there."""
    first: int
    stop: int
    is_all: bool
    """Whether no page follows those."""

    def frames(self, text: Reader) -> Iterator[FrameText]:
        """Yield its frames, read ahead by a reader of its root."""
        start = text.frame(self.first).start
        return text.frames(start, text.frame(self.stop).start if self.stop < self.root.frames else text.characters)


def fill_gap(
    executor: Executor,
    place: Place,
    root: Manifest,
    first: int,
    stop: int,
    earlier: tuple[FilterRef, ...],
    told: Callable[[int], None],
) -> tuple[FilterRef, ...]:
    """Make filters for frames [first, stop) after earlier ones, and return all of them; `told` receives bytes of
    text."""
    bare = replace(root, text=b"", head="", tail="", filters=(), documents=None)
    leave = partial(_leave, place=place, overlap_bytes=overlap_for(root.frame_bytes))
    step = max(batches.BATCH_BYTES // root.frame_bytes, 1)
    bounds = [(at, min(at + step, stop)) for at in range(first, stop, step)]
    parts = (cut_part(bare, *each) for each in bounds)
    keys = []
    for (begin, end), found in zip(bounds, in_order(executor, leave, parts, PARTS_AHEAD), strict=True):
        key, read_bytes = found or _some(leave(Part(bare, begin, end, True)))
        keys.append(key)
        told(read_bytes)
    make = partial(_make, keys, place=place, root=bare, first=first, earlier=earlier)
    refs = executor.submit(make).result()
    with open_store_at(place.url, place.options) as store:
        remove_columns(store, keys)
    return refs


def head_root(root: Manifest, frames: int, filters: tuple[FilterRef, ...]) -> Manifest:
    """A root of the first frames of a text, with the fields that making filters reads."""
    return replace(root, pages=(PageRef("", 0, 0, frames, 0, 0, 0),) if frames else (), filters=filters)


def frames_before(text: Reader, frame: int) -> Iterator[bytes]:
    """Yield the frames before one, from the last (1 GET each): a border takes one or two."""
    return (text.load(text.frame(number)).data for number in range(frame - 1, -1, -1))


def cut_part(root: Manifest, first: int, stop: int) -> Part:
    """The part of frames [first, stop)."""
    root = replace(root, text=b"", head="", tail="", filters=(), documents=None)
    pages = root.pages
    begin = bisect_right(pages, first, key=lambda page: page.frames)
    last = bisect_left(pages, stop, key=lambda page: page.frames)
    border = pages[last].bytes
    while last < len(pages) - 1 and pages[last].bytes - border < _BEHIND_BYTES:
        last += 1
    before = pages[begin - 1] if begin else PageRef("", 0, 0, 0, 0, 0, 0)
    is_all = last == len(pages) - 1
    shifted = tuple(
        replace(
            page,
            frames=page.frames - before.frames,
            bytes=page.bytes - before.bytes,
            characters=page.characters - before.characters,
            newlines=page.newlines - before.newlines,
        )
        for page in pages[begin : last + 1]
    )
    part = replace(root, pages=shifted, last_page=root.last_page if is_all else None)
    return Part(part, first - before.frames, stop - before.frames, is_all)


def _some(found: tuple[str, int] | None) -> tuple[str, int]:
    assert found is not None  # all of the text was there
    return found


def _leave(part: Part, *, place: Place, overlap_bytes: int) -> tuple[str, int] | None:
    """Leave the columns of a part in the store; their key, and the bytes of text. None: too little text is known after
    it."""
    reach = Columns(overlap_bytes, 1).reach
    with place.open(part.root) as (store, text):
        frames = [piece.data for piece in part.frames(text)]
        text_after = fold_head(_frames_from(text, part.stop), reach)
        if len(text_after) < reach and not part.is_all:
            return None
        key = store_columns(store, list(compute_columns(Batch(frames, text_after), reach)))
    return key, sum(map(len, frames))


def _make(
    keys: list[str], *, place: Place, root: Manifest, first: int, earlier: tuple[FilterRef, ...]
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
    """Yield the frames from one on (1 GET each)."""
    return (text.load(text.frame(number)).data for number in range(first, text.manifest.frames))
