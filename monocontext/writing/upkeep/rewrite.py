"""Read a stored text again, to store it with other frames or to make its filters."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import closing, contextmanager

from monocontext.engine.open import ContextHandle
from monocontext.engine.reader import Reader
from monocontext.errors import AlreadyExists, NotFound
from monocontext.format.filters.building import LEAST_FRAME_BYTES, LEAST_FRAMES, Columns
from monocontext.format.filters.frame_column import overlap_for
from monocontext.format.generations import read_newest
from monocontext.format.index import Frame
from monocontext.format.manifest import Manifest
from monocontext.format.refs import FilterRef
from monocontext.format.root_directories import expand
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.filter_parts import WorkerContext, fill_gap, frames_before, head_root


class Rewrite:
    """One rewrite of a stored text: the open context, its progress, and the workers that read for it."""

    def __init__(
        self,
        store: Store,
        *,
        allow: Iterable[str | os.PathLike[str]],
        store_options: StoreOptions | None,
        cache_bytes: int = 0,
        progress: Callable[[int], None] | None = None,
        executor: Executor | None = None,
        url: str | Store = "",
    ):
        """`url`: where the workers of the executor find the context."""
        self.store = store
        self.context = ContextHandle(
            store, cache_bytes=cache_bytes, allow=allow, store_options=store_options, owns_store=False
        )
        self.executor = executor
        self.place = WorkerContext(url, self.context.store_options, self.context.allow)
        self._progress = progress
        self._read_bytes = 0

    def close(self) -> None:
        """Close the context; the store stays open."""
        self.context.close()

    def put(self, key: str, data: bytes) -> None:
        self.store.put(key, data)

    def get(self, key: str) -> bytes:
        return self.store.get(key).data

    def expand(self, root: Manifest) -> Manifest:
        """A root that names all pages and filters itself (1 GET for each of its directories)."""
        return expand(root, lambda directory: self.get(directory.key))

    def text(self, root: Manifest) -> closing[Reader]:
        """Open a reader of a root, committed or not, for a `with` block."""
        return closing(self.context.read(root))

    def pieces(self, text: Reader, start: int, stop: int) -> Iterator[bytes]:
        """Yield the text of frames [start, stop) by frame, read at most some 32 MiB ahead; reports progress."""
        for piece in text.frames(first_character(text, start), first_character(text, stop)):
            self.report(len(piece.data))
            yield piece.data

    def report(self, read_bytes: int) -> None:
        """Add to the bytes of text read so far, and pass the sum to `progress`."""
        self._read_bytes += read_bytes
        if self._progress:
            self._progress(self._read_bytes)


@contextmanager
def conflict_if_replaced(store: Store, base: Manifest) -> Iterator[None]:
    """Raise `AlreadyExists` instead of `NotFound` if another generation has replaced `base`: `gc` with a short grace
    period then removes objects of `base` while they are read."""
    try:
        yield
    except NotFound as error:
        newest = read_newest(store)
        if newest is None or newest.write_id == base.write_id:
            raise
        raise AlreadyExists(
            f"{store.url}: generation {base.generation} was replaced and removed while it was read ({error}): nothing "
            f"was changed, start again"
        ) from error


# -- frames ------------------------------------------------------------------------------------------------------------


def records(text: Reader, start: int, stop: int) -> Iterator[Frame]:
    """Yield frames [start, stop) (1 GET for each index page)."""
    return (text.frame(number) for number in range(start, stop))


def first_character(text: Reader, number: int) -> int:
    """The first character of a frame, or the length of the text for the number after the last frame."""
    return text.frame(number).start if number < text.manifest.frames else text.characters


def first_byte(text: Reader, number: int) -> int:
    """The first byte of a frame in the text as UTF-8, or the length of that for the number after the last frame."""
    return text.frame(number).start_byte if number < text.manifest.frames else text.manifest.text_bytes


# -- filters -----------------------------------------------------------------------------------------------------------


def move_filter(ref: FilterRef, old: Reader, new: Reader) -> FilterRef:
    """The entry of a filter in a text that has the frames of that filter at the same characters.

    The frames before them may differ. Then the border covers the frames that have the text of the old border.
    """
    first = old.frame(ref.first_frame).start
    number = new.locate(first).number
    border = 0
    if ref.border_frames:
        border = number - new.locate(old.frame(ref.first_frame - ref.border_frames).start).number
    return replace(ref, first_frame=number, border_frames=border)


def gaps(filters: Sequence[FilterRef], start: int, stop: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of frames in [start, stop) that no filter covers."""
    for ref in filters:
        if start < min(ref.first_frame, stop):
            yield start, min(ref.first_frame, stop)
        start = max(start, ref.stop_frame)
    if start < stop:
        yield start, stop


def wants_filters(root: Manifest) -> bool:
    """Whether a text has enough frames, and large enough ones, for filters."""
    return root.frames >= LEAST_FRAMES and root.frame_bytes >= LEAST_FRAME_BYTES


def fill_filters(work: Rewrite, root: Manifest, start: int = 0) -> Manifest:
    """Make filters for the frames of `root` from `start` on that have none, and return the root with them.

    Reads their text once, in memory bounded by the reader's window. Costs 1 GET for some 8 MiB of text, 1 PUT for each
    16 MiB of filter, and 1 GET for a short filter that grows. Raises `ForeignObject` for text that may not be read.
    """
    if not wants_filters(root):
        return root
    found: tuple[FilterRef, ...] = ()
    with work.text(root) as text:
        for first, stop in gaps(root.filters, start, root.frames):
            found += tuple(ref for ref in root.filters if _covered_stop(found) <= ref.first_frame < first)
            if work.executor:
                found = fill_gap(work.executor, work.place, root, first, stop, found, work.report)
                continue
            columns = Columns(overlap_for(root.frame_bytes), 1)
            for piece in work.pieces(text, first, stop):
                columns.feed(piece)
            columns.finish()
            found = columns.store(
                work.put,
                work.get,
                head_root(root, first, found),
                lambda at=first: frames_before(text, at),  # type: ignore[misc]
            )
    found += tuple(ref for ref in root.filters if _covered_stop(found) <= ref.first_frame)
    return replace(root, filters=found)


def _covered_stop(filters: Sequence[FilterRef]) -> int:
    return filters[-1].stop_frame if filters else 0
