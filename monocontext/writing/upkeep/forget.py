"""Remove deleted text from all objects of a context, and find the objects that still contain it.

The dead bytes of a segment are those of frames that the newest root does not name. Invariants after a `forget`:

- the newest root, and each later one, names only segments without dead bytes, and filters without dead columns
- the store has no earlier root, and no object that only earlier roots name
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

from monocontext.errors import MonocontextError, NotFound, StoreFailure
from monocontext.format.filters.joining import clear_unused
from monocontext.format.manifest import Manifest, generation_key, listed_generations, read_newest
from monocontext.format.refs import FOLDERS, OBJECT, id_in
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores import Place, open_store_at
from monocontext.stores.disk.cache import DiskCache
from monocontext.stores.protocol import Store, seconds_now
from monocontext.writing.pages import named_objects
from monocontext.writing.segments import SALT_BYTES
from monocontext.writing.splice import copy_frames, splice
from monocontext.writing.stored_text import StoredText
from monocontext.writing.upkeep.gc import gc

_POLL_SECONDS = 0.1  # the pause between two looks at the store
_LEFTOVER_POLLS = 20  # looks for objects of other writers, which remove these when they lose against the deletion
_CLOCK_POLLS = 600  # looks at the clock of the store, which may count whole seconds, or be somewhat behind
_ROUNDS = 3  # how often `gc` and these looks are repeated: a writer that was killed removes nothing
_ZSTD_MAGIC = bytes.fromhex("28b52ffd")  # the first bytes of a zstd frame
_MOST_FRAME_BYTES = 256 << 20  # the most bytes to which a zstd frame of a context decompresses


def dead_bytes(text: StoredText) -> Counter[str]:
    """By segment, the number of bytes that belong to no frame of a text (1 LIST per 1,000 segments, 1 GET per page)."""
    live: Counter[str] = Counter()
    for frame in text.frames(0, text.root.frames):
        live[frame.object] += frame.stored_bytes
    sizes = {info.key: info.size_bytes for info in text.store.list("segments/")}
    dead = {key: sizes[key] - SALT_BYTES - size for key, size in live.items() if key in sizes}
    return Counter({key: size for key, size in dead.items() if size > 0})


def without_dead_bytes(text: StoredText) -> Manifest:
    """The root of the same text in objects that contain nothing else: frames in segments with dead bytes, and filters
    with dead columns, are stored again. It has no copies of its text, and no earlier root can be restored after it."""
    dead = dead_bytes(text)
    root = splice(text, *copy_frames(text, lambda frame: frame.object in dead))
    refs = [clear_unused(ref, text.get, text.store.put) if ref.frames < ref.width else ref for ref in root.filters]
    return replace(root, filters=tuple(refs), history=replace(root.history, forgotten=text.root.generation + 1))


def forget_rest(store: Store, root: Manifest, cache_dir: str | os.PathLike[str] | None) -> None:
    """Remove all versions before `root`, which a deletion has committed, and empty a folder of caches. Raises
    `StoreFailure`, with a remedy, if an object that is left may contain the text."""
    committed = f"{store.url}: the deletion is committed as generation {root.generation}, but"
    remedy = "run `monocontext gc --older-than 0s`"
    try:
        remaining = _remove_earlier(store, root)
    except MonocontextError as error:
        raise StoreFailure(f"{committed} earlier versions could not be removed ({error}): {remedy}") from error
    if cache_dir is not None:
        DiskCache(cache_dir).clear()
    if remaining:
        raise StoreFailure(
            f"{committed} {len(remaining):,} objects that no version names may contain the text, such as "
            f"{min(remaining)}: when no other writer runs, {remedy}"
        )


def _remove_earlier(store: Store, root: Manifest) -> set[str]:
    """Run `gc` until nothing of versions before `root` is left. Returns the keys of what remains after all rounds."""
    remaining = set[str]()
    for _ in range(_ROUNDS):
        _wait_for_clock(store, root.generation)
        gc(store, older_than_seconds=0)
        remaining = _leftovers(store, root)
        for _ in range(_LEFTOVER_POLLS):
            if not remaining:
                return remaining
            time.sleep(_POLL_SECONDS)
            remaining &= _leftovers(store, root)  # newer objects are those of other changes
    return remaining


def _wait_for_clock(store: Store, number: int) -> None:
    """Wait until a generation is in the past by the clock that `gc` reads. Raises `StoreFailure` after a minute."""
    for _ in range(_CLOCK_POLLS):
        committed = next(iter(store.list(generation_key(number))), None)  # from a LIST, as in `gc`
        if not committed or seconds_now(store, committed.now_seconds) > committed.modified_seconds:
            return
        time.sleep(_POLL_SECONDS)
    raise StoreFailure(f"generation {number} is later than the clock of the server or this machine: correct the clock")


def _leftovers(store: Store, root: Manifest) -> set[str]:
    """The keys of earlier roots, and of objects that no root names (1 LIST per 1,000 objects, 1 GET per index page)."""
    earlier = [generation_key(number) for number in listed_generations(store) if number < root.generation]
    objects = [info.key for folder in FOLDERS for info in store.list(folder) if OBJECT.fullmatch(info.key)]
    for _ in range(2):  # again, since objects of a version that was committed meanwhile may have been listed too
        if objects:
            newest = read_newest(store)
            assert newest is not None  # a context keeps its newest generation
            named = named_objects(store, newest)
            objects = [key for key in objects if id_in(key) not in named]
    return {*earlier, *objects}


def find_leftovers(url: Place, texts: Collection[str], *, store_options: StoreOptions | None = None) -> list[str]:
    """The keys of objects below `url` that contain one of these texts, also compressed (1 GET per object). All objects
    are read, whether a generation names them or not: segments, whose frames are joined, pages of documents, and the
    copies of text in roots. Search filters contain no text. Raises `ValueError` for an empty text, and
    `NotFound` if there is no object."""
    needles = [text.encode() for text in texts]
    if not needles or not all(needles):
        raise ValueError(f"texts must be one or more strings that are not empty, not {texts!r:.80}")
    with open_store_at(url, store_options) as store:
        keys = [info.key for info in store.list()]
        if not keys:
            raise NotFound(f"no object below {store.url}: give the URL of a context")
        return [key for key in keys if _contains(store.get(key).data, needles)]


def _contains(data: bytes, needles: list[bytes]) -> bool:
    """Whether an object, or a value in it if it is JSON, contains a needle, as it is or decompressed."""
    parts = [data]
    if data.startswith((b"{", b"[")):
        with suppress(ValueError):  # text that only begins like JSON
            parts = list(_values(json.loads(data)))
    for part in parts:
        decompressed = b"".join(_decompressed(part))
        if any(needle in part or needle in decompressed for needle in needles):
            return True
    return False


def _values(value: Any) -> Iterator[bytes]:
    """Yield the strings in a JSON value, and the bytes that they decode to if they may be base64."""
    if isinstance(value, str):
        yield value.encode("utf-8", "surrogatepass")
        with suppress(ValueError):
            yield base64.b64decode(value, validate=True) if len(value) >= 16 else b""
    elif isinstance(value, dict | list):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _values(item)


def _decompressed(data: bytes) -> Iterator[bytes]:
    """Yield the content of each zstd frame in order. Bytes that only look like the start of a frame are skipped."""
    start = data.find(_ZSTD_MAGIC)
    while start >= 0:
        part = zstandard.ZstdDecompressor(max_window_size=_MOST_FRAME_BYTES).decompressobj()
        step = len(_ZSTD_MAGIC)
        try:
            decoded = part.decompress(data[start:])
            if part.eof:
                yield decoded
                step = len(data) - start - len(part.unused_data)
        except zstandard.ZstdError:
            pass
        start = data.find(_ZSTD_MAGIC, start + step)
