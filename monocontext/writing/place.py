"""Open the store of a context from a URL, a path, or a store that is open already."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from monocontext.options import StoreOptions
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

Place = str | os.PathLike[str] | Store


def portable_place(url: Place) -> str | Store:
    """The place as a worker can open it that has another working directory: a relative path becomes absolute."""
    if not isinstance(url, str | os.PathLike):
        return url
    place = os.fspath(url)
    return place if "://" in place else os.path.abspath(os.path.expanduser(place))


@contextmanager
def open_store_at(url: Place, options: StoreOptions | None = None) -> Iterator[Store]:
    """Open the store at a URL or path for a `with` block. A store that is open already is yielded, and stays open."""
    if not isinstance(url, str | os.PathLike):
        yield url
        return
    store = open_store(url, **(options or {}))
    try:
        yield store
    finally:
        store.close()
