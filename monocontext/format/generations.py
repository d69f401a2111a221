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
    """Read the root of a generation, by default the one in `manifest.json` (1 GET; 1 more where it is damaged).

    A crash between the first commit and its copy leaves generations without `manifest.json`: then the newest of them is
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
        found = _read_newest_listed(store)  # raises its own error where even the bucket is missing
        if found is None:
            raise NotFound(
                f"no context at {store.url}: `monocontext upload SOURCE... {store.url}` stores one there"
            ) from None
        return found._replace(gets=found.gets + 1)


def read_generation(store: Store, generation: int) -> Manifest:
    """Read one root by its number (1 GET). Raises `NotFound` where it was never committed or `gc` removed it."""
    return find_root(store, generation).manifest


def read_newest_after(store: Store, manifest: Manifest) -> Manifest:
    """Read the newest root, given one that may lag (1 GET more than there are generations after it)."""
    while True:
        try:
            manifest = read_generation(store, manifest.generation + 1)
        except NotFound:
            return manifest


def read_newest(store: Store) -> Manifest | None:
    """Read the newest root for a writer, or None at a fresh prefix (2 requests, and 1 for each generation that
    `manifest.json` is late).

    A damaged `manifest.json` is only a copy: the newest generation is listed instead. Raises `NotAContext` for a
    foreign manifest and `UnsupportedFormat` for a newer one: a writer overwrites neither.
    """
    try:
        copy = _read_root(store, ROOT_KEY).manifest
    except UnsupportedFormat:
        raise
    except (NotFound, DamagedData) as error:
        if isinstance(error, NotFound) and type(error) is not NotFound:
            raise  # NotAContext: the prefix holds something else
        found = _read_newest_listed(store)
        if found is None and isinstance(error, DamagedData):
            raise
        return found.manifest if found else None
    return read_newest_after(store, copy)


def _read_newest_listed(store: Store) -> Root | None:
    keys = [info.key for info in store.list("generations/")]
    return _read_root(store, max(keys)) if keys else None


def _read_root(store: Store, key: str) -> Root:
    """Read one root; where it is damaged, read it once more.

    Data that was damaged on the way is whole in the store. A flipped bit may also turn it into JSON of another kind, or
    a root of a newer format.
    """
    read_bytes = 0
    for gets in (1, 2):
        try:
            data = get_bounded(store, key, MOST_ROOT_BYTES).data
            read_bytes += len(data)
            return Root(Manifest.from_bytes(data, f"{store.url}/{key}"), read_bytes, gets)
        except (DamagedData, NotAContext) as error:
            is_list = isinstance(error, NotAContext) and data.lstrip().startswith(b"[")  # DeepRecurse's: it is whole
            if gets == 2 or is_list:
                raise
    raise AssertionError("unreachable")


def commit(store: Store, base: Manifest | None, build: Callable[[Manifest | None], Manifest]) -> Manifest:
    """Make `build(base)` the next generation; on a conflict call `build` again with the other writer's root.

    A reply may be lost although the write succeeded: a root's `write_id` is random, so `put_own` recognises it. Where
    old roots are removed while writers run, a number that others have passed may be free again: such a root is taken
    back, and `build` is called with the newest. Raises `ContextChanged` if it is too late to tell.
    """
    from monocontext.format.root_directories import MOST_NAMED_BYTES, use_directories  # readers have no use for it

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
        data = root.to_bytes()
        if (
            len(data) > MOST_NAMED_BYTES
            and (small := use_directories(root, store.put, lambda ref: store.get(ref.key).data)) != root
        ):
            root, data = small, small.to_bytes()
        if len(data) > MOST_ROOT_BYTES:
            raise ContextTooLarge(f"{store.url}: a root of {len(data):,} bytes, and readers take {MOST_ROOT_BYTES:,}")
        key = generation_key(root.generation)
        try:
            etag = put_own(store, key, data)
        except AlreadyExists as error:
            try:
                base = read_newest_after(store, read_generation(store, root.generation))
            except NotFound:
                # There is no such generation; or it was removed meanwhile, and there are newer ones.
                newest = read_newest(store)
                if newest is None or newest.generation <= root.generation:
                    raise error from None
                base = newest
            taken, newest_now = root.generation, base.generation
            log.note(
                log.INFO, "%s: someone else wrote generation %d; starting again from %d", store.url, taken, newest_now
            )
            continue
        try:
            newer = _update_copy(store, data, root.generation)
        except MonocontextError as error:
            # The commit is done without the copy: an error here would make the caller write twice.
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
            store.delete(key, if_match=etag)  # below the floor: ours or not, it was to go
        if follows is None:
            raise ContextChanged(
                f"{store.url}: generation {root.generation} was written, and is {newer.generation - root.generation} "
                f"behind the newest: old ones were removed meanwhile, so it is unknown whether the newest includes it"
            )
        base = read_newest_after(store, newer)


def newer_root(store: Store, base: Manifest | None) -> Manifest | None:
    """The newest root if it follows `base`, else None: a missing object of `base` may then have been removed because
    other writers have moved on."""
    newest = None if base is None else read_newest(store)
    return newest if base and newest and newest.generation > base.generation else None


def on_newest(
    store: Store, base: Manifest | None, build: Callable[[Manifest | None], _Result]
) -> tuple[Manifest | None, _Result]:
    """The root that `build` read from, and its result. Where an object of `base` was removed because other writers have
    moved on, `build` is called again with the newest root."""
    while True:
        try:
            return base, build(base)
        except NotFound:
            newest = read_newest(store)
            if base is None or newest is None or newest.generation <= base.generation:
                raise
            base = newest


def fence_seconds(store: Store, base: Manifest | None) -> float:
    """The time at which the fence of a root was stored, by the store's clock: 0 for a root without one, infinite if it
    is gone (at most 1 request)."""
    if base is None or not base.history.fence:
        return 0.0
    try:
        return store.head(generation_key(base.history.fence)).modified_seconds
    except NotFound:
        return float("inf")


def check_fence(store: Store, began: Manifest | None, base: Manifest | None) -> None:
    """Raise `AlreadyExists` where objects stored since the root `began` was read may be gone."""
    if base is not None and base.history.fence > (began.history.fence if began else 0):
        raise AlreadyExists(
            f"{store.url}: `gc` removed young objects while this was stored, perhaps some of its own (generation "
            f"{base.history.fence}): nothing was changed, start again"
        )


def _update_copy(store: Store, data: bytes, generation: int) -> Manifest | None:
    """Make `manifest.json` a copy of this root, unless it already holds this generation or a newer one: then that is
    returned."""
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
            continue  # another writer was here in between
