"""Store or index a text with the workers of an executor: each takes a share of the text, stores its frames and their
search filter, and returns their records; the driver joins these.

A share is text that the driver sends, or ranges of objects that the worker reads. It begins a frame, so no worker needs
the text of another. The columns of its last frames would cover text of the next one, so these frames have none until
the commit (`appended`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, suppress
from functools import cache, partial
from typing import TypeVar

from monocontext.errors import AccessDenied
from monocontext.format.filters.building import LEAST_FRAMES
from monocontext.format.filters.joining import Moved, can_join, join, moved
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple, replace
from monocontext.stores import options_for
from monocontext.stores.parallel import AHEAD, in_order
from monocontext.stores.protocol import Store
from monocontext.writing.object_text import ObjectRange, index_objects
from monocontext.writing.place import open_store_at, own_options
from monocontext.writing.segments import Progress, SegmentLayout, Written, cut_frames, write_segments

SHARE_BYTES = 32 << 20
"""Text in a share: about two segments, a second of one core's time."""
_SHARES_AHEAD = 64
"""Shares in progress at once where workers read the text themselves: only their small results wait in memory."""
_MOST_OBJECTS = 256
"""Objects in a share."""
_JOINED = 8
"""The filters that a worker joins at once: it holds 16 MiB of each. Up to 65,536 frames, as in one upload."""
_MOST_JOINED_FRAMES = 1 << 16

_T = TypeVar("_T", bytes, ObjectRange)


class Target(NamedTuple):
    """The context that workers write, as they open it, and how."""

    url: str | Store
    options: StoreOptions
    layout: SegmentLayout

    def store(self, stack: ExitStack) -> Store:
        return stack.enter_context(open_store_at(self.url, own_options(self.url, self.options)))


def share_text(
    target: Target, pieces: Iterable[bytes], executor: Executor, progress: Callable[[Progress], None]
) -> Written:
    """Store a text as `segments.write_segments` does, in the same frames, but on the workers of an executor.

    Holds about 8 shares of text in memory. Workers in threads can use any store; those in other processes need a URL.
    """
    shares = _cut(cut_frames(pieces, target.layout.frame_bytes), len)
    return _join(in_order(executor, partial(_store, target), shares, AHEAD), target, executor, progress)


def share_objects(
    target: Target,
    objects: Iterable[ObjectRange],
    executor: Executor,
    note: Callable[[str], None],
    progress: Callable[[Progress], None],
) -> Written:
    """Index objects with the workers of an executor, large ones in ranges, each of which begins a frame."""

    def ranges() -> Iterator[ObjectRange]:
        for item in objects:
            step = SHARE_BYTES if item.stop > 2 * SHARE_BYTES else max(item.stop, 1)
            for start in range(0, max(item.stop, 1), step):
                yield replace(item, start=start, stop=min(start + step, item.stop))

    def noted() -> Iterator[Written]:
        shares = _cut(ranges(), lambda part: max(part.stop - part.start, SHARE_BYTES // _MOST_OBJECTS))
        for written, notes in in_order(executor, partial(_index, target), shares, _SHARES_AHEAD):
            for text in notes:
                note(text)
            yield written

    return _join(noted(), target, executor, progress)


def _cut(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Yield the items in shares."""
    share: list[_T] = []
    size = 0
    for item in items:
        if share and size + size_of(item) > SHARE_BYTES:
            yield share
            share, size = [], 0
        share.append(item)
        size += size_of(item)
    if share:
        yield share


# -- by a worker -------------------------------------------------------------------------------------------------------


def _store(target: Target, frames: list[bytes]) -> Written:
    """Store the frames of a share and their filter."""
    with ExitStack() as stack:
        store = target.store(stack)
        written = write_segments(store, frames, target.layout, frames_before=LEAST_FRAMES)
        if sum(record.bytes for record in written.records) > SHARE_BYTES // 2:
            written.gathered.stored = None  # so that not all of a large text is sent to the driver
        return _open_ended(written)


def _index(target: Target, ranges: Sequence[ObjectRange]) -> tuple[Written, list[str]]:
    """Cut the objects of a share into frames, and store their filter. Returns also notes for the user."""
    notes: list[str] = []
    with ExitStack() as stack:

        @cache
        def store_of(url: str) -> Store:
            return stack.enter_context(open_store_at(url, options_for(url, target.options)))

        columns = target.layout.columns(LEAST_FRAMES)
        put = target.store(stack).put
        written = index_objects(ranges, store_of, target.layout.frame_bytes, columns, put, notes.append)
        return _open_ended(written), notes


def _open_ended(written: Written) -> Written:
    """Without the columns of the last frames, since other text may follow."""
    stop = stale = len(written.records)
    remaining = 3 * max((ref.reach_bytes for ref in written.filters), default=0)  # folding may shrink a character
    while stale and remaining > 0:
        stale -= 1
        remaining -= written.records[stale].bytes
    written.filters = moved(written.filters, [Moved(stale, stop, stop, 0)])
    return written


def _join_here(target: Target, refs: Sequence[FilterRef]) -> FilterRef:
    """Join filters, and remove them (1 DELETE each). What may not be deleted stays until `gc`."""
    if len(refs) == 1:
        return refs[0]
    with ExitStack() as stack:
        store = target.store(stack)
        joined = join(refs, lambda key: store.get(key).data, store.put)
        with suppress(AccessDenied):
            for key in {key for ref in refs for key in ref.keys}.difference(joined.keys):
                store.delete(key)
    return joined


# -- by the driver -----------------------------------------------------------------------------------------------------


def _join(
    shares: Iterable[Written], target: Target, executor: Executor, progress: Callable[[Progress], None]
) -> Written:
    """Join what workers have stored, in order, into the whole text, and report the progress."""
    whole, done = Written(layout=target.layout), Progress()
    filters: list[FilterRef] = []
    for new in shares:
        filters += moved(new.filters, [Moved(0, 0, 0, len(whole.records))])
        whole.runs += new.runs
        whole.records += new.records
        if new.records:
            whole.final_newline = new.final_newline
        whole.gathered.extend(new.gathered)
        done = Progress(
            done.text_bytes + sum(record.bytes for record in new.records),
            done.stored_bytes + sum(record.stored_bytes for record in new.records),
            done.segments + len(new.runs),
        )
        progress(done)
    while True:  # a search reads a row of each filter
        groups: list[list[FilterRef]] = []
        for ref in filters:
            last = groups[-1] if groups else []
            is_full = len(last) == _JOINED or sum(item.frames for item in last) + ref.frames > _MOST_JOINED_FRAMES
            if last and not is_full and can_join([*last, ref]):
                last.append(ref)
            else:
                groups.append([ref])
        if len(groups) == len(filters):
            whole.filters = tuple(filters)
            return whole
        filters = list(in_order(executor, partial(_join_here, target), groups))
