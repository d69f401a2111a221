"""Keep the filter columns of many workers in the store until one worker makes search filters from all of them.

A filter column holds the bits of one frame; the folded length is that of its folded text, in bytes. The fullest frames
decide the number of rows of a filter, so no worker can make one from its own frames alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial

from monocontext.errors import AccessDenied
from monocontext.format.filters.building import Columns
from monocontext.format.filters.frame_column import Column
from monocontext.format.refs import FilterRef, filter_key, fresh_id
from monocontext.options import StoreOptions
from monocontext.stores.protocol import Store
from monocontext.writing.batches import unpack_rows
from monocontext.writing.place import open_store_at
from monocontext.writing.segments import SegmentLayout


def store_columns(store: Store, columns: Sequence[tuple[bytes, int]]) -> str:
    """Store the filter columns of some frames (1 PUT), each as rows and length of folded text, and return the key."""
    key = filter_key(fresh_id())
    store.put(key, _encode(columns))
    return key


def load_columns(store: Store, keys: Sequence[str], columns: Columns) -> None:
    """Add the columns stored under `keys` to `columns`, in order, and finish these (1 GET each)."""
    for key in keys:
        for rows, folded_bytes in _decode(store.get(key).data):
            columns.add(Column(unpack_rows(rows), folded_bytes))
    columns.finish()


def remove_columns(store: Store, keys: Sequence[str]) -> None:
    """Remove stored columns (1 DELETE each). Where the writer may not delete, `gc` removes them later."""
    with suppress(AccessDenied):
        for key in keys:
            store.delete(key)


def make_filters(
    executor: Executor, keys: Sequence[str], url: str | Store, options: StoreOptions, layout: SegmentLayout
) -> tuple[FilterRef, ...]:
    """Let a worker make the filters of a whole text from its stored columns, then remove these."""
    make = partial(_make_filters_here, keys, url=url, options=options, layout=layout)
    refs = executor.submit(make).result()
    with open_store_at(url, options) as store:
        remove_columns(store, keys)
    return refs


def _make_filters_here(
    keys: Sequence[str], *, url: str | Store, options: StoreOptions, layout: SegmentLayout
) -> tuple[FilterRef, ...]:
    columns = layout.columns()
    assert columns is not None  # the caller stored columns, so the layout has filters
    with open_store_at(url, options) as store:
        load_columns(store, keys, columns)
        if columns.frames < columns.least_frames:
            return ()
        # A whole text: nothing precedes it.
        return columns.store(
            put=store.put, get=lambda key: store.get(key).data, base=None, last_frames=lambda: iter(())
        )


def _encode(columns: Sequence[tuple[bytes, int]]) -> bytes:
    """Encode columns: their number and the folded length of each (4 bytes each, big endian), then their rows;
    compressed."""
    counts = b"".join(count.to_bytes(4, "big") for count in (len(columns), *(folded for _, folded in columns)))
    return zlib.compress(counts + b"".join(rows for rows, _ in columns), 1)


def _decode(data: bytes) -> Iterator[tuple[bytes, int]]:
    data = zlib.decompress(data)
    count = int.from_bytes(data[:4], "big")
    begin = 4 * (count + 1)
    size = (len(data) - begin) // count
    for number in range(count):
        folded = int.from_bytes(data[4 * number + 4 : 4 * number + 8], "big")
        yield data[begin + number * size : begin + (number + 1) * size], folded
