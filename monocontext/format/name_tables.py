"""Encode and decode tables of document names. Processes that only look up names do not import this: it loads numpy."""

from __future__ import annotations

from typing import Any

import numpy as np

from monocontext.errors import DamagedData, InvalidText
from monocontext.format.document_names import ENTRY_BYTES, HASH_BYTES, bucket_bytes, bucket_crc32c, check_bucket
from monocontext.format.refs import NameTableRef, documents_key, fresh_id

_BUCKET_NAMES = 1024  # the most names in a bucket on average: some 18 KB, which one request reads
_EMPTY = 0xFFFFFFFF  # the document number of an unused entry
_ENTRY: Any = np.dtype([("high", ">u8"), ("low", ">u4"), ("number", "<u4")])
"""The type of an entry: the hash in two numbers that sort like its bytes, and the document's number."""


def entries_of(hashes: bytes | bytearray, first: int = 0) -> Any:
    """The table entries of consecutive documents from number `first` on, from the joined hashes of their names."""
    count = len(hashes) // HASH_BYTES
    if first + count > _EMPTY:
        raise InvalidText(f"a context can have at most {_EMPTY:,} documents, not {first + count:,}")
    entries = np.empty(count, _ENTRY)
    halves = np.frombuffer(bytes(hashes), np.dtype([("high", ">u8"), ("low", ">u4")]))
    entries["high"], entries["low"] = halves["high"], halves["low"]
    entries["number"] = np.arange(first, first + count, dtype=np.uint32)
    return entries


def last_of_each_name(entries: Any) -> Any:
    """The entries in the order of their hashes, without those of earlier documents with the same name."""
    ordered, is_last = _by_hash(entries)
    return ordered[is_last]


def first_duplicate(entries: Any) -> int | None:
    """The number of the first document that has the name of an earlier one; `None` if all names differ."""
    ordered, is_last = _by_hash(entries)
    repeats = ordered["number"][np.flatnonzero(~is_last) + 1]  # documents that follow one with the same name
    return int(repeats.min()) if len(repeats) else None


def _by_hash(entries: Any) -> tuple[Any, Any]:
    """The entries ordered by hash, then by document, and whether each is the last one of its hash."""
    ordered = entries[np.lexsort((entries["number"], entries["low"], entries["high"]))]
    high, low = ordered["high"], ordered["low"]
    differs_from_next = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return ordered, np.append(differs_from_next, True)[: len(ordered)]


def table_of(entries: Any, documents: int) -> tuple[NameTableRef, bytes]:
    """A new table of the names in `entries`, and its bytes. `documents`: the number of documents up to its last one."""
    last = last_of_each_name(entries).astype(_ENTRY)  # numpy joins arrays in the byte order of the machine
    bits = max(0, (len(last) - 1) // _BUCKET_NAMES).bit_length()
    buckets = last["high"].astype(np.uint64) >> np.uint64(63 - bits) >> np.uint64(1)  # numpy cannot shift by 64
    counts = np.bincount(buckets.astype(np.int64), minlength=1 << bits)
    stride = int(counts.max())
    parts = []
    for bucket, group in enumerate(np.split(last, np.cumsum(counts)[:-1])):
        body = group.tobytes().ljust(stride * ENTRY_BYTES, b"\xff")
        parts.append(body + bucket_crc32c(body, bucket))
    return NameTableRef(fresh_id(), documents, len(last), 1 << bits, stride), b"".join(parts)


def join(data: bytes, ref: NameTableRef, entries: Any) -> Any:
    """The entries of a stored table, followed by `entries`. Raises `DamagedData`."""
    return np.concatenate([decode_names(data, ref), entries])


def decode_names(data: bytes, ref: NameTableRef) -> Any:
    """An array with all entries of a table. Raises `DamagedData`."""
    size = bucket_bytes(ref)
    if len(data) != size * ref.buckets:
        raise DamagedData(f"{documents_key(ref.id)}: expected {size * ref.buckets} bytes, found {len(data)}")
    bodies = (check_bucket(data[i * size : (i + 1) * size], i, ref) for i in range(ref.buckets))
    result = np.frombuffer(b"".join(bodies), _ENTRY)
    result = result[result["number"] != _EMPTY]
    if len(result) != ref.names:
        raise DamagedData(f"{documents_key(ref.id)}: expected {ref.names} names, found {len(result)}")
    return result
