"""Keep the filter columns of many workers in the store until one worker makes search filters from all of them.

A filter column holds the bits of one frame. The fullest frames decide the number of rows of a filter, so no worker can
make one from its own frames alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import suppress
from functools import partial

from monocontext.errors import AccessDenied
from monocontext.format.filters.building import Columns
from monocontext.format.refs import FilterRef, filter_key, fresh_id
from monocontext.options import StoreOptions
from monocontext.stores.protocol import Store
from monocontext.writing.batches import unpack_rows
from monocontext.writing.place import open_store_at
from monocontext.writing.segments import SegmentLayout


def store_columns(store: Store, columns: Sequence[bytes]) -> str:
    """Store the filter columns of some frames (1 PUT), and return the key."""
    key = filter_key(fresh_id())
    store.put(key, _encode(columns))
    return key


def load_columns(store: Store, keys: Sequence[str], columns: Columns) -> None:
    """Add the columns stored under `keys` to `columns`, in order, and finish these (1 GET each)."""
    for key in keys:
        for rows in _decode(store.get(key).data):
            columns.add(unpack_rows(rows))
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
        return columns.store(store.put)


def _encode(columns: Sequence[bytes]) -> bytes:
    """Encode columns: their number (4 bytes, big endian), then their rows; compressed."""
    return zlib.compress(len(columns).to_bytes(4, "big") + b"".join(columns), 1)


def _decode(data: bytes) -> Iterator[bytes]:
    data = zlib.decompress(data)
    count = int.from_bytes(data[:4], "big")
    size = (len(data) - 4) // count
    return (data[4 + number * size : 4 + (number + 1) * size] for number in range(count))
