"""Encode, look up and check tables of document names.

A table has one entry for each distinct name: the hash of the name, and the number of the last document that has it. The
entries are in buckets of equal length, each with a checksum, so that a lookup reads one bucket. `docs/format.md`
describes the layout byte by byte.
"""

from __future__ import annotations

import hashlib
from typing import Any

import google_crc32c

from monocontext.errors import DamagedData, InvalidText
from monocontext.format.refs import NameTableRef, documents_key

HASH_BYTES = 12
"""Length of the hash of a name: a collision takes 2^48 tries."""
_ENTRY_BYTES = 16
_BUCKET_NAMES = 1024
"""The most names in a bucket on average: some 18 KB, which one request reads."""
_EMPTY = 0xFFFFFFFF
"""The document number of an unused entry."""


def name_hash(name: bytes) -> bytes:
    """The hash by which a table finds a name."""
    return hashlib.blake2b(name, digest_size=HASH_BYTES).digest()


def _entry_type() -> Any:
    """The numpy type of an entry: the hash in two numbers that sort like its bytes, and the document's number."""
    import numpy as np

    return np.dtype([("high", ">u8"), ("low", ">u4"), ("number", "<u4")])


def entries_of(hashes: bytes | bytearray, first: int = 0) -> Any:
    """An array with the entries of documents from number `first` on, given the hashes of their names, end to end."""
    import numpy as np

    count = len(hashes) // HASH_BYTES
    if first + count > _EMPTY:
        raise InvalidText(f"a context can have at most {_EMPTY:,} documents, not {first + count:,}")
    entries = np.empty(count, _entry_type())
    halves = np.frombuffer(bytes(hashes), np.dtype([("high", ">u8"), ("low", ">u4")]))
    entries["high"], entries["low"] = halves["high"], halves["low"]
    entries["number"] = np.arange(first, first + count, dtype=np.uint32)
    return entries


def last_of_each_name(entries: Any) -> Any:
    """The entries in the order of their hashes, with only the last document of each name."""
    ordered, is_last = _by_hash(entries)
    return ordered[is_last]


def first_doubled(entries: Any) -> tuple[int, int] | None:
    """The numbers of the first document that has the name of an earlier one: (earlier, first). `None` if all differ."""
    import numpy as np

    ordered, is_last = _by_hash(entries)
    numbers, same = ordered["number"], np.flatnonzero(~is_last)
    if not len(same):
        return None
    offset = same[np.argmin(numbers[same + 1])]
    return int(numbers[offset]), int(numbers[offset + 1])


def _by_hash(entries: Any) -> tuple[Any, Any]:
    """The entries ordered by hash, then by document, and whether each is the last one of its hash."""
    import numpy as np

    ordered = entries[np.lexsort((entries["number"], entries["low"], entries["high"]))]
    high, low = ordered["high"], ordered["low"]
    differs_from_next = (high[1:] != high[:-1]) | (low[1:] != low[:-1])
    return ordered, np.append(differs_from_next, True)[: len(ordered)]


def encode_names(entries: Any) -> tuple[bytes, int, int]:
    """The bytes of a table, its number of buckets, and the entries of each. `entries` are from `last_of_each_name`."""
    import numpy as np

    entries = entries.astype(_entry_type())  # numpy joins arrays in the byte order of the machine
    bits = max(0, (len(entries) - 1) // _BUCKET_NAMES).bit_length()
    buckets = entries["high"].astype(np.uint64) >> np.uint64(64 - bits) if bits else np.zeros(len(entries), np.uint64)
    counts = np.bincount(buckets.astype(np.int64), minlength=1 << bits)
    stride = int(counts.max())
    parts = []
    for bucket, group in enumerate(np.split(entries, np.cumsum(counts)[:-1])):
        body = group.tobytes().ljust(stride * _ENTRY_BYTES, b"\xff")
        parts.append(body + _bucket_crc32c(body, bucket))
    return b"".join(parts), 1 << bits, stride


def _bucket_crc32c(body: bytes, bucket: int) -> bytes:
    """The checksum at the end of a bucket. It covers the number, so another bucket does not pass for this one."""
    return int(google_crc32c.value(body + bucket.to_bytes(4, "little"))).to_bytes(4, "little")


def bucket_bytes(ref: NameTableRef) -> int:
    """The length of each bucket of a table."""
    return ref.stride * _ENTRY_BYTES + 4


def bucket_of(hashed: bytes, ref: NameTableRef) -> int:
    """The number of the bucket for a hash: its first bits."""
    bits = ref.buckets.bit_length() - 1  # the number of buckets is a power of two
    return int.from_bytes(hashed[:8], "big") >> (64 - bits)


def check_bucket(data: bytes, bucket: int, ref: NameTableRef) -> bytes:
    """The entries of a bucket, without the checksum. Raises `DamagedData`."""
    body = data[:-4]
    if len(data) != bucket_bytes(ref) or _bucket_crc32c(body, bucket) != data[-4:]:
        raise DamagedData(f"{documents_key(ref.id)}: bucket {bucket} differs from its checksum")
    return body


def find_in_bucket(entries: bytes, hashed: bytes) -> int | None:
    """The number of the document whose name has this hash; `None` if there is none."""
    offset = entries.find(hashed)
    while offset >= 0 and offset % _ENTRY_BYTES:  # the bytes of a hash may also occur across two entries
        offset = entries.find(hashed, offset + 1)
    return None if offset < 0 else int.from_bytes(entries[offset + HASH_BYTES : offset + _ENTRY_BYTES], "little")


def decode_names(data: bytes, ref: NameTableRef) -> Any:
    """An array with all entries of a table. Raises `DamagedData`."""
    import numpy as np

    size = bucket_bytes(ref)
    if len(data) != size * ref.buckets:
        raise DamagedData(f"{documents_key(ref.id)}: expected {size * ref.buckets} bytes, found {len(data)}")
    bodies = (check_bucket(data[i * size : (i + 1) * size], i, ref) for i in range(ref.buckets))
    result = np.frombuffer(b"".join(bodies), _entry_type())
    result = result[result["number"] != _EMPTY]
    if len(result) != ref.names:
        raise DamagedData(f"{documents_key(ref.id)}: expected {ref.names} names, found {len(result)}")
    return result
