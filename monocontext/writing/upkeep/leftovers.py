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
"""Characters: a shorter value of a root is a word."""
_MOST_BYTES = 256 << 20
"""No frame of a context inflates to more."""


def find_leftovers(
    url: Place,
    texts: list[str],
    *,
    cache_dir: str | os.PathLike[str] | None = None,
    store_options: StoreOptions | None = None,
) -> list[str]:
    """The keys of objects below `url` that hold one of these texts: as they are, or inflated (1 GET an object). With
    `cache_dir` (`Monocontext.open`) also the paths of such files in it.

    All objects are read, whatever names them: segments, also across their frames, pages of documents, and the copies of
    text in roots. Search filters hold no text. Raises `ValueError` for an empty text.
    """
    needles = [text.encode() for text in texts]
    if not needles or not all(needles):
        raise ValueError("the text to look for must not be empty")
    found = []
    with open_store_at(url, store_options) as store:
        for info in store.list():
            data = store.get(info.key).data
            if _holds(data, needles):
                found.append(info.key)
    for path in DiskCache(cache_dir).files() if cache_dir is not None else ():
        with open(path, "rb") as file:
            if _holds(file.read(), needles):
                found.append(path)
    return found


def _holds(data: bytes, needles: list[bytes]) -> bool:
    return any(needle in part for part in _forms(data) for needle in needles)


def _forms(data: bytes) -> Iterator[bytes]:
    """An object as it is, and all that its zstd frames hold as one text; of a root the same of each value."""
    try:
        values = list(_strings(json.loads(data))) if data[:1] in (b"{", b"[") else None
    except ValueError:
        values = None  # text that begins like JSON
    if values is None:
        yield data
        yield b"".join(_inflated(data))
        return
    for value in values:
        try:
            held = base64.b64decode(value, validate=True) if len(value) >= _LEAST_BASE64 else None
        except (binascii.Error, ValueError):
            held = None
        if held is None:
            yield value.encode("utf-8", "surrogatepass")
        else:
            yield held
            yield b"".join(_inflated(held))


def _inflated(data: bytes) -> Iterator[bytes]:
    """The content of each zstd frame, in order. Bytes that only look like a frame give nothing."""
    at = data.find(_MAGIC)
    while at >= 0:
        part = zstandard.ZstdDecompressor(max_window_size=_MOST_BYTES).decompressobj()
        step = len(_MAGIC)
        try:
            held = part.decompress(data[at:])
            if part.eof:
                yield held
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
