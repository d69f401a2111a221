"""Find the root of a generation, or the newest one. `writing.commit` makes the next."""

from __future__ import annotations

import re

from monocontext.errors import DamagedData, NotAContext, NotFound, UnsupportedFormat
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, Manifest, generation_key
from monocontext.options import check_int
from monocontext.records import NamedTuple
from monocontext.stores.protocol import Store, get_bounded

_ROOT = re.compile(r"generations/(\d{20})\.json")


class Root(NamedTuple):
    """A root, and the cost of reading it."""

    manifest: Manifest
    read_bytes: int
    gets: int


def find_root(store: Store, generation: int | None = None) -> Root:
    """Read the root of a generation, by default the one in `manifest.json` (1 GET; 1 more if it is damaged). If that is
    missing after a crash, the newest one is read (2 more). Raises `NotFound`, `NotAContext`, `DamagedData`,
    `UnsupportedFormat`."""
    if generation is not None:
        try:
            return _read_root(store, generation_key(check_int("generation", generation, 0)), generation)
        except NotFound:
            raise NotFound(f"no generation {generation} at {store.url}") from None
    try:
        return _read_root(store, ROOT_KEY)
    except NotFound:
        result = _read_newest_listed(store)  # raises its own error if even the bucket is missing
        if result is None:
            raise NotFound(f"no context at {store.url}: no text is stored there") from None
        return result._replace(gets=result.gets + 1)


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
    """Read the newest root for a writer; `None` at an empty prefix (2 requests, and 1 for each generation after the one
    in `manifest.json`). Raises `NotAContext` and `UnsupportedFormat` for what a writer must not overwrite."""
    try:
        copy = _read_root(store, ROOT_KEY).manifest
    except (NotFound, DamagedData) as error:
        result = None if isinstance(error, UnsupportedFormat) else _read_newest_listed(store)
        if result is None and isinstance(error, DamagedData):
            raise
        return result.manifest if result else None
    return read_newest_after(store, copy)


def _read_newest_listed(store: Store) -> Root | None:
    numbers = listed_generations(store)
    return _read_root(store, generation_key(numbers[-1]), numbers[-1]) if numbers else None


def listed_generations(store: Store) -> list[int]:
    """The numbers of the stored roots, rising (1 LIST for each thousand). Other objects there are not roots."""
    numbers = (generation_in(info.key) for info in store.list("generations/"))
    return sorted(number for number in numbers if number is not None)


def generation_in(key: str) -> int | None:
    """The number in the key of a root; None for another key."""
    name = _ROOT.fullmatch(key)
    return int(name[1]) if name else None


def _read_root(store: Store, key: str, generation: int | None = None) -> Root:
    """Read one root; if it is damaged, or is other JSON by a flipped bit, read it again: it may be intact in the store.
    Raises `DamagedData` for the root of another generation than that of the key: it would be followed for ever."""
    read_bytes = 0
    for gets in (1, 2):
        try:
            data = get_bounded(store, key, MOST_ROOT_BYTES).data
            read_bytes += len(data)
            root = Manifest.from_bytes(data, f"{store.url}/{key}")
            if generation is not None and root.generation != generation:
                raise DamagedData(f"{store.url}/{key}: expected generation {generation}, found {root.generation}")
            return Root(root, read_bytes, gets)
        except (DamagedData, NotAContext) as error:
            is_deeprecurse = isinstance(error, NotAContext) and data.lstrip().startswith(b"[")
            if gets == 2 or is_deeprecurse:
                raise
    raise AssertionError("unreachable")
