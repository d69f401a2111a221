"""Open the store of a context from a URL, a path, or a store that is open already."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from monocontext.errors import InvalidUrl
from monocontext.options import StoreOptions
from monocontext.stores import open_store, options_for
from monocontext.stores.protocol import Store

Place = str | os.PathLike[str] | Store

_ADDRESS = re.compile(r"(s3|gs|az|abfs|memory|file)://\S+")


def check_order(sources: object, url: Place) -> None:
    """Raises `InvalidUrl` where the arguments (text, place) come in the other order: the place is text of several
    lines, or the text is only an address."""
    if isinstance(url, str) and "\n" in url:
        raise InvalidUrl(
            f"the second argument must be a URL, but it is a text of several lines ({url[:40]!r}): the order is "
            f"(text, url)"
        )
    if isinstance(sources, str) and _ADDRESS.fullmatch(sources):
        raise InvalidUrl(
            f"the first argument must be the text, but it is only a URL ({sources!r}): the order is (text, url)"
        )


def portable_place(url: Place) -> str | Store:
    """The place as a worker can open it that has another working directory: a relative path becomes absolute."""
    if not isinstance(url, str | os.PathLike):
        return url
    location = os.fspath(url)
    return location if "://" in location else os.path.abspath(os.path.expanduser(location))


def own_options(url: Place, options: StoreOptions | None) -> StoreOptions:
    """Of the options of a place and of sources elsewhere, those of the place."""
    return options_for(url, options or {}) if isinstance(url, str | os.PathLike) else {}


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
