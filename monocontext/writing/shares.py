"""Store or index a text with the workers of an executor: each takes a share of the text, stores its frames and their
search filter, and returns their records; the driver joins these.

A share is text that the driver sends, or objects that the worker reads (`index_in_place`). The columns of its last
frames would cover text of the next one, so these frames have none until the commit (`appended`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeVar

from monocontext.errors import AccessDenied
from monocontext.format.filters.building import LEAST_FRAMES
from monocontext.format.filters.joining import Moved, can_join, join, moved
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple
from monocontext.stores import open_store_at, options_for
from monocontext.stores.parallel import AHEAD, in_order
from monocontext.stores.protocol import Store
from monocontext.writing.segments import SegmentLayout, Written, cut_frames, write_segments

SHARE_BYTES = 32 << 20  # text in a share: about two segments, a second of one core's time
_JOINED = 8  # the filters that a worker joins at once: it holds 16 MiB of each
_MOST_JOINED_FRAMES = 1 << 16  # as in one upload

_T = TypeVar("_T")


class Target(NamedTuple):
    """The context that workers write, as they open it, and how."""

    url: str | Store
    options: StoreOptions
    layout: SegmentLayout

    def open_store(self) -> AbstractContextManager[Store]:
        return open_store_at(self.url, options_for(self.url, self.options))


def share_text(target: Target, pieces: Iterable[bytes], executor: Executor, progress: Callable[[int], None]) -> Written:
    """Store a text as `write_segments` does, in the same frames, by workers. Some 8 shares are in memory."""
    shares = cut_shares(cut_frames(pieces, target.layout.frame_bytes), len)
    return join_shares(in_order(executor, partial(_store, target), shares, AHEAD), target, executor, progress)


def cut_shares(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
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


def _store(target: Target, frames: list[bytes]) -> Written:
    """Store the frames of a share and their filter."""
    with target.open_store() as store:
        written = open_ended(store, write_segments(store, frames, target.layout, frames_before=LEAST_FRAMES))
    if sum(record.bytes for record in written.records) > SHARE_BYTES // 2:
        written.gathered.stored = None  # so that not all of a large text is sent to the driver
    return written


def open_ended(store: Store, written: Written) -> Written:
    """`written` without columns of its last frames, after which other text may come, nor a filter of these alone."""
    stop = stale = len(written.records)
    remaining = 3 * max((ref.reach_bytes for ref in written.filters), default=0)  # folding may shrink a character
    while stale and remaining > 0:
        stale -= 1
        remaining -= written.records[stale].bytes
    keys = written.keys
    written.filters = moved(written.filters, [Moved(stale, stop, stop, 0)])
    with suppress(AccessDenied):
        for key in keys - written.keys:
            store.delete(key)
    return written


def _join_here(target: Target, refs: Sequence[FilterRef]) -> FilterRef:
    """Join filters, and remove them (1 DELETE each). What may not be deleted stays until `gc`."""
    if len(refs) == 1:
        return refs[0]
    with target.open_store() as store:
        joined = join(refs, lambda key: store.get(key).data, store.put)
        with suppress(AccessDenied):
            for key in {key for ref in refs for key in ref.keys}.difference(joined.keys):
                store.delete(key)
    return joined


def join_shares(
    shares: Iterable[Written],
    target: Target,
    executor: Executor,
    progress: Callable[[int], None],
    note: Callable[[str], None] = lambda text: None,
) -> Written:
    """Join what workers have stored, in order, into the whole text, and report the progress and their notes."""
    joined, text_bytes = Written(layout=target.layout), 0
    filters: list[FilterRef] = []
    for new in shares:
        for text in new.notes:
            note(text)
        filters += moved(new.filters, [Moved(0, 0, 0, len(joined.records))])
        joined.runs += new.runs
        joined.records += new.records
        joined.gathered.extend(new.gathered)
        text_bytes += sum(record.bytes for record in new.records)
        progress(text_bytes)
    # A search reads a row of each filter, so they are joined until no more can be.
    while len(groups := _groups_to_join(filters)) < len(filters):
        filters = list(in_order(executor, partial(_join_here, target), groups))
    joined.filters = tuple(filters)
    return joined


def _groups_to_join(filters: Iterable[FilterRef]) -> list[list[FilterRef]]:
    groups: list[list[FilterRef]] = []
    for ref in filters:
        last = groups[-1] if groups else []
        is_full = len(last) == _JOINED or sum(item.frames for item in last) + ref.frames > _MOST_JOINED_FRAMES
        if last and not is_full and can_join([*last, ref]):
            last.append(ref)
        else:
            groups.append([ref])
    return groups
