"""Encode and decode pages of documents, and tables of their names.

A page is a table with fixed-width columns, one entry for each document, and a heap of names and metadata; after its
head it is one zstd frame. A table of names has one entry for each distinct name, of the last document with it, in
buckets of equal length that are read alone. `docs/format.md` describes both byte by byte. Invariants, checked on every
load:

- a page has the length and checksum in the root, and its sums are the root's counts
- documents do not overlap; bytes >= characters >= newlines
- names are UTF-8, metadata is a JSON object, and a bucket has its checksum
"""

from __future__ import annotations

import hashlib
import json
import sys
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import google_crc32c
import zstandard

from monocontext.errors import DamagedData, InvalidText
from monocontext.format.document_refs import DocumentPageRef, NameTableRef, documents_key
from monocontext.format.refs import MOST_PAGE_BYTES
from monocontext.records import NamedTuple, dataclass

DOCUMENTS_PER_PAGE = 4096
HEAP_BYTES = 4 << 20
"""Names and metadata of a page, about: it ends early where they are long."""
MOST_NAME_BYTES = 4096
MOST_METADATA_BYTES = 64 << 10
INLINE_BYTES = 32 << 10
"""A last page up to this size is part of the root: about a hundred documents open with the text, in its one request."""

HASH_BYTES = 12
"""Bytes of a name's hash: a collision takes 2^48 tries."""
ENTRY_BYTES = 16
BUCKET_NAMES = 1024
"""Names in a bucket, at most on average: it is read in one request of some 18 KB."""

_MAGIC = b"MCDOCS\x00\x01"
_COLUMNS = (
    ("gap", "Q"),
    ("gap_newlines", "Q"),
    ("characters", "Q"),
    ("bytes", "Q"),
    ("newlines", "Q"),
    ("name_bytes", "I"),
    ("metadata_bytes", "I"),
)
_ROW_BYTES = 48
_BEFORE = DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)


class DocumentRow(NamedTuple):
    """The entry of one document in a page."""

    gap: int
    """Characters between the document before, or the place that the page counts from, and this one."""
    gap_newlines: int
    characters: int
    text_bytes: int
    newlines: int
    name: bytes
    metadata: bytes
    """A JSON object, or nothing."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text."""

    number: int
    name: str
    start: int
    """Its first character in the text."""
    stop: int
    first_line: int
    """Newlines of the text before it."""
    newlines: int
    bytes: int
    """Its length in UTF-8."""

    def __len__(self) -> int:
        return self.stop - self.start


def encode_name(name: object, number: int) -> bytes:
    """The bytes of a name. Raises `InvalidText` for an invalid name."""
    if not isinstance(name, str):
        raise InvalidText(f"document {number}: a name must be a str, not {type(name).__name__}: {str(name)[:80]!r}")
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise InvalidText(f"document {number}: its name holds a lone surrogate: {ascii(name)[:80]}") from None
    if len(data) > MOST_NAME_BYTES:
        raise InvalidText(f"document {number}: a name of {len(data):,} bytes, at most {MOST_NAME_BYTES:,}")
    return data


