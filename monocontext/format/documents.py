"""Encode and decode pages of documents, which record the place, counts, name and metadata of each document of a text.

A page is a table with fixed-width columns, one row for each document, and a heap of names and metadata. All of it but
the first 12 bytes is one zstd frame. `docs/format.md` describes it byte by byte, and what is checked on every load.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from operator import add, sub
from typing import Any

import google_crc32c
import zstandard

from monocontext.errors import DamagedData, InvalidText
from monocontext.format.index import check_stored, decode_columns, encode_columns
from monocontext.format.refs import MOST_PAGE_BYTES, NO_DOCUMENTS, DocumentPageRef, documents_key, id_of, require
from monocontext.records import NamedTuple, dataclass

DOCUMENTS_PER_PAGE = 4096
HEAP_BYTES = 4 << 20
"""The most bytes of names and metadata in a page, about: a page with long ones has fewer documents."""
MOST_NAME_BYTES = 4096
MOST_METADATA_BYTES = 64 << 10
INLINE_BYTES = 32 << 10
"""A last page of at most this size is part of the root, so about a hundred documents open without another request."""

_MAGIC = b"MCDOCS\x00\x01"
_COLUMNS = (
    *((name, "Q") for name in ("gap", "gap_newlines", "characters", "bytes", "newlines")),
    *((name, "I") for name in ("name_bytes", "metadata_bytes")),
)
_ROW_BYTES = 48  # five columns of 8 bytes, and two of 4


class DocumentRow(NamedTuple):
    """The row of one document in a page."""

    gap: int
    """The number of characters between the previous document and this one; for the first one, from the page's start."""
    gap_newlines: int
    characters: int
    text_bytes: int
    newlines: int
    name: bytes
    metadata: bytes
    """A JSON object; empty if there is none."""


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a text."""

    number: int
    name: str
    start: int
    """The offset of its first character in the text."""
    stop: int
    first_line: int
    """The number of newlines in the text before it."""
    newlines: int
    bytes: int
    """Its length in bytes of UTF-8."""

    def __len__(self) -> int:
        return self.stop - self.start


def encode_name(name: object, number: int) -> bytes:
    """The name of document `number` in UTF-8. Raises `InvalidText` for an invalid name."""
    if not isinstance(name, str):
        raise InvalidText(f"document {number}: its name must be a str, not {type(name).__name__}: {str(name)[:80]!r}")
    try:
        data = name.encode()
    except UnicodeEncodeError:
        raise InvalidText(f"document {number}: its name has a lone surrogate: {ascii(name)[:80]}") from None
    return _check_length(data, MOST_NAME_BYTES, f"document {number}: its name")


def encode_metadata(metadata: Any, number: int) -> bytes:
    """The metadata of document `number` as JSON; empty for `None` or an empty mapping. Raises `InvalidText`."""
    if not metadata:
        return b""
    try:
        data = json.dumps(dict(metadata), separators=(",", ":"), allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidText(f"document {number}: its metadata is not a JSON object: {error}") from None
    return _check_length(data, MOST_METADATA_BYTES, f"document {number}: its metadata")


def _check_length(data: bytes, most_bytes: int, name: str) -> bytes:
    if len(data) > most_bytes:
        raise InvalidText(f"{name} has {len(data):,} bytes, at most {most_bytes:,} are allowed")
    return data


def encode_page(rows: Sequence[DocumentRow]) -> bytes:
    """The bytes of a page."""
    gaps, gap_newlines, characters, sizes, newlines, names, metadata = zip(*rows, strict=True)
    columns = (gaps, gap_newlines, characters, sizes, newlines, map(len, names), map(len, metadata))
    body = encode_columns(_COLUMNS, columns) + b"".join(names) + b"".join(metadata)
    return _MAGIC + len(rows).to_bytes(4, "little") + zstandard.ZstdCompressor(level=3).compress(body)


def page_ref(
    data: bytes, rows: Sequence[DocumentRow], before: DocumentPageRef | None, start: int, start_newline: int
) -> DocumentPageRef:
    """The root's entry for a page. `before`: the entry of the page before, or None. The first gap begins at `start`."""
    base = before or NO_DOCUMENTS
    return DocumentPageRef(
        id_of(data), len(data), google_crc32c.value(data),
        base.documents + len(rows),
        start, start_newline,
        start + sum(row.gap + row.characters for row in rows),
        start_newline + sum(row.gap_newlines + row.newlines for row in rows),
        base.bytes + sum(row.text_bytes for row in rows),
    )  # fmt: skip


