"""Encode and decode tables of document names, with numpy, which processes that only look up names do not load."""

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
    """The entries in the order of their hashes, with only the last document of each name."""
    ordered, is_last = _by_hash(entries)
    return ordered[is_last]


def first_duplicate(entries: Any) -> tuple[int, int] | None:
    """The first document that repeats a name, as two numbers: (earlier, repeated). `None` if all names differ."""
    ordered, is_last = _by_hash(entries)
    numbers, same = ordered["number"], np.flatnonzero(~is_last)
    if not len(same):
        return None
    offset = same[np.argmin(numbers[same + 1])]  # of all pairs, the one whose second document comes first
    return int(numbers[offset]), int(numbers[offset + 1])


def _by_hash(entries: Any) -> tuple[Any, Any]:
    """The entries ordered by hash, then by document, and whether each is the last one of its hash."""
    ordered = entries[np.lexsort((entries["number"], entries["low"], entries["high"]))]
    high, low = ordered["high"], ordered["low"]
    differs_from_next = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return ordered, np.append(differs_from_next, True)[: len(ordered)]


def table_of(entries: Any, documents: int) -> tuple[NameTableRef, bytes]:
    """A new table of the names in `entries`, and its bytes. `documents`: the number up to the last one it covers."""
    last = last_of_each_name(entries)
    data, buckets, stride = encode_names(last)
    return NameTableRef(fresh_id(), documents, len(last), buckets, stride), data


def join(data: bytes, ref: NameTableRef, entries: Any) -> Any:
    """The entries of a stored table, followed by `entries`. Raises `DamagedData`."""
    return np.concatenate([decode_names(data, ref), entries])


def encode_names(entries: Any) -> tuple[bytes, int, int]:
    """The bytes, the number of buckets and the stride of a table of entries that `last_of_each_name` returned."""
    entries = entries.astype(_ENTRY)  # numpy joins arrays in the byte order of the machine
    bits = max(0, (len(entries) - 1) // _BUCKET_NAMES).bit_length()
    buckets = entries["high"].astype(np.uint64) >> np.uint64(63 - bits) >> np.uint64(1)  # numpy cannot shift by 64
    counts = np.bincount(buckets.astype(np.int64), minlength=1 << bits)
    stride = int(counts.max())
    parts = []
    for bucket, group in enumerate(np.split(entries, np.cumsum(counts)[:-1])):
        body = group.tobytes().ljust(stride * ENTRY_BYTES, b"\xff")
        parts.append(body + bucket_crc32c(body, bucket))
    return b"".join(parts), 1 << bits, stride


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