def encode_metadata(metadata: Any, number: int) -> bytes:
    """The bytes of metadata, a mapping that JSON can hold, or None. Raises `InvalidText` for other values."""
    if not metadata:
        return b""
    try:
        data = json.dumps(dict(metadata), separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidText(f"document {number}: its metadata is not a JSON object: {error}") from None
    if len(data) > MOST_METADATA_BYTES:
        raise InvalidText(f"document {number}: metadata of {len(data):,} bytes, at most {MOST_METADATA_BYTES:,}")
    return data


def name_hash(name: bytes) -> bytes:
    """The hash by which a table finds a name."""
    return hashlib.blake2b(name, digest_size=HASH_BYTES).digest()


def _little_endian(column: array[int]) -> array[int]:
    if sys.byteorder == "big":
        column.byteswap()
    return column


# -- pages -------------------------------------------------------------------------------------------------------------


def encode_page(rows: Sequence[DocumentRow]) -> bytes:
    """The bytes of a page."""
    gaps, gap_newlines, characters, sizes, newlines, names, metadata = zip(*rows, strict=True)
    columns = (gaps, gap_newlines, characters, sizes, newlines, map(len, names), map(len, metadata))
    body = b"".join(
        _little_endian(array(kind, column)).tobytes() for (_, kind), column in zip(_COLUMNS, columns, strict=True)
    )
    body += b"".join(names) + b"".join(metadata)
    return _MAGIC + len(rows).to_bytes(4, "little") + zstandard.ZstdCompressor(level=3).compress(body)


def page_ref(
    data: bytes, rows: Sequence[DocumentRow], before: DocumentPageRef | None, start: int, start_newline: int
) -> DocumentPageRef:
    """The entry of a page in the root, given the entry of the page before it and the place that it counts from."""
    base = before or _BEFORE
    return DocumentPageRef(
        hashlib.sha256(data).hexdigest()[:32],
        len(data),
        google_crc32c.value(data),
        base.documents + len(rows),
        start,
        start_newline,
        start + sum(row.gap + row.characters for row in rows),
        start_newline + sum(row.gap_newlines + row.newlines for row in rows),
        base.bytes + sum(row.text_bytes for row in rows),
    )


class DocumentPage:
    """A loaded page. Some 80 bytes a document, and its name and metadata."""

    def __init__(self, data: bytes, ref: DocumentPageRef, before: DocumentPageRef | None):
        """Parse and check a page. Raises `DamagedData`, naming the object."""
        key = documents_key(ref.id)
        if len(data) != ref.size_bytes:
            raise DamagedData(f"{key}: length differs: expected {ref.size_bytes} bytes, found {len(data)}")
        if (found := google_crc32c.value(data)) != ref.crc32c:
            raise DamagedData(f"{key}: crc32c differs: expected {ref.crc32c:08x}, found {found:08x}")
        base = before or _BEFORE
        self.data = data
        """The name as it is stored, in UTF-8."""
        self.first = base.documents
        """The number of its first document."""
        try:
            self._parse(data, ref)
            self._check(ref, base)
        except (ValueError, zstandard.ZstdError, OverflowError) as error:
            raise DamagedData(f"{key}: {error}") from None
        self.size_bytes = len(data) + 80 * len(self) + len(self._heap) + 500

    def _parse(self, data: bytes, ref: DocumentPageRef) -> None:
        if data[:8] != _MAGIC:
            raise ValueError(f"no page of documents: begins with {data[:8]!r}")
        count = int.from_bytes(data[8:12], "little")
        size = zstandard.frame_content_size(data[12:])
        if not 0 <= size <= MOST_PAGE_BYTES or count < 1:
            raise ValueError(f"impossible sizes: {count} documents in {size} bytes")
        body = zstandard.ZstdDecompressor().decompress(data[12:])
        if len(body) != size or size < count * _ROW_BYTES:
            raise ValueError(f"expected {count} documents, found {len(body)} bytes")
        at = 0
        columns = []
        for _, kind in _COLUMNS:
            column = array(kind)
            column.frombytes(body[at : at + count * column.itemsize])
            columns.append(_little_endian(column))
            at += count * column.itemsize
        gaps, gap_newlines, characters, self.bytes, self.newlines, names, metadata = columns
        self._heap = body[at:]
        if sum(names) + sum(metadata) != len(self._heap):
            raise ValueError("names and metadata do not fill the page")
        stops = accumulate((gap + length for gap, length in zip(gaps, characters, strict=True)), initial=ref.start)
        next(stops)
        self.stops = array("Q", stops)
        self.starts = array("Q", (stop - length for stop, length in zip(self.stops, characters, strict=True)))
        lines = accumulate((a + b for a, b in zip(gap_newlines, self.newlines, strict=True)), initial=ref.start_newline)
        next(lines)
        self._last_lines = array("Q", lines)
        self._names = array("Q", accumulate(names, initial=0))
        self._metadata = array("Q", accumulate(metadata, initial=self._names[-1]))
        self._rows = gaps, gap_newlines, characters

    def _check(self, ref: DocumentPageRef, base: DocumentPageRef) -> None:
        found = (
            base.documents + len(self), self.stops[-1], self._last_lines[-1], base.bytes + sum(self.bytes),
        )  # fmt: skip
        expected = ref.documents, ref.characters, ref.newlines, ref.bytes
        if found != expected:
            raise ValueError(f"sums differ: expected {expected}, found {found}")
        for length, size, newlines in zip(self._rows[2], self.bytes, self.newlines, strict=True):
            if not size >= length >= newlines:
                raise ValueError(f"impossible counts of a document: {size} bytes, {length}, {newlines}")
        self._heap[: self._names[-1]].decode()

    def __len__(self) -> int:
        return len(self.bytes)

    def name(self, i: int) -> str:
        """The name of the i-th document of the page."""
        return self._heap[self._names[i] : self._names[i + 1]].decode()

    def names(self) -> list[str]:
        ends, heap = self._names, self._heap
        return [heap[ends[i] : ends[i + 1]].decode() for i in range(len(self))]

    def raw_name(self, i: int) -> bytes:
        return self._heap[self._names[i] : self._names[i + 1]]

    def raw_metadata(self, i: int) -> bytes:
        return self._heap[self._metadata[i] : self._metadata[i + 1]]

    def metadata(self, i: int) -> dict[str, Any]:
        """The metadata of the i-th document. Raises `DamagedData`."""
        raw = self.raw_metadata(i)
        try:
            found = json.loads(raw) if raw else {}
        except ValueError as error:
            raise DamagedData(f"metadata of document {self.first + i}: {error}") from None
        if not isinstance(found, dict):
            raise DamagedData(f"metadata of document {self.first + i} is not an object")
        return found

    def __getitem__(self, i: int) -> Document:
        return Document(
            self.first + i,
            self.name(i),
            self.starts[i],
            self.stops[i],
            self._last_lines[i] - self.newlines[i],
            self.newlines[i],
            self.bytes[i],
        )

    def rows(self) -> list[DocumentRow]:
        """All entries; a writer merges those of a short page with new ones."""
        gaps, gap_newlines, characters = self._rows
        return [
            DocumentRow(
                gaps[i], gap_newlines[i], characters[i], self.bytes[i], self.newlines[i], self.raw_name(i),
                self.raw_metadata(i),
            )
            for i in range(len(self))
        ]  # fmt: skip

    def first_ending_after(self, character: int) -> int:
        """The first document of the page that ends after a character, or the number of documents if none does."""
        return bisect_right(self.stops, character)


# -- tables of names ---------------------------------------------------------------------------------------------------


def _entry_type() -> Any:
    import numpy as np

    return np.dtype([("high", ">u8"), ("low", ">u4"), ("number", "<u4")])


def entries_of(hashes: bytes | bytearray, first: int = 0) -> Any:
    """The entries of documents from `first` on, given the hashes of their names."""
    import numpy as np

    if first + len(hashes) // HASH_BYTES >= 1 << 32:
        raise InvalidText("a context holds fewer than 4,294,967,296 documents")
    found = np.empty(len(hashes) // HASH_BYTES, _entry_type())
    raw = np.frombuffer(bytes(hashes), np.dtype([("high", ">u8"), ("low", ">u4")]))
    found["high"], found["low"] = raw["high"], raw["low"]
    found["number"] = np.arange(first, first + len(found), dtype=np.uint32)
    return found


def last_of_each_name(entries: Any) -> Any:
    """Entries in the order of their hashes, of each name only the last document."""
    import numpy as np

    ordered = entries[np.lexsort((entries["number"], entries["low"], entries["high"]))]
    if not len(ordered):
        return ordered
    return ordered[np.append(_differs_from_next(ordered), True)]


def first_doubled(entries: Any) -> tuple[int, int] | None:
    """The first document whose name an earlier one has, and that earlier one; None if all names differ."""
    import numpy as np

    ordered = entries[np.lexsort((entries["number"], entries["low"], entries["high"]))]
    same = np.flatnonzero(~_differs_from_next(ordered))
    if not len(same):
        return None
    at = same[np.argmin(ordered["number"][same + 1])]
    return int(ordered["number"][at]), int(ordered["number"][at + 1])


def _differs_from_next(ordered: Any) -> Any:
    high, low = ordered["high"], ordered["low"]
    return (high[1:] != high[:-1]) | (low[1:] != low[:-1])


def encode_names(entries: Any) -> tuple[bytes, int, int]:
    """The bytes of a table of entries that `last_of_each_name` gave, its number of buckets, and entries of each."""
    import numpy as np

    bits = max(0, (len(entries) - 1) // BUCKET_NAMES).bit_length()
    buckets = entries["high"].astype(np.uint64) >> np.uint64(64 - bits) if bits else np.zeros(len(entries), np.uint64)
    counts = np.bincount(buckets.astype(np.int64), minlength=1 << bits)
    stride = int(counts.max())
    rows = np.full((1 << bits, stride * ENTRY_BYTES), 255, np.uint8)
    at = 0
    for bucket, count in enumerate(counts.tolist()):
        rows[bucket, : count * ENTRY_BYTES] = np.frombuffer(entries[at : at + count].tobytes(), np.uint8)
        at += count
    parts = []
    for bucket in range(1 << bits):
        body = rows[bucket].tobytes()
        parts.append(body + _bucket_crc32c(body, bucket))
    return b"".join(parts), 1 << bits, stride


def _bucket_crc32c(body: bytes, bucket: int) -> bytes:
    return int(google_crc32c.value(body + bucket.to_bytes(4, "little"))).to_bytes(4, "little")


def bucket_bytes(ref: NameTableRef) -> int:
    """The length of a bucket."""
    return ref.stride * ENTRY_BYTES + 4


def bucket_of(hashed: bytes, ref: NameTableRef) -> int:
    """The bucket that holds a hash."""
    return int.from_bytes(hashed[:8], "big") >> (65 - ref.buckets.bit_length()) if ref.buckets > 1 else 0


def check_bucket(data: bytes, bucket: int, ref: NameTableRef) -> bytes:
    """The entries of a bucket. Raises `DamagedData`."""
    body = data[:-4]
    if len(data) != bucket_bytes(ref) or _bucket_crc32c(body, bucket) != data[-4:]:
        raise DamagedData(f"{documents_key(ref.id)}: bucket {bucket} differs from its checksum")
    return body


def find_in_bucket(body: bytes, hashed: bytes) -> int | None:
    """The number of the document of a hash."""
    at = body.find(hashed)
    while at >= 0 and at % ENTRY_BYTES:
        at = body.find(hashed, at + 1)
    return None if at < 0 else int.from_bytes(body[at + HASH_BYTES : at + ENTRY_BYTES], "little")


def decode_names(data: bytes, ref: NameTableRef) -> Any:
    """All entries of a table. Raises `DamagedData`."""
    import numpy as np

    size = bucket_bytes(ref)
    if len(data) != size * ref.buckets:
        raise DamagedData(f"{documents_key(ref.id)}: expected {size * ref.buckets} bytes, found {len(data)}")
    bodies = (check_bucket(data[i * size : (i + 1) * size], i, ref) for i in range(ref.buckets))
    found = np.frombuffer(b"".join(bodies), _entry_type())
    found = found[found["number"] != 0xFFFFFFFF]
    if len(found) != ref.names:
        raise DamagedData(f"{documents_key(ref.id)}: expected {ref.names} names, found {len(found)}")
    return found
