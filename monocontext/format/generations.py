"""Find the newest root of a context, and commit the next generation.

`generations/<N>.json` is written once, create-only: the writer that creates it has committed generation N.
`manifest.json` is a copy of the newest root. It may lag after a crash; the next writer repairs it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from monocontext.errors import (
    AlreadyExists,
    ContextChanged,
    ContextTooLarge,
    DamagedData,
    MonocontextError,
    NotAContext,
    NotFound,
    UnsupportedFormat,
)
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest, generation_key
from monocontext.options import check_int
from monocontext.records import NamedTuple, replace
from monocontext.stores import log
from monocontext.stores.protocol import Store, get_bounded, put_own

_Result = TypeVar("_Result")


class Root(NamedTuple):
    """A root, and the cost of reading it."""

    manifest: Manifest
    read_bytes: int
    gets: int


def find_root(store: Store, generation: int | None = None) -> Root:
    """Read the root of a generation, by default the one in `manifest.json` (1 GET; 1 more if it is damaged).

    A crash between the first commit and its copy leaves generations without `manifest.json`: then the newest one is
    read (2 more requests). Raises `NotFound`, `NotAContext`, `DamagedData`, `UnsupportedFormat`.
    """
    if generation is not None:
        try:
            return _read_root(store, generation_key(check_int("generation", generation, 0)))
        except NotAContext:
            raise
        except NotFound:
            raise NotFound(f"no generation {generation} at {store.url}") from None
    try:
        return _read_root(store, ROOT_KEY)
    except NotAContext:
        raise
    except NotFound:
        found = _read_newest_listed(store)  # raises its own error if even the bucket is missing
        if found is None:
            raise NotFound(
                f"no context at {store.url}: `monocontext upload SOURCE... {store.url}` stores one there"
            ) from None
        return found._replace(gets=found.gets + 1)


def read_generation(store: Store, generation: int) -> Manifest:
    """Read one root by its number (1 GET). Raises `NotFound` if it was never committed, or `gc` removed it."""
    return find_root(store, generation).manifest


def read_newest_after(store: Store, manifest: Manifest) -> Manifest:
    """Read the newest root, given one that may be older (1 GET, and 1 for each generation in between)."""
    while True:
        try:
            manifest = read_generation(store, manifest.generation + 1)
        except NotFound:
            return manifest


def read_newest(store: Store) -> Manifest | None:
    """Read the newest root for a writer; `None` at an empty prefix.

    Costs 2 requests, and 1 for each generation after the one in `manifest.json`. If that copy is damaged, generations
    are listed. Raises `NotAContext` for a foreign manifest and `UnsupportedFormat` for a newer one, since a writer must
    overwrite neither.
    """
    try:
        copy = _read_root(store, ROOT_KEY).manifest
    except UnsupportedFormat:
        raise
    except NotAContext:
        raise
    except (NotFound, DamagedData) as error:
        found = _read_newest_listed(store)
        if found is None and isinstance(error, DamagedData):
            raise
        return found.manifest if found else None
    return read_newest_after(store, copy)


def _read_newest_listed(store: Store) -> Root | None:
    keys = [info.key for info in store.list("generations/")]
    return _read_root(store, max(keys)) if keys else None


def _read_root(store: Store, key: str) -> Root:
    """Read one root; if it is damaged, read it again, since it may be intact in the store.

    A flipped bit may also make it look like other JSON, or like a root of a newer format.
    """
    read_bytes = 0
    for gets in (1, 2):
        try:
            data = get_bounded(store, key, MOST_ROOT_BYTES).data
            read_bytes += len(data)
            return Root(Manifest.from_bytes(data, f"{store.url}/{key}"), read_bytes, gets)
        except (DamagedData, NotAContext) as error:
            is_deeprecurse = isinstance(error, NotAContext) and data.lstrip().startswith(b"[")
            if gets == 2 or is_deeprecurse:
                raise
    raise AssertionError("unreachable")


def commit(store: Store, base: Manifest | None, build: Callable[[Manifest | None], Manifest]) -> Manifest:
    """Make `build(base)` the next generation; after a conflict, call `build` again with the other writer's root.

    A reply may be lost although the write succeeded: a root's `write_id` is random, so `put_own` recognises it. While
    old roots are removed, the number of a generation that others have passed may be free again. A root under such a
    number is removed, and `build` is called with the newest. Raises `ContextChanged` if it is too late to tell.
    """
    while True:
        try:
            root = build(base)
        except NotFound:
            base = newer_root(store, base)
            if base is None:
                raise
            continue
        if base is not None:
            root = replace(root, history=root.history.after(base.write_id, base.history))
        root, data = _encode_root(store, root)
        key = generation_key(root.generation)
        try:
            etag = put_own(store, key, data)
        except AlreadyExists as error:
            base = _read_newest_since(store, root.generation)
            if base is None:
                raise error from None
            event = "%s: someone else wrote generation %d; starting again from %d"
            log.note(log.INFO, event, store.url, root.generation, base.generation)
            continue
        try:
            newer = _update_copy(store, data, root.generation)
        except MonocontextError as error:
            # The commit succeeded: an error here would make the caller write twice.
            warnings.warn(f"{store.url}: committed, but {ROOT_KEY} could not be updated: {error}", stacklevel=3)
            return root
        if newer is None or newer.write_id == root.write_id:
            return root
        follows = newer.generation > root.generation and newer.history.descends_from(
            root.generation, root.write_id, newer.generation
        )
        if follows:
            return root
        with suppress(AlreadyExists, NotFound):
            store.delete(key, if_match=etag)  # `gc` would remove it too, even if it is part of the text
        if follows is None:
            raise ContextChanged(
                f"{store.url}: generation {root.generation} was written, and is {newer.generation - root.generation} "
                f"behind the newest: check whether the newest text includes it, since old roots were removed meanwhile"
            )
        base = read_newest_after(store, newer)


def _encode_root(store: Store, root: Manifest) -> tuple[Manifest, bytes]:
    """A root, with directories if it is large, and its JSON. Raises `ContextTooLarge`."""
    from monocontext.format.root_directories import MOST_NAMED_BYTES, use_directories  # readers do not need these

    data = root.to_bytes()
    if len(data) > MOST_NAMED_BYTES:
        small = use_directories(root, store.put, lambda ref: store.get(ref.key).data)
        if small != root:
            root, data = small, small.to_bytes()
    if len(data) > MOST_ROOT_BYTES:
        raise ContextTooLarge(
            f"{store.url}: the next root would have {len(data):,} bytes, at most {MOST_ROOT_BYTES:,} are allowed"
        )
    return root, data


def _read_newest_since(store: Store, generation: int) -> Manifest | None:
    """Read the newest root, given a generation that another writer has; `None` if it has no root after all."""
    try:
        return read_newest_after(store, read_generation(store, generation))
    except NotFound:  # it does not exist, or it was removed meanwhile, and there are newer ones
        newest = read_newest(store)
        return newest if newest and newest.generation > generation else None


def newer_root(store: Store, base: Manifest | None) -> Manifest | None:
    """Read the newest root; `None` unless it is newer than `base`. Then other writers may have removed objects of
    `base`."""
    newest = None if base is None else read_newest(store)
    return newest if base and newest and newest.generation > base.generation else None


def on_newest(
    store: Store, base: Manifest | None, build: Callable[[Manifest | None], _Result]
) -> tuple[Manifest | None, _Result]:
    """Call `build` with a root, and again with the newest one if an object of `base` was removed meanwhile.

    Returns the root and the result.
    """
    while True:
        try:
            return base, build(base)
        except NotFound:
            base = newer_root(store, base)
            if base is None:
                raise


def fence_seconds(store: Store, base: Manifest | None) -> float:
    """The time at which the fence of a root was stored, by the store's clock (at most 1 request).

    0 for a root without a fence, and infinite if the fence was removed.
    """
    if base is None or not base.history.fence:
        return 0.0
    try:
        return store.head(generation_key(base.history.fence)).modified_seconds
    except NotFound:
        return float("inf")


def check_fence(store: Store, began: Manifest | None, base: Manifest | None) -> None:
    """Raise `AlreadyExists` if objects that were stored since the root `began` was read may have been removed."""
    if base is not None and base.history.fence > (began.history.fence if began else 0):
        raise AlreadyExists(
            f"{store.url}: nothing was changed, start again: `gc` removed young objects meanwhile, perhaps of this "
            f"write (generation {base.history.fence})"
        )


def _update_copy(store: Store, data: bytes, generation: int) -> Manifest | None:
    """Make `manifest.json` a copy of this root. If it has this generation or a newer one, return that root instead."""
    while True:
        etag: str | None = None
        try:
            blob = get_bounded(store, ROOT_KEY, MOST_ROOT_BYTES)
            etag = blob.etag
            there = Manifest.from_bytes(blob.data)
            if there.generation >= generation:
                return there
        except NotAContext:
            raise
        except UnsupportedFormat:
            return None
        except NotFound:
            pass
        except DamagedData:
            etag = etag or store.head(ROOT_KEY).etag  # a damaged copy is replaced here
        try:
            put_own(store, ROOT_KEY, data, if_match=etag)
            return None
        except (AlreadyExists, NotFound):
            continue  # another writer replaced the copy
