"""Look up names in tables of document names, which `name_tables` makes.

A table has one entry for each distinct name: the hash of the name, and the number of the last document that has it. The
entries are in buckets of equal length, each with a checksum, so that a lookup reads one bucket. `docs/format.md`
describes the layout byte by byte.
"""

from __future__ import annotations

import hashlib

import google_crc32c

from monocontext.errors import DamagedData
from monocontext.format.refs import NameTableRef, documents_key

HASH_BYTES = 12  # the length of the hash of a name: among 2^48 names a collision is likely
ENTRY_BYTES = 16  # a hash, and the number of a document


def name_hash(name: bytes) -> bytes:
    """The hash by which a table finds a name."""
    return hashlib.blake2b(name, digest_size=HASH_BYTES).digest()


def bucket_crc32c(body: bytes, bucket: int) -> bytes:
    """The checksum at the end of a bucket. It covers the number of the bucket, so no bucket passes for another."""
    return int(google_crc32c.value(body + bucket.to_bytes(4, "little"))).to_bytes(4, "little")


def bucket_bytes(ref: NameTableRef) -> int:
    """The length of each bucket of a table."""
    return ref.stride * ENTRY_BYTES + 4


def bucket_of(hashed: bytes, ref: NameTableRef) -> int:
    """The number of the bucket that may hold a hash: the first bits of the hash."""
    bits = ref.buckets.bit_length() - 1  # the number of buckets is a power of two
    return int.from_bytes(hashed[:8], "big") >> (64 - bits)


def check_bucket(data: bytes, bucket: int, ref: NameTableRef) -> bytes:
    """The entries of a bucket, without the checksum. Raises `DamagedData`."""
    key = documents_key(ref.id)
    if len(data) != bucket_bytes(ref):
        raise DamagedData(f"{key}: bucket {bucket}: expected {bucket_bytes(ref)} bytes, found {len(data)}")
    body, expected = data[:-4], bucket_crc32c(data[:-4], bucket)
    if expected != data[-4:]:
        raise DamagedData(f"{key}: bucket {bucket}: crc32c differs: expected {expected.hex()}, found {data[-4:].hex()}")
    return body


def find_in_bucket(entries: bytes, hashed: bytes) -> int | None:
    """The number of the document whose name has this hash; `None` if there is none."""
    offset = entries.find(hashed)
    while offset >= 0 and offset % ENTRY_BYTES:  # the bytes of a hash may also occur across two entries
        offset = entries.find(hashed, offset + 1)
    return None if offset < 0 else int.from_bytes(entries[offset + HASH_BYTES : offset + ENTRY_BYTES], "little")
