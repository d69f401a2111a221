"""Search all objects of a context, decompressed, for a text that a deletion with `forget` must remove."""

from __future__ import annotations

import base64
import binascii
import json
import os
from collections.abc import Iterator
from typing import Any

import zstandard

from monocontext.options import StoreOptions
from monocontext.stores.disk.cache import DiskCache
from monocontext.writing.place import Place, open_store_at

_MAGIC = (0xFD2FB528).to_bytes(4, "little")
"""The first bytes of a zstd frame."""
_LEAST_BASE64 = 16
"""Shorter values of a root, in characters, are no base64, but words."""
_MOST_BYTES = 256 << 20
"""The most bytes to which a zstd frame of a context decompresses."""


def find_leftovers(
    url: Place,
    texts: list[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    store_options: StoreOptions | None = None,
) -> list[str]:
    """The keys of objects below `url` that contain one of these texts, also compressed (1 GET an object).

    With `cache_dir` (`Monocontext.open`), also the paths of such files in that folder. All objects are read, whether a
    generation names them or not: segments, whose frames are joined, pages of documents, and the copies of text in
    roots. Search filters contain no text. Raises `ValueError` for an empty text.
    """
    needles = [text.encode() for text in texts]
    if not needles or not all(needles):
        raise ValueError("the text to look for must not be empty")
    found = []
    with open_store_at(url, store_options) as store:
        for info in store.list():
            data = store.get(info.key).data
            if _contains(data, needles):
                found.append(info.key)
    for path in DiskCache(cache_dir).files() if cache_dir is not None else ():
        with open(path, "rb") as file:
            if _contains(file.read(), needles):
                found.append(path)
    return found


def _contains(data: bytes, needles: list[bytes]) -> bool:
    return any(needle in part for part in _forms(data) for needle in needles)


def _forms(data: bytes) -> Iterator[bytes]:
    """Yield the bytes of an object, and those of all its zstd frames, decompressed and joined; for a root, the same for
    each value in it."""
    try:
        values = list(_strings(json.loads(data))) if data[:1] in (b"{", b"[") else None
    except ValueError:
        values = None  # text that begins like JSON
    if values is None:
        yield data
        yield b"".join(_decompressed(data))
        return
    for value in values:
        try:
            decoded = base64.b64decode(value, validate=True) if len(value) >= _LEAST_BASE64 else None
        except (binascii.Error, ValueError):
            decoded = None
        if decoded is None:
            yield value.encode("utf-8", "surrogatepass")
        else:
            yield decoded
            yield b"".join(_decompressed(decoded))


def _decompressed(data: bytes) -> Iterator[bytes]:
    """Yield the content of each zstd frame in order. Bytes that only look like the start of a frame are skipped."""
    at = data.find(_MAGIC)
    while at >= 0:
        part = zstandard.ZstdDecompressor(max_window_size=_MOST_BYTES).decompressobj()
        step = len(_MAGIC)
        try:
            decoded = part.decompress(data[at:])
            if part.eof:
                yield decoded
                step = len(data) - at - len(part.unused_data)
        except zstandard.ZstdError:
            pass
        at = data.find(_MAGIC, at + step)


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _strings(each)
