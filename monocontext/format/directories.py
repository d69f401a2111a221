"""Parse and check a directory: an object that names neighbouring index pages, filters or pages of documents. No I/O.

It is a JSON list of entries as in a root, in one zstd frame. The entries may be directories too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import google_crc32c
import zstandard

from monocontext.errors import DamagedData
from monocontext.format.refs import (
    MOST_PAGE_BYTES,
    FilterDirectory,
    FilterRef,
    PageDirectory,
    PageRef,
    check_filter_directories,
    check_filters,
    check_pages,
    filter_directories,
    filter_refs,
    level_of,
    page_refs,
)

if TYPE_CHECKING:
    from monocontext.format.document_refs import DocumentDirectory


def rows_text(data: bytes, key: str) -> bytes:
    """The JSON of a directory. Raises `DamagedData`, whose message names the object `key`."""
    try:
        if not 0 < zstandard.frame_content_size(data) <= MOST_PAGE_BYTES:
            raise DamagedData(f"{key}: expected a directory of at most {MOST_PAGE_BYTES:,} bytes")
        text: bytes = zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError as error:
        raise DamagedData(f"{key}: not a directory: {error}") from None
    return text


def pages_in(ref: PageDirectory, data: bytes, before: PageRef | None) -> tuple[PageRef, ...]:
    """The entries of a directory of pages; `before` is the page before them. Raises `DamagedData`."""
    entries: tuple[PageRef, ...] = entries_in(ref, data, page_refs)
    try:
        check_pages(entries, before)
        check_levels(ref, entries)
        pages = sum(entry.pages if isinstance(entry, PageDirectory) else 1 for entry in entries)
        last = entries[-1]
        result = (pages, last.frames, last.bytes, last.characters, last.newlines)
        if result != (ref.pages, ref.frames, ref.bytes, ref.characters, ref.newlines):
            raise ValueError(f"counts differ from the root: found {result}")
    except ValueError as error:
        raise DamagedData(f"{ref.key}: {error}") from None
    return entries


def filters_in(ref: FilterDirectory, data: bytes, before: object = None) -> tuple[FilterRef | FilterDirectory, ...]:
    """The entries of a directory of filters, without those of other kinds. Unlike pages, they do not depend on the
    entry `before` them. Raises `DamagedData`."""
    parse: Callable[[Any], Any] = filter_directories if ref.level > 1 else filter_refs
    entries: tuple[FilterRef | FilterDirectory, ...] = entries_in(ref, data, parse)
    try:
        check_levels(ref, entries)
        check_filters([entry for entry in entries if isinstance(entry, FilterRef)], ref.stop_frame)
        check_filter_directories([entry for entry in entries if isinstance(entry, FilterDirectory)], ref.first_frame)
        if any(entry.first_frame < ref.first_frame or entry.stop_frame > ref.stop_frame for entry in entries):
            raise ValueError(f"filters of frames outside of {ref.first_frame} to {ref.stop_frame}")
    except ValueError as error:
        raise DamagedData(f"{ref.key}: {error}") from None
    return entries


def entries_in(
    ref: PageDirectory | FilterDirectory | DocumentDirectory, data: bytes, parse: Callable[[Any], Any]
) -> Any:
    """The entries of a directory by `parse`, after checks of its length, checksum and number of entries."""
    result = (len(data), google_crc32c.value(data))
    if result != (ref.size_bytes, ref.crc32c):
        raise DamagedData(f"{ref.key}: expected length and crc32c {(ref.size_bytes, ref.crc32c)}, found {result}")
    text = rows_text(data, ref.key)
    try:
        rows = json.loads(text)
        if not isinstance(rows, list) or len(rows) != ref.entries:
            raise ValueError(f"expected {ref.entries} entries")
        return parse(rows)
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise DamagedData(f"{ref.key}: not a directory: {error!r}") from None


def check_levels(ref: PageDirectory | FilterDirectory | DocumentDirectory, entries: Sequence[object]) -> None:
    """Raise `ValueError` unless all entries are one level below the directory."""
    if any(level_of(entry) != ref.level - 1 for entry in entries):
        raise ValueError(f"expected entries of level {ref.level - 1}, found another level")
