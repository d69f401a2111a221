"""Generations of a context: finding the newest root, and committing the next.

`generations/<N>.json` is written once, create-only: whoever writes it has committed generation N. `manifest.json` is a
copy of the newest root and may lag by a crash; the next writer repairs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import NamedTuple

from monocontext.errors import (
    AlreadyExists,
    DamagedData,
    MonocontextError,
    NotAContext,
    NotFound,
    StoreFailure,
    UnsupportedFormat,
)
from monocontext.manifest import ROOT_KEY, Manifest, generation_key
from monocontext.store import Store


class Root(NamedTuple):
    """A root, and what it took to read it."""

    manifest: Manifest
    read_bytes: int
    gets: int


def read_root(store: Store) -> tuple[Manifest, int]:
    """The root that `manifest.json` holds, and the bytes read for it; costs and errors are those of `find_root`."""
    root = find_root(store)
    return root.manifest, root.read_bytes


def find_root(store: Store, generation: int | None = None) -> Root:
    """The root of a generation, or the one that `manifest.json` holds (1 GET; 1 more where it is damaged).

    A crash between the first commit and its copy leaves generations without `manifest.json`: then the newest of them
    (2 more requests). Raises `NotFound`, `NotAContext`, `DamagedData`, `UnsupportedFormat`.
    """
    if generation is not None:
        return _read(store, generation_key(generation))
    try:
        return _read(store, ROOT_KEY)
    except NotAContext:
        raise
    except NotFound:
        found = _newest_listed(store)  # says so itself where even the bucket is missing
        if found is None:
            raise NotFound(f"no context at {store.url} (no {ROOT_KEY} there)") from None
        return found._replace(gets=found.gets + 1)


def read_generation(store: Store, generation: int) -> Manifest:
    """One root by its number (1 GET). Raises `NotFound` when it was never committed or is collected."""
    return find_root(store, generation).manifest


def look_ahead(store: Store, manifest: Manifest) -> Manifest:
    """The newest root, given one that may lag (1 GET more than there are generations after it)."""
    while True:
        try:
            manifest = read_generation(store, manifest.generation + 1)
        except NotFound:
            return manifest


def newest(store: Store) -> Manifest | None:
    """The newest root for a writer, or None at a fresh prefix (2 requests, 1 more for each generation behind).

    A damaged `manifest.json` is only a copy: the newest generation is looked up instead. Raises `NotAContext` for a
    foreign manifest and `UnsupportedFormat` for a newer one: neither is ever written over.
    """
    try:
        copy = _read(store, ROOT_KEY).manifest
    except UnsupportedFormat:
        raise
    except (NotFound, DamagedData) as error:
        if isinstance(error, NotFound) and type(error) is not NotFound:
            raise  # NotAContext: something else lives here
        found = _newest_listed(store)
        if found is None and isinstance(error, DamagedData):
            raise
        return found.manifest if found else None
    return look_ahead(store, copy)


def _newest_listed(store: Store) -> Root | None:
    keys = [info.key for info in store.list("generations/")]
    if not keys:
        return None
    return _read(store, max(keys))


def _read(store: Store, key: str) -> Root:
    """One root; where it makes no sense, once more, and then that counts: what was damaged on the way is whole in the
    store. One flipped bit may also make a root of a newer format of it, or JSON of another kind."""
    read_bytes = 0
    for gets in (1, 2):
        try:
            data = store.get(key).data
            read_bytes += len(data)
            return Root(Manifest.from_bytes(data, f"{store.url}/{key}"), read_bytes, gets)
        except (DamagedData, NotAContext) as error:
            is_list = isinstance(error, NotAContext) and data.lstrip().startswith(b"[")  # DeepRecurse's: it is whole
            if gets == 2 or is_list:
                raise
    raise AssertionError("unreachable")


def commit(store: Store, base: Manifest | None, build: Callable[[Manifest | None], Manifest]) -> Manifest:
    """Make `build(base)` the next generation; on a conflict `build` is called again with what the other writer left.

    A reply may be lost although the write landed, and then the retry finds its own root in the way: the root that
    stands there is read back and told by its `write_id`.
    """
    while True:
        root = build(base)
        data = root.to_bytes()
        try:
            store.put(generation_key(root.generation), data, if_absent=True)
        except (AlreadyExists, StoreFailure) as error:
            try:
                there = read_generation(store, root.generation)
            except NotFound:
                raise error from None  # it did not land
            if there.write_id != root.write_id:
                base = look_ahead(store, there)
                continue
        try:
            _point(store, data, root.generation)
        except MonocontextError as error:
            # The commit stands whatever becomes of the copy: an error here would make the caller write it twice.
            warnings.warn(f"{store.url}: committed, but {ROOT_KEY} could not be updated: {error}", stacklevel=3)
        return root


def _point(store: Store, data: bytes, generation: int) -> None:
    """Make `manifest.json` a copy of this root unless it holds a newer one already."""
    while True:
        try:
            blob = store.get(ROOT_KEY)
        except NotFound:
            etag = None
        else:
            try:
                if Manifest.from_bytes(blob.data).generation >= generation:
                    return
            except UnsupportedFormat:
                return
            except DamagedData:
                pass  # a damaged copy is what we are here to replace
            etag = blob.etag
        try:
            store.put(ROOT_KEY, data, if_absent=etag is None, if_match=etag)
            return
        except (AlreadyExists, NotFound):
            continue  # another writer was here in between
