"""The place of a text that is written: a URL, a path, or an open store."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

Place = str | os.PathLike[str] | Store


def portable_place(url: Place) -> str | Store:
    """A place that a worker in another process or on another machine can open: a URL or an absolute path."""
    if not isinstance(url, str | os.PathLike):
        return url
    place = os.fspath(url)
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


@contextmanager
def open_store_at(url: Place, options: StoreOptions | None = None) -> Iterator[Store]:
    """Open the store at a URL for a `with` block; a store that is handed in stays open."""
    if not isinstance(url, str | os.PathLike):
        yield url
        return
    store = open_store(url, **(options or {}))
    try:
        yield store
    finally:
        store.close()
