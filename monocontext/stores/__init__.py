"""Stores, opened by URL. A store's own module, and what it needs, is imported when the first of its kind is opened."""

from __future__ import annotations

import os
from typing import Any

from monocontext.store import Store
from monocontext.stores.address import is_within, parse, split_object

__all__ = ["is_within", "open_store", "split_object"]

_S3_OPTIONS = ("endpoint", "region", "profile", "path_style", "anonymous", "transport", "keep_alive", "client")


def open_store(url: str | os.PathLike[str], **options: Any) -> Store:
    """Open the store at `s3://bucket/prefix`, `file:///directory`, a directory path (with `~`) or `memory://name`.

    Costs no request: the first verb finds out whether the place is there. Options, for `s3://` alone:

    - `endpoint`: URL of a server other than AWS; without it `AWS_ENDPOINT_URL_S3` and `AWS_ENDPOINT_URL` count
    - `region`, `profile`: as in the AWS configuration; where an endpoint is given the region defaults to `us-east-1`
    - `path_style`: the bucket in the path instead of the host; by default so where an endpoint is given
    - `anonymous`: sign nothing
    - `transport`: what GETs travel by, `own` (the default) or `boto3`, as everything else does
    - `keep_alive`: `False` leaves no connection of ours open between two calls
    - `client`: a ready boto3 client, taken as it is; excludes the others

    An option that is `None` counts as not given. Raises `InvalidUrl`, and `TypeError` for an option that the URL's
    scheme does not have.
    """
    address = parse(url)
    given = {name: value for name, value in options.items() if value is not None}
    known = _S3_OPTIONS if address.scheme == "s3" else ()
    for name in options:
        if name not in _S3_OPTIONS or (name in given and name not in known):
            takes = "takes " + ", ".join(known) if known else "takes no options"
            raise TypeError(f"unknown option {name!r} for {address}: {address.scheme} {takes}")
    if address.scheme == "memory":
        from monocontext.stores.memory import MemoryStore

        return MemoryStore(address.place, address.path)
    if address.scheme == "file":
        from monocontext.stores.local import LocalStore

        return LocalStore(address.path)
    from monocontext.stores.s3 import S3Store

    return S3Store(address.place, address.path, **given)
