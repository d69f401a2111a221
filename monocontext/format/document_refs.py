"""The references to the documents of a text: their pages, directories of pages, and tables of names, as in a root."""

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
    counted,
    directory_key,
    require,
)
from monocontext.records import dataclass


def documents_key(id: str) -> str:
    return f"documents/{id}.doc"


@dataclass(frozen=True, slots=True)
class DocumentPageRef:
    """One page of documents (`documents`), with the counts up to and including its last document."""

    id: str
    """Truncated SHA-256 of the page's bytes; the object is `documents/<id>.doc`, unless the root holds the page."""
    size_bytes: int
    crc32c: int
    """Checksum of the page."""
    documents: int
    start: int
    """The character of the text that the page counts from."""
    start_newline: int
    """Newlines of the text before that."""
    characters: int
    """The end of the last document in the text, in characters."""
    newlines: int
    """Newlines of the text before that end."""
    bytes: int
    """Sum of the lengths of the documents."""


@dataclass(frozen=True, slots=True)
class DocumentDirectory(DocumentPageRef):
    """Neighbouring pages of documents, named by an object (`directories`); counts as of its last page."""

    entries: int
    level: int

    @property
    def key(self) -> str:
        return directory_key(self.id)


@dataclass(frozen=True, slots=True)
class NameTableRef:
    """A table of the names of neighbouring documents (`documents.names`)."""

    id: str
    documents: int
    """Documents up to and including the last one that it covers; it begins where the table before ends."""
    names: int
    """Different names."""
    buckets: int
    """A power of two."""
    stride: int
    """Entries of a bucket."""


@dataclass(frozen=True, slots=True)
class DocumentsRef:
    """The documents of a text."""

    pages: tuple[DocumentPageRef, ...]
    last_page: bytes | None = None
    """The last page itself where it is small: then no object holds it."""
    names: tuple[NameTableRef, ...] = ()
    """Names of documents after these tables are looked up in pages."""
    doubled: int | None = None
    """The first document with the name of an earlier one of the same upload; None if there is none."""

    @property
    def documents(self) -> int:
        return self.pages[-1].documents

    @property
    def named(self) -> int:
        """Documents that tables of names cover."""
        return self.names[-1].documents if self.names else 0

    def as_object(self) -> dict[str, Any]:
        """The JSON form."""
        held = self.last_page
        return {
            "pages": [as_object(page) for page in self.pages],
            **({} if held is None else {"last_page": base64.b64encode(held).decode()}),
            **({"names": [as_object(table) for table in self.names]} if self.names else {}),
            **({} if self.doubled is None else {"doubled": self.doubled}),
        }

    def check(self, text_bytes: int, characters: int, newlines: int) -> None:
        """Raise `ValueError` where they cannot be the documents of a text with these counts."""
        require(bool(self.pages), "documents without a page")
        check_document_pages(self.pages)
        before, held = self.pages[-1], self.last_page
        require(not isinstance(before, DocumentDirectory), "the last page of documents is a directory")
        within = before.characters <= characters and before.newlines <= newlines and before.bytes <= text_bytes
        require(within, "documents end after the text")
        require(held is None or len(held) == before.size_bytes, "last_page and the last page of documents differ")
        require(self.doubled is None or self.doubled < before.documents, f"doubled is document {self.doubled}")
        covered = 0
        for number, table in enumerate(self.names):
            where = f"table {number} of names"
            require(ID.fullmatch(table.id) is not None, f"{where}: {table.id!r} is not an id")
            require(covered < table.documents <= before.documents, f"{where}: ends at {table.documents}")
            sane = table.buckets > 0 and table.buckets & (table.buckets - 1) == 0 and table.stride > 0
            require(sane and table.names <= table.documents - covered, f"{where}: impossible record")
            covered = table.documents


def document_page_refs(rows: Sequence[dict[str, Any]]) -> tuple[DocumentPageRef, ...]:
    return tuple(counted(DocumentDirectory if "level" in row else DocumentPageRef, row) for row in rows)


def check_document_pages(pages: Sequence[DocumentPageRef], before: DocumentPageRef | None = None) -> None:
    """Raise `ValueError` where entries for pages of documents cannot follow each other, and the one `before` them."""
    before = before or DocumentPageRef("", 0, 0, 0, 0, 0, 0, 0, 0)
    for number, page in enumerate(pages):
        where = f"page {number} of documents"
        check_object(where, page.id, page.size_bytes)
        if isinstance(page, DocumentDirectory):
            check_directory(where, page, pages[number - 1] if number else None)
        rises = page.documents > before.documents and page.characters >= page.start >= before.characters
        rises = rises and page.newlines >= page.start_newline >= before.newlines and page.bytes >= before.bytes
        if not rises:
            raise ValueError(f"{where}: counts do not rise")
        before = page


def documents_ref(row: dict[str, Any]) -> DocumentsRef:
    """The field `documents` of a root."""
    return DocumentsRef(
        document_page_refs(row["pages"]),
        base64.b64decode(row["last_page"], validate=True) if row.get("last_page") else None,
        tuple(counted(NameTableRef, table) for table in row.get("names", [])),
        None if row.get("doubled") is None else count_of(row["doubled"]),
    )
