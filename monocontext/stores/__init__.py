"""Open object stores by URL. The module of a store, with its dependencies, is imported on first use."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Unpack, cast

from monocontext.options import StoreOptions, validate_options
from monocontext.stores.address import is_within, parse, split_object
from monocontext.stores.protocol import Store

Place = str | os.PathLike[str] | Store
"""The URL or the path of a store, or a store that is open already."""

__all__ = ["Place", "is_within", "open_store", "open_store_at", "options_for", "place_for_workers", "split_object"]


def options_for(place: Place, options: StoreOptions | None) -> StoreOptions:
    """Those of `options` that `open_store` accepts for this place; empty for a store that is open already.

    Raises `InvalidUrl` for an invalid URL or path.
    """
    accepted = parse(place).option_names if isinstance(place, str | os.PathLike) else ()
    return cast(StoreOptions, {name: value for name, value in (options or {}).items() if name in accepted})


@validate_options(StoreOptions)
def open_store(url: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> Store:
    """Open the store at `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `https://host/path`,
    `file:///directory`, a directory path (with `~`), `memory://name`, `hf://datasets/owner/name` or any filesystem of
    fsspec as `fsspec+PROTOCOL://place/path` (extra `fsspec`).

    No request is sent, so a missing bucket or folder raises an error in the first call that needs it. `gs://`, `az://`
    (`az://container@account/...`, `abfs://`) and `https://` need the extra `obstore`. `gs://` and `az://` take the
    options `endpoint` and `anonymous`, and find credentials as the tools of their cloud do. `https://` is read only.
    `s3://` takes all options, which `StoreOptions` describes.

    Raises `InvalidUrl`, and `TypeError` for an option that the URL's scheme does not have.
    """
    return parse(url).open(options)


def open_store_at(place: Place, options: StoreOptions | None = None) -> AbstractContextManager[Store]:
    """A context manager for the store at `place`. It closes a store that it opened, and leaves an open one open."""
    if isinstance(place, str | os.PathLike):
        return closing(open_store(place, **(options or {})))
    return nullcontext(place)


def place_for_workers(place: Place) -> str | Store:
    """The place, with a path made absolute, so that workers in another working directory can open it."""
    if not isinstance(place, str | os.PathLike):
        return place
    location = os.fspath(place)
    return location if "://" in location else os.path.abspath(os.path.expanduser(location))
