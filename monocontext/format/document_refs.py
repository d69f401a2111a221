"""The entries of a root for documents: references to pages of documents, directories of pages, and tables of names."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from monocontext.format.refs import (
    ID,
    as_object,
    check_directory,
    check_object,
    count_of,
    directory_key,
    parse_entry,
    require,
)
from monocontext.records import dataclass


def documents_key(id: str) -> str:
    return f"documents/{id}.doc"


@dataclass(frozen=True, slots=True)
class DocumentPageRef:
    """A page of documents (`documents`), with the counts up to and including its last document."""

    id: str
    """The truncated SHA-256 of the page; the object is `documents/<id>.doc`, unless the page is in the root."""
    size_bytes: int
    crc32c: int
    documents: int
    start: int
    """The character of the text from which the page counts."""
    start_newline: int
    """The number of newlines before that character."""
    characters: int
    """The end of the last document in the text, in characters."""
    newlines: int
    """The number of newlines before that end."""
    bytes: int
    """The sum of the lengths of the documents, in UTF-8."""


@dataclass(frozen=True, slots=True)
class DocumentDirectory(DocumentPageRef):
    """A directory of neighbouring document pages (see the module `directories`).

    Its counts are cumulative, so they equal those of its last page.
    """

    entries: int
    level: int

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class NameTableRef:
    """A table of the names of neighbouring documents (`document_names`)."""

    id: str
    documents: int
    """The number of documents up to the last one that it covers. It begins where the previous table ends."""
    names: int
    """The number of distinct names."""
    buckets: int
    """The number of buckets, a power of two."""
    stride: int
    """The number of entries in each bucket."""


@dataclass(frozen=True, slots=True)
class DocumentsRef:
    """The documents of a text."""

    pages: tuple[DocumentPageRef, ...]
    last_page: bytes | None = None
    """The last page if it is small: then it is in the root instead of an object."""
    names: tuple[NameTableRef, ...] = ()
    """Names of documents after these tables are looked up in pages."""
    doubled: int | None = None
    """The first document with the name of an earlier one of the same upload; `None` if there is none."""

    @property
    def documents(self) -> int:
        return self.pages[-1].documents

    @property
    def named(self) -> int:
        """The number of documents that tables of names cover."""
        return self.names[-1].documents if self.names else 0

    def as_object(self) -> dict[str, Any]:
        """The JSON form."""
        results: dict[str, Any] = {"pages": [as_object(page) for page in self.pages]}
        if self.last_page is not None:
            results["last_page"] = base64.b64encode(self.last_page).decode()
        if self.names:
            results["names"] = [as_object(table) for table in self.names]
        if self.doubled is not None:
            results["doubled"] = self.doubled
        return results

    def check(self, text_bytes: int, characters: int, newlines: int) -> None:
        """Raise `ValueError` unless these can be the documents of a text with these counts."""
        require(bool(self.pages), "documents without a page")
        check_document_pages(self.pages)
        last, copy = self.pages[-1], self.last_page
        require(not isinstance(last, DocumentDirectory), "the last page of documents is a directory")
        within = last.characters <= characters and last.newlines <= newlines and last.bytes <= text_bytes
        require(within, "documents end after the text")
        require(copy is None or len(copy) == last.size_bytes, "last_page and the last page of documents differ")
        require(self.doubled is None or self.doubled < last.documents, f"doubled is document {self.doubled}")
        covered = 0
        for number, table in enumerate(self.names):
            where = f"table {number} of names"
            require(ID.fullmatch(table.id) is not None, f"{where}: {table.id!r} is not an id")
            require(covered < table.documents <= last.documents, f"{where}: ends at {table.documents}")
            possible = table.buckets.bit_count() == 1 and table.stride > 0
            require(possible and table.names <= table.documents - covered, f"{where}: impossible record")
            covered = table.documents


def document_page_refs(rows: Sequence[dict[str, Any]]) -> tuple[DocumentPageRef, ...]:
    """The entries of `pages` of documents, in a root or a directory."""
    return tuple(parse_entry(DocumentDirectory if "level" in row else DocumentPageRef, row) for row in rows)


def check_document_pages(pages: Sequence[DocumentPageRef], before: DocumentPageRef | None = None) -> None:
    """Raise `ValueError` unless these entries for pages of documents can follow each other and the entry `before`."""
    before = before or DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)
    for number, page in enumerate(pages):
        where = f"page {number} of documents"
        check_object(where, page.id, page.size_bytes)
        if isinstance(page, DocumentDirectory):
            check_directory(where, page, pages[number - 1] if number else None)
        rises = page.documents > before.documents and page.characters >= page.start >= before.characters
        rises = rises and page.newlines >= page.start_newline >= before.newlines and page.bytes >= before.bytes
        require(rises, f"{where}: counts do not rise")
        before = page


def documents_ref(row: dict[str, Any]) -> DocumentsRef:
    """The record of the field `documents` of a root. Raises `ValueError`, `TypeError` or `KeyError`."""
    return DocumentsRef(
        document_page_refs(row["pages"]),
        base64.b64decode(row["last_page"], validate=True) if row.get("last_page") else None,
        tuple(parse_entry(NameTableRef, table) for table in row.get("names", [])),
        None if row.get("doubled") is None else count_of(row["doubled"]),
    )
