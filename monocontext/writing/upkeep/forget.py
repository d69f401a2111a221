"""Leave deleted text in no object of a context, and prove it.

The dead bytes of a segment are those of frames that the newest root does not name. Invariants after a `forget`:

- the newest root, and each later one, names only segments without dead bytes, and filters without dead columns
- no earlier root, and no object that only those name, is in the store
"""

from __future__ import annotations

import base64
import json
import os
import time
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

import zstandard

from monocontext.errors import MonocontextError, StoreFailure
from monocontext.format.filters.joining import cleared
from monocontext.format.manifest import Manifest, generation_key, listed_generations, read_newest
from monocontext.format.refs import FOLDERS, OBJECT, id_in
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import Place, open_store_at
from monocontext.stores.disk.cache import DiskCache
from monocontext.stores.protocol import Store, seconds_now
from monocontext.writing.pages import named_objects
from monocontext.writing.segments import SALT_BYTES
from monocontext.writing.splice import moved_frames, splice
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.gc import gc

_LOOK_SECONDS = 0.1  # the pause between two looks at the clock of the store, or for what other writers leave
_LOOKS = 20  # the looks for what other writers leave: these remove it when they lose against the deletion
_CLOCK_LOOKS = 600  # the looks at the clock: it may count whole seconds, or be somewhat behind
_ROUNDS = 3  # of `gc` and looks: a writer that was killed removes nothing
_MAGIC = (0xFD2FB528).to_bytes(4, "little")  # the first bytes of a zstd frame
_MOST_BYTES = 256 << 20  # the most bytes to which a zstd frame of a context decompresses


def dead_bytes(text: StoredText) -> Counter[str]:
    """The bytes of each segment that hold no frame of a text (1 LIST a thousand segments, 1 GET an index page)."""
    live: Counter[str] = Counter()
    for frame in text.frames(0, text.root.frames):
        live[frame.object] += frame.stored_bytes
    sizes = {info.key: info.size_bytes for info in text.store.list("segments/")}
    dead = {key: sizes[key] - SALT_BYTES - size for key, size in live.items() if key in sizes}
    return Counter({key: size for key, size in dead.items() if size > 0})


def without_dead_bytes(text: StoredText) -> Manifest:
    """The root of the same text whose objects hold nothing else: frames in segments with dead bytes, and filters with
    dead columns, are stored again. It has no copies of its text, and ends the restore of earlier ones."""
    dead = dead_bytes(text)
    root = splice(text, *moved_frames(text, lambda frame: frame.object in dead))
    refs = [cleared(ref, text.get, text.store.put) if ref.frames < ref.width else ref for ref in root.filters]
    return replace(root, filters=tuple(refs), history=replace(root.history, forgotten=text.root.generation + 1))


def forget_rest(store: Store, root: Manifest, cache_dir: str | os.PathLike[str] | None) -> None:
    """Remove all versions before `root`, which a deletion has committed, and empty a folder of caches. Raises
    `StoreFailure`, which says what to do, if what is left could hold the text."""
    try:
        remaining = _remove_earlier(store, root)
    except MonocontextError as error:
        raise StoreFailure(
            f"{store.url}: the deletion is committed as generation {root.generation}, but earlier versions could not "
            f"be removed ({error}): run `monocontext gc --older-than 0s`"
        ) from error
    if cache_dir is not None:
        DiskCache(cache_dir).clear()
    if remaining:
        raise StoreFailure(
            f"{store.url}: the deletion is committed as generation {root.generation}, but {len(remaining):,} objects "
            f"that no version names may hold the text, such as {min(remaining)}: when no other writer runs, run "
            f"`monocontext gc --older-than 0s`"
        )


def _remove_earlier(store: Store, root: Manifest) -> set[str]:
    """Run `gc` until nothing is left of versions before `root`. Returns the keys of what is left after all rounds."""
    remaining = set[str]()
    for _ in range(_ROUNDS):
        _wait_for_clock(store, root.generation)
        gc(store, older_than_seconds=0)
        remaining = _leftovers(store, root)
        for _ in range(_LOOKS):
            if not remaining:
                return remaining
            time.sleep(_LOOK_SECONDS)
            remaining &= _leftovers(store, root)  # later ones are those of other changes
    return remaining


def _wait_for_clock(store: Store, generation: int) -> None:
    """Wait until a commit is in the past by the store's clock, which may count whole seconds, so `gc` takes it so.
    Raises `StoreFailure` if that takes more than a minute."""
    for _ in range(_CLOCK_LOOKS):
        committed = next(iter(store.list(generation_key(generation))), None)  # as `gc` looks at it
        if not committed or seconds_now(store, committed.now_seconds) > committed.modified_seconds:
            return
        time.sleep(_LOOK_SECONDS)
    raise StoreFailure("by the clock of the server, or of this machine, the commit lies ahead: correct the clock")


def _leftovers(store: Store, root: Manifest) -> set[str]:
    """The keys of earlier roots, and of objects that no root names (1 LIST a thousand, 1 GET an index page)."""
    earlier = [generation_key(number) for number in listed_generations(store) if number < root.generation]
    objects = [info.key for folder in FOLDERS for info in store.list(folder) if OBJECT.fullmatch(info.key)]
    for _ in range(2):  # what a newer version names may have been listed too
        if objects:
            newest = read_newest(store)
            assert newest is not None  # a context keeps its newest generation
            named = named_objects(store, newest)
            objects = [key for key in objects if id_in(key) not in named]
    return {*earlier, *objects}


def find_leftovers(url: Place, texts: Collection[str], *, store_options: StoreOptions | None = None) -> list[str]:
    """The keys of objects below `url` that contain one of these texts, also compressed (1 GET an object).

    All objects are read, whether a generation names them or not: segments, whose frames are joined, pages of documents,
    and the copies of text in roots. Search filters contain no text. Raises `ValueError` for an empty text.
    """
    needles = [text.encode() for text in texts]
    if not needles or not all(needles):
        raise ValueError("the text to look for must not be empty")
    with open_store_at(url, store_options) as store:
        return [info.key for info in store.list() if _contains(store.get(info.key).data, needles)]


def _contains(data: bytes, needles: list[bytes]) -> bool:
    """Whether the bytes of an object, or a value of a root, contain a needle, as they are or decompressed."""
    parts = [data]
    if data.startswith((b"{", b"[")):
        with suppress(ValueError):  # text that begins like JSON
            parts = list(_values(json.loads(data)))
    for part in parts:
        decompressed = b"".join(_decompressed(part))
        if any(needle in part or needle in decompressed for needle in needles):
            return True
    return False


def _values(value: Any) -> Iterator[bytes]:
    """Yield the strings in JSON, also decoded if they may be base64. Short ones are words."""
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
        with suppress(ValueError):
            yield base64.b64decode(value, validate=True) if len(value) >= 16 else b""
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _values(item)


def _decompressed(data: bytes) -> Iterator[bytes]:
    """Yield the content of each zstd frame in order. Bytes that only look like the start of a frame are skipped."""
    start = data.find(_MAGIC)
    while start >= 0:
        part = zstandard.ZstdDecompressor(max_window_size=_MOST_BYTES).decompressobj()
        step = len(_MAGIC)
        try:
            decoded = part.decompress(data[start:])
            if part.eof:
                yield decoded
                step = len(data) - start - len(part.unused_data)
        except zstandard.ZstdError:
            pass
        start = data.find(_MAGIC, start + step)
