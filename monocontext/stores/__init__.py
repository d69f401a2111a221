"""Open object stores by URL. The module of a store, with its dependencies, is imported on first use."""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, closing, nullcontext
from typing import Any, Unpack, cast

from monocontext.options import StoreOptions, validate_options
from monocontext.stores.address import is_within, parse, split_object
from monocontext.stores.protocol import Store

_OPTIONS = {"s3": tuple(StoreOptions.__annotations__), **dict.fromkeys(("gs", "az"), ("endpoint", "anonymous"))}
"""The options of each scheme that has any."""
Place = str | os.PathLike[str] | Store
"""The URL or the path of a store, or a store that is open already."""

__all__ = ["Place", "is_within", "open_store", "open_store_at", "options_for", "place_for_workers", "split_object"]


def options_for(place: Place, options: StoreOptions | None) -> StoreOptions:
    """Those of the options that the scheme of a URL has; `open_store` refuses the others. Raises `InvalidUrl`."""
    known = _OPTIONS.get(parse(place).scheme, ()) if isinstance(place, str | os.PathLike) else ()
    return cast(StoreOptions, {name: value for name, value in (options or {}).items() if name in known})


@validate_options(StoreOptions)
def open_store(url: str | os.PathLike[str], **options: Unpack[StoreOptions]) -> Store:
    """Open the store at `s3://bucket/prefix`, `gs://bucket/prefix`, `az://container/prefix`, `https://host/path`,
    `file:///directory`, a directory path (with `~`), `memory://name`, `hf://datasets/owner/name` or any filesystem of
    fsspec as `fsspec+PROTOCOL://place/path` (extra `fsspec`).

    No request is sent, so a missing place is an error of the first verb. `gs://`, `az://`
    (`az://container@account/...`, `abfs://`) and `https://` need the extra `obstore`. They take the options `endpoint`
    and `anonymous`, and find credentials as the tools of their cloud do. `https://` is read only. An option that is
    `None` counts as not given:

    - `endpoint`: URL of a server other than AWS; by default `AWS_ENDPOINT_URL_S3` or `AWS_ENDPOINT_URL`
    - `region`, `profile`: as in the AWS configuration; with an endpoint the region defaults to `us-east-1`
    - `path_style`: the bucket in the path instead of the host; the default with an endpoint
    - `anonymous`: sign nothing
    - `transport`: the client for GETs: `own` (the default) or `boto3`, which sends all other requests
    - `keep_alive`: `False` leaves no connection of our transport open between two calls
    - `client`: a boto3 client, used as it is; it cannot be combined with other options

    Raises `InvalidUrl`, and `TypeError` for an option that the URL's scheme does not have.
    """
    return store_at(url, options)


def store_at(url: str | os.PathLike[str], options: StoreOptions) -> Store:
    """Open a store like `open_store`, with options whose names are validated."""
    arguments: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    address = parse(url)
    known = _OPTIONS.get(address.scheme, ())
    for name in arguments:
        if name not in known:
            hint = f"options are {', '.join(known)}" if known else "it takes no options"
            raise TypeError(f"unknown option {name!r} for {address}: {hint}")
    if address.scheme == "memory":
        from monocontext.stores.memory import MemoryStore

        return MemoryStore(address.place, address.path)
    if address.scheme == "file":
        from monocontext.stores.local import LocalStore

        return LocalStore(address.path)
    if address.scheme == "hf" or address.scheme.startswith("fsspec+"):
        from monocontext.stores.filesystem import FilesystemStore

        return FilesystemStore(address)
    if address.scheme != "s3":
        from monocontext.stores.cloud import CloudStore

        return CloudStore(address, **arguments)
    from monocontext.stores.s3.store import S3Store

    return S3Store(address.place, address.path, **arguments)


def open_store_at(place: Place, options: StoreOptions | None = None) -> AbstractContextManager[Store]:
    """The store at a place for a `with` block, which closes it at the end, unless it was open before."""
    if isinstance(place, str | os.PathLike):
        return closing(open_store(place, **(options or {})))
    return nullcontext(place)


def place_for_workers(place: Place) -> str | Store:
    """The place with an absolute path, so that workers can open it from another working directory."""
    if not isinstance(place, str | os.PathLike):
        return place
    location = os.fspath(place)
    return location if "://" in location else os.path.abspath(os.path.expanduser(location))
