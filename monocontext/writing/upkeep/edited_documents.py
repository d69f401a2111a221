"""Read the documents of a text, and store those of its changed text: pages with changes, and a table of names."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from monocontext.engine.fetch.threads import in_threads
from monocontext.format.document_names import (
    encode_names,
    entries_of,
    first_doubled,
    last_of_each_name,
    name_hash,
)
from monocontext.format.document_refs import DocumentPageRef, DocumentsRef, NameTableRef, documents_key
from monocontext.format.documents import (
    DOCUMENTS_PER_PAGE,
    INLINE_BYTES,
    DocumentPage,
    DocumentRow,
    encode_metadata,
    encode_page,
    page_ref,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import fresh_id
from monocontext.records import dataclass, replace
from monocontext.stores.protocol import Store
from monocontext.writing.documents import load_document_page
from monocontext.writing.upkeep.edited_text import Change, ChangedPlace, Stretch

_REQUESTS = 8
"""The most requests at once."""


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """Load all pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []

    def load(number: int) -> DocumentPage:
        return load_document_page(ref, number, lambda key: store.get(key).data)

    return in_threads(load, range(len(ref.pages)), _REQUESTS, "monocontext-edit")


@dataclass(slots=True)
class _Growth:
    """How much longer the changed text is than the old one, up to some place; negative if shorter."""

    characters: int = 0
    newlines: int = 0


def write_documents(
    store: Store,
    base: Manifest,
    pages: Sequence[DocumentPage],
    wanted: Mapping[int, Change],
    stretches: Sequence[Stretch],
) -> DocumentsRef | None:
    """Store the pages of documents with a change (1 PUT each), and a table of names if documents were deleted.

    Returns the documents of the changed text, or None if it has none.
    """
    old = base.documents
    assert old is not None
    places = {place.number: place for stretch in stretches for place in stretch.places}
    numbers = sorted(wanted)
    growth = _Growth()
    refs: list[DocumentPageRef] = []
    new: dict[str, bytes] = {}
    """The new pages, by id."""
    for page, old_ref, old_before in zip(pages, old.pages, (None, *old.pages), strict=False):
        before = refs[-1] if refs else None
        end, end_newlines = (before.characters, before.newlines) if before else (0, 0)
        moved = _moved_page(old_ref, old_before, before, growth)
        is_touched = bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        if not is_touched and moved.start >= end and moved.start_newline >= end_newlines:
            refs.append(moved)
            continue
        rows = _changed_rows(page, wanted, places, growth, end, end_newlines)
        if rows:
            data = encode_page(rows)
            refs.append(replace(page_ref(data, rows, before, end, end_newlines), id=fresh_id()))
            new[refs[-1].id] = data
    if not refs:
        return None
    last_id, last_page = refs[-1].id, None
    if last_id == old.pages[-1].id:
        last_page = old.last_page
    elif len(new.get(last_id, b"")) <= INLINE_BYTES:
        last_page = new.pop(last_id, None)
    in_threads(lambda id: store.put(documents_key(id), new[id]), list(new), _REQUESTS, "monocontext-edit")
    gone = {number for number, change in wanted.items() if change.deletes}
    if not gone:
        return DocumentsRef(tuple(refs), last_page, old.names, old.doubled)
    hashes = b"".join(
        name_hash(page.raw_name(i)) for page in pages for i in range(len(page)) if page.first + i not in gone
    )
    names, doubled = _write_names(store, hashes, refs[-1].documents, old)
    return DocumentsRef(tuple(refs), last_page, names, doubled)


def _moved_page(
    old: DocumentPageRef, old_before: DocumentPageRef | None, before: DocumentPageRef | None, growth: _Growth
) -> DocumentPageRef:
    """The entry of an unchanged page that followed `old_before`, and now follows `before`."""
    old_documents, old_bytes = (old_before.documents, old_before.bytes) if old_before else (0, 0)
    documents, size = (before.documents, before.bytes) if before else (0, 0)
    return replace(
        old,
        documents=documents + old.documents - old_documents,
        start=old.start + growth.characters,
        start_newline=old.start_newline + growth.newlines,
        characters=old.characters + growth.characters,
        newlines=old.newlines + growth.newlines,
        bytes=size + old.bytes - old_bytes,
    )


def _changed_rows(
    page: DocumentPage,
    wanted: Mapping[int, Change],
    places: Mapping[int, ChangedPlace],
    growth: _Growth,
    end: int,
    end_newlines: int,
) -> list[DocumentRow]:
    """The rows of a page after the changes, which are added to `growth`.

    `end` and `end_newlines` are the end of the document before the page, in the changed text.
    """
    rows: list[DocumentRow] = []
    for i, row in enumerate(page.rows()):
        number = page.first + i
        place = places.get(number)
        if place is not None and place.change.text is None:
            growth.characters -= place.header_characters + row.characters + place.drops_newline
            growth.newlines -= int(place.header_characters > 0) + row.newlines + place.drops_newline
            continue
        start, line = page.starts[i] + growth.characters, page[i].first_line + growth.newlines
        if number in wanted:
            row = _changed_row(row, wanted[number])
        rows.append(row._replace(gap=start - end, gap_newlines=line - end_newlines))
        end, end_newlines = start + row.characters, line + row.newlines
        if place is not None:
            growth.characters += len(place.new_text) - (place.stop - place.start) - place.drops_newline
            growth.newlines += place.new_text.count("\n") - page.newlines[i] - place.drops_newline
    return rows


def _changed_row(row: DocumentRow, change: Change) -> DocumentRow:
    """The row of a document with its new text and metadata. Its gap stays that of the old text."""
    if change.metadata is not None:
        row = row._replace(metadata=change.metadata)
    if change.keeps_text:
        return row
    if change.metadata is None and b'"file"' in row.metadata:
        row = row._replace(metadata=_without_file(row.metadata))
    text = change.text or ""
    return row._replace(
        characters=len(text),
        text_bytes=len(text.encode()),
        newlines=text.count("\n"),
    )


def _without_file(metadata: bytes) -> bytes:
    """Metadata without the facts that `sync` recorded of a file: with another text, `sync` has to compare again."""
    found = json.loads(metadata)
    return encode_metadata(
        {name: value for name, value in found.items() if name != "file" or type(value) is not dict}, 0
    )


def _write_names(
    store: Store, hashes: bytes, count: int, before: DocumentsRef
) -> tuple[tuple[NameTableRef, ...], int | None]:
    """Store a table of all names, if one page is too small for all documents.

    Returns the tables, and the number of the first document with the name of an earlier one.
    """
    entries = entries_of(hashes) if before.doubled is not None or count > DOCUMENTS_PER_PAGE else None
    doubled = None
    if before.doubled is not None and (found := first_doubled(entries)) is not None:
        doubled = found[1]
    if count <= DOCUMENTS_PER_PAGE:
        return (), doubled
    entries = last_of_each_name(entries)
    data, buckets, stride = encode_names(entries)
    ref = NameTableRef(fresh_id(), count, len(entries), buckets, stride)
    store.put(documents_key(ref.id), data)
    return (ref,), doubled