class DocumentPage:
    """A loaded page. It takes some 80 bytes of memory for each document, besides the names and metadata."""

    def __init__(self, data: bytes, ref: DocumentPageRef, before: DocumentPageRef | None):
        """Parse and check a page. Raises `DamagedData`, whose message names the object."""
        key = documents_key(ref.id)
        check_stored(key, data, ref)
        base = before or NO_DOCUMENTS
        self.data = data
        """The page as it is stored."""
        self.first = base.documents
        """The number of its first document."""
        try:
            self._parse(data, ref)
            self._check(ref, base)
        except (ValueError, zstandard.ZstdError, OverflowError) as error:
            raise DamagedData(f"{key}: {error}") from None
        self.size_bytes = len(data) + 80 * len(self) + len(self._heap) + 500

    def _parse(self, data: bytes, ref: DocumentPageRef) -> None:
        require(data[:8] == _MAGIC, f"not a page of documents: it begins with {data[:8]!r}")
        count = int.from_bytes(data[8:12], "little")
        size = zstandard.frame_content_size(data[12:])
        is_possible = 0 <= size <= MOST_PAGE_BYTES and count > 0
        require(is_possible, f"impossible sizes: {count:,} documents in {size:,} bytes")
        body = zstandard.ZstdDecompressor().decompress(data[12:])
        require(len(body) == size >= count * _ROW_BYTES, f"{count} documents do not fit in {len(body)} bytes")
        columns, offset = decode_columns(_COLUMNS, count, body, 0)
        gaps, gap_newlines, characters, self.bytes, self.newlines, name_bytes, metadata_bytes = columns
        self._heap = body[offset:]
        expected, size = sum(name_bytes) + sum(metadata_bytes), len(self._heap)
        require(size == expected, f"expected {expected} bytes of names and metadata, found {size}")
        self.stops = array("Q", accumulate(map(add, gaps, characters), initial=ref.start))[1:]
        self.starts = array("Q", map(sub, self.stops, characters))
        self._last_lines = array("Q", accumulate(map(add, gap_newlines, self.newlines), initial=ref.start_newline))[1:]
        self._name_ends = array("Q", accumulate(name_bytes, initial=0))
        self._metadata_ends = array("Q", accumulate(metadata_bytes, initial=self._name_ends[-1]))
        self._gaps, self._gap_newlines, self._characters = gaps, gap_newlines, characters

    def _check(self, ref: DocumentPageRef, base: DocumentPageRef) -> None:
        sums = base.documents + len(self), self.stops[-1], self._last_lines[-1], base.bytes + sum(self.bytes)
        expected = ref.documents, ref.characters, ref.newlines, ref.bytes
        require(sums == expected, f"sums differ: expected {expected}, found {sums}")
        for i, (size, length, newlines) in enumerate(zip(self.bytes, self._characters, self.newlines, strict=True)):
            if not size >= length >= newlines:
                counts = f"{size} bytes, {length} characters, {newlines} newlines"
                raise ValueError(f"document {self.first + i} cannot have {counts}")
        self._heap[: self._name_ends[-1]].decode()  # names that are not UTF-8 raise a ValueError

    def __len__(self) -> int:
        return len(self.bytes)

    def name(self, i: int) -> str:
        """The name of the i-th document of the page."""
        return self.raw_name(i).decode()

    def names(self) -> list[str]:
        """The names of all documents of the page."""
        return [self.raw_name(i).decode() for i in range(len(self))]

    def raw_name(self, i: int) -> bytes:
        """The name as it is stored, in UTF-8."""
        return self._heap[self._name_ends[i] : self._name_ends[i + 1]]

    def _raw_metadata(self, i: int) -> bytes:
        return self._heap[self._metadata_ends[i] : self._metadata_ends[i + 1]]

    def metadata(self, i: int) -> dict[str, Any]:
        """The metadata of the i-th document. Raises `DamagedData`."""
        raw = self._raw_metadata(i)
        try:
            result = json.loads(raw) if raw else {}
        except ValueError as error:
            raise DamagedData(f"the metadata of document {self.first + i} is not JSON: {error}") from None
        if not isinstance(result, dict):
            raise DamagedData(f"the metadata of document {self.first + i} is not a JSON object")
        return result

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
        """All rows. A writer that fills up the page adds more to them."""
        columns = self._gaps, self._gap_newlines, self._characters, self.bytes, self.newlines
        return [
            DocumentRow(*counts, self.raw_name(i), self._raw_metadata(i))
            for i, counts in enumerate(zip(*columns, strict=True))
        ]

    def first_ending_after(self, character: int) -> int:
        """The index in the page of the first document that ends after a character; `len(self)` if none does."""
        return bisect_right(self.stops, character)
