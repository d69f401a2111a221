"""Store or index a text with the workers of an executor. Each worker takes a share of the text, stores its frames and
their search filter, and returns the records of these; the driver joins them.

A share is text that the driver sends, or objects that the worker reads (`index_in_place`). The filter columns of its
last frames would cover text of the next share, so these frames get theirs in the commit (`appended`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, suppress
from functools import partial
from typing import TypeVar

from monocontext.errors import AccessDenied
from monocontext.format.filters.building import LEAST_FRAMES
from monocontext.format.filters.joining import FrameChange, apply_changes, can_join, join
from monocontext.format.refs import FilterRef
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple
from monocontext.stores import open_store_at, options_for
from monocontext.stores.parallel import AHEAD, in_order
from monocontext.stores.protocol import Store
from monocontext.writing.segments import SegmentLayout, Written, cut_frames, write_segments
from monocontext.writing.splice import FOLDING

SHARE_BYTES = 32 << 20  # the text of a share: about two segments, and a second of one core's time
_MOST_JOINED = 8  # the most filters that a worker joins at once: it holds 16 MiB of each
_MOST_JOINED_FRAMES = 1 << 16  # the most frames of a joined filter, as in an upload without workers

_T = TypeVar("_T")


class Target(NamedTuple):
    """The context that workers write to."""

    url: str | Store
    options: StoreOptions  # for opening it
    layout: SegmentLayout

    def open_store(self) -> AbstractContextManager[Store]:
        return open_store_at(self.url, options_for(self.url, self.options))


def share_text(target: Target, pieces: Iterable[bytes], executor: Executor, progress: Callable[[int], None]) -> Written:
    """Store a text with workers, in the same frames as `write_segments`. About 8 shares are in memory at a time."""
    shares = cut_shares(cut_frames(pieces, target.layout.frame_bytes), len)
    return join_shares(in_order(executor, partial(_store_share, target), shares, AHEAD), target, executor, progress)


def cut_shares(items: Iterable[_T], size_of: Callable[[_T], int]) -> Iterator[list[_T]]:
    """Yield lists of items of at most `SHARE_BYTES` in all, or of one larger item. `size_of`: the bytes of an item."""
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


def _store_share(target: Target, frames: list[bytes]) -> Written:
    """Store the frames of a share, and their filter, in a worker."""
    with target.open_store() as store:
        written = drop_end_columns(store, write_segments(store, frames, target.layout, frames_before=LEAST_FRAMES))
    if sum(record.bytes for record in written.records) > SHARE_BYTES // 2:
        written.gathered.stored = None  # a root has no room for the text of such shares, so it is not sent back
    return written


def drop_end_columns(store: Store, written: Written) -> Written:
    """Drop the filter columns of the last frames of a share, which would cover text after it. Returns `written`."""
    stop = stale = len(written.records)
    covered_bytes = FOLDING * max((ref.reach_bytes for ref in written.filters), default=0)
    while stale and covered_bytes > 0:
        stale -= 1
        covered_bytes -= written.records[stale].bytes
    keys = written.keys
    written.filters = apply_changes(written.filters, [FrameChange(stale, first=stop, stop=stop, grown=0)])
    with suppress(AccessDenied):
        for key in keys - written.keys:
            store.delete(key)
    return written


def _join_filters(target: Target, refs: Sequence[FilterRef]) -> FilterRef:
    """Join filters into one, and remove the old ones (1 DELETE each). If the worker may not, `gc` removes them."""
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
    """Join the shares that workers have stored, in order, into one text. Reports progress and the workers' notes."""
    joined, text_bytes = Written(layout=target.layout), 0
    filters: list[FilterRef] = []
    for share in shares:
        for text in share.notes:
            note(text)
        filters += apply_changes(share.filters, [FrameChange(0, 0, 0, grown=len(joined.records))])
        joined.extend(share)
        text_bytes += sum(record.bytes for record in share.records)
        progress(text_bytes)
    # A search reads a row of each filter, so filters are joined as far as possible.
    while len(groups := _groups_to_join(filters)) < len(filters):
        filters = list(in_order(executor, partial(_join_filters, target), groups))
    joined.filters = tuple(filters)
    return joined


def _groups_to_join(filters: Iterable[FilterRef]) -> list[list[FilterRef]]:
    groups: list[list[FilterRef]] = []
    for ref in filters:
        last = groups[-1] if groups else []
        is_full = len(last) == _MOST_JOINED or sum(item.frames for item in last) + ref.frames > _MOST_JOINED_FRAMES
        if last and not is_full and can_join([*last, ref]):
            last.append(ref)
        else:
            groups.append([ref])
    return groups
