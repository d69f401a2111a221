"""Update a context that `index_in_place` made: read only the objects that are new or have changed.

Objects with the same URL, ETag and size as in the index keep the records of their frames, and their columns in filters.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from contextlib import closing

from monocontext.errors import AlreadyExists
from monocontext.format.index import FrameRecord, FrameRun
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores.protocol import Store
from monocontext.writing.pages import load_page, single_runs
from monocontext.writing.upkeep.commit_rewrite import commit_change, with_copies
from monocontext.writing.upkeep.edited_filters import keep_filters
from monocontext.writing.upkeep.edited_index import changed_root
from monocontext.writing.upkeep.edited_text import Stretch
from monocontext.writing.upkeep.rewrite import Rewrite, fill_filters, wants_filters

_CACHE_BYTES = 64 << 20
"""The cache of the reader of the old text."""
_BOM_BYTES = 3
"""The length of a byte order mark of UTF-8, which is not part of the text."""


class IndexedObject(NamedTuple):
    """An object that is to be part of the text."""

    url: str
    etag: str
    size_bytes: int


Frames = tuple[Sequence[FrameRun], Sequence[FrameRecord]]


@dataclass(frozen=True, slots=True)
class Target:
    """The text after the update."""

    objects: Sequence[IndexedObject]
    """In the order of the text."""
    sources: tuple[str, ...]
    frame_bytes: int
    filters: bool


def can_follow(base: Manifest, target: Target) -> bool:
    """Whether `base` is a text of objects outside the context, with frames of the target's size."""
    return bool(base.sources and base.frames and not base.documents) and base.frame_bytes == target.frame_bytes


def follow(
    store: Store,
    newest: Manifest,
    target: Target,
    read: Callable[[int], Frames],
    *,
    allow: Iterable[str | os.PathLike[str]],
    store_options: StoreOptions | None,
    executor: Executor | None,
    url: str | Store,
) -> Manifest:
    """Commit the text of the target after `newest`, and return its root. Without a change, return the newest root.

    `read` returns the frames of an object of the target, by its number; it is called for objects that are new or have
    changed. The workers of `executor`, which open the context at `url`, make the filters. Cost: 1 GET for each index
    page, the requests of `read`, and with filters the text of new objects once more; 1 PUT for each page that changes,
    and the requests of a commit. Raises `AlreadyExists` if another writer replaced the text meanwhile.
    """
    frames: dict[int, Frames] = {}

    def read_once(number: int) -> Frames:
        if number not in frames:
            frames[number] = read(number)
        return frames[number]

    def change(base: Manifest) -> Manifest | None:
        if not can_follow(base, target):
            raise AlreadyExists(f"{store.url}: another writer has just replaced the text there: start again")
        return _followed(work, work.expand(base), target, read_once)

    work = Rewrite(
        store, allow=allow, store_options=store_options, cache_bytes=_CACHE_BYTES, executor=executor, url=url
    )
    with closing(work):
        return commit_change(store, newest, change)


def _followed(work: Rewrite, base: Manifest, target: Target, read: Callable[[int], Frames]) -> Manifest | None:
    """The root to commit on `base`; None if nothing changes."""
    stretches, runs = _find_stretches(_indexed(work, base), base.frames, target.objects, read)
    has_filters = target.filters and wants_filters(base)
    if not stretches and base.sources == target.sources and bool(base.filters) == has_filters:
        return None
    with work.text(base) as text:
        filters = keep_filters(text, stretches)[0] if target.filters else ()
        root = changed_root(work, text, stretches, runs, sources=target.sources, filters=filters)
    if target.filters:
        root = fill_filters(work, root) if wants_filters(root) else replace(root, filters=())
    root = with_copies(work, root, root)
    root.check()
    return root


class _Indexed(NamedTuple):
    """An object in the index, with frames [first, stop) up to its byte `end_byte`."""

    run: FrameRun
    first: int
    stop: int
    end_byte: int


def _indexed(work: Rewrite, base: Manifest) -> list[_Indexed]:
    """The objects of a text, in order (1 GET for each index page)."""
    found: list[_Indexed] = []
    for number in range(len(base.pages)):
        page = load_page(work.store, base.pages, number)
        at = 0
        for run in page.runs:
            first, stop = page.first_frame + at, page.first_frame + at + run.frames
            end = run.offset + page.stored_starts[at + run.frames] - page.stored_starts[at]
            at += run.frames
            last = found[-1] if found else None
            if last and (last.run.object, last.run.etag, last.end_byte) == (run.object, run.etag, run.offset):
                found[-1] = last._replace(stop=stop, end_byte=end)
            else:
                found.append(_Indexed(run, first, stop, end))
    return found


def _find_stretches(
    indexed: Sequence[_Indexed], frames: int, objects: Sequence[IndexedObject], read: Callable[[int], Frames]
) -> tuple[list[Stretch], list[FrameRun]]:
    """The stretches of frames that change, and one run for each new frame."""
    there = {
        (each.run.object, each.run.etag, each.end_byte): each for each in indexed if each.run.offset in (0, _BOM_BYTES)
    }
    stretches: list[Stretch] = []
    runs: list[FrameRun] = []

    def put(first: int, stop: int, numbers: Sequence[int]) -> None:
        """Replace frames [first, stop) by those of some objects."""
        rows: list[FrameRecord] = []
        for number in numbers:
            new_runs, new_rows = read(number)
            runs.extend(single_runs(new_runs, new_rows))
            rows.extend(new_rows)
        if first < stop or rows:
            stretches.append(Stretch(first, stop - 1, [], rows))

    at = 0
    waiting: list[int] = []
    for number, wanted in enumerate(objects):
        same = there.get((wanted.url, wanted.etag, wanted.size_bytes))
        if same is None or same.first < at:  # an object that moved towards the front is read again
            waiting.append(number)
            continue
        put(at, same.first, waiting)
        at, waiting = same.stop, []
    put(at, frames, waiting)
    return stretches, runs
