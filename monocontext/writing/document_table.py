"""Store the documents of a changed text: pages with changes, new ones at the end, and tables of names."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from monocontext.engine.fetch.threads import in_threads
from monocontext.format.directories import expand_documents
from monocontext.format.document_names import (
    decode_names,
    encode_names,
    entries_of,
    first_doubled,
    last_of_each_name,
    name_hash,
)
from monocontext.format.document_refs import (
    DocumentDirectory,
    DocumentPageRef,
    DocumentsRef,
    NameTableRef,
    documents_key,
)
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
from monocontext.writing.changes import Change, ChangedPlace
from monocontext.writing.documents import DocumentRows, load_document_page

_REQUESTS = 8
"""The most requests at once."""


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """Load all pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []

    def load(number: int) -> DocumentPage:
        return load_document_page(ref, number, lambda key: store.get(key).data)

    return in_threads(load, range(len(ref.pages)), _REQUESTS, "monocontext-documents")


# -- documents of new text ---------------------------------------------------------------------------------------------


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """Store the documents of a new text, and return all documents: those of `base` and, after them, the new ones.

    Costs 1 PUT for each page and each table of names, none for a last page of up to 32 KiB. Where few documents precede
    the new ones, also 1 GET for each of their pages and tables.
    """
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    if before and isinstance(before.pages[0], DocumentDirectory) and not before.named:
        before = expand_documents(before, lambda ref: store.get(ref.key).data)  # no table of names covers these pages
    pages = list(before.pages) if before else []
    shift, shift_newlines = (base.characters, base.newlines) if base else (0, 0)
    rows = new.rows
    start, start_newline = new.start[0] + shift, new.start[1] + shift_newlines
    if before and before.last_page is not None:
        last = load_document_page(before, len(pages) - 1, lambda key: store.get(key).data)
        if not new.pages and len(last) + len(rows) <= DOCUMENTS_PER_PAGE:
            ref = pages.pop()
            gap, gap_newlines = shift - ref.characters, shift_newlines - ref.newlines
            first = rows[0]._replace(gap=rows[0].gap + gap, gap_newlines=rows[0].gap_newlines + gap_newlines)
            rows = [*last.rows(), first, *rows[1:]]
            start, start_newline = ref.start, ref.start_newline
        else:
            pages[-1] = replace(pages[-1], id=fresh_id())
            store.put(documents_key(pages[-1].id), before.last_page)
    end = pages[-1] if pages else None
    pages += [_after(page, end, shift, shift_newlines) for page in new.pages]
    last_page = None
    if rows:
        data = encode_page(rows)
        pages.append(replace(page_ref(data, rows, pages[-1] if pages else None, start, start_newline), id=fresh_id()))
        if len(data) <= INLINE_BYTES:
            last_page = data
        else:
            store.put(documents_key(pages[-1].id), data)
    count = before.documents if before else 0
    doubled = before.doubled if before else None
    if doubled is None and new.doubled:
        doubled = count + new.doubled[1]
    return DocumentsRef(tuple(pages), last_page, _join_names(store, before, new), doubled)


def _after(page: DocumentPageRef, end: DocumentPageRef | None, characters: int, newlines: int) -> DocumentPageRef:
    """The entry of a page of new text, once the documents up to `end` and some text come before it."""
    return replace(
        page,
        documents=page.documents + (end.documents if end else 0),
        start=page.start + characters,
        start_newline=page.start_newline + newlines,
        characters=page.characters + characters,
        newlines=page.newlines + newlines,
        bytes=page.bytes + (end.bytes if end else 0),
    )


def _join_names(store: Store, before: DocumentsRef | None, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """The tables of names. Once documents without a table fill a page, they get a table.

    It takes in the tables before it that cover no more documents than it does. So the number of tables grows with the
    logarithm of the number of documents.
    """
    tables = list(before.names) if before else []
    first = before.named if before else 0
    total = (before.documents if before else 0) + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    hashes = b""
    for number, ref in enumerate(before.pages if before else ()):
        if ref.documents > first and not isinstance(ref, DocumentDirectory):
            page = load_document_page(before, number, lambda key: store.get(key).data)  # type: ignore[arg-type]
            hashes += b"".join(name_hash(page.raw_name(i)) for i in range(max(first - page.first, 0), len(page)))
    entries = entries_of(hashes + bytes(new.hashes), first)
    while tables:
        began = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - began > total - first:
            break
        import numpy as np

        table, first = tables.pop(), began
        entries = np.concatenate([decode_names(store.get(documents_key(table.id)).data, table), entries])
    return (*tables, _put_names(store, entries, total))


def _put_names(store: Store, entries: object, documents: int) -> NameTableRef:
    """Store a table of the names in `entries`, up to the last of so many documents."""
    last = last_of_each_name(entries)
    data, buckets, stride = encode_names(last)
    ref = NameTableRef(fresh_id(), documents, len(last), buckets, stride)
    store.put(documents_key(ref.id), data)
    return ref


# -- changed documents -------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Growth:
    """How much longer the changed text is than the old one, up to some place; negative if shorter."""

    characters: int = 0
    newlines: int = 0


def change_documents(
    store: Store,
    old: DocumentsRef,
    pages: Sequence[DocumentPage],
    wanted: Mapping[int, Change],
    changed: Sequence[ChangedPlace],
) -> DocumentsRef | None:
    """Store the pages of documents with a change (1 PUT each), and a table of names if documents were deleted.

    Returns the documents of the changed text, or None if it has none.
    """
    places = {location.number: location for location in changed}
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
    in_threads(lambda id: store.put(documents_key(id), new[id]), list(new), _REQUESTS, "monocontext-documents")
    gone = {number for number, change in wanted.items() if change.deletes}
    if not gone:
        return DocumentsRef(tuple(refs), last_page, old.names, old.doubled)
    count = refs[-1].documents
    if count <= DOCUMENTS_PER_PAGE and old.doubled is None:
        return DocumentsRef(tuple(refs), last_page)
    entries = entries_of(
        b"".join(name_hash(page.raw_name(i)) for page in pages for i in range(len(page)) if page.first + i not in gone)
    )
    double = first_doubled(entries) if old.doubled is not None else None
    names = (_put_names(store, entries, count),) if count > DOCUMENTS_PER_PAGE else ()
    return DocumentsRef(tuple(refs), last_page, names, double[1] if double else None)


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
        location = places.get(number)
        if location is not None and location.change.text is None:
            growth.characters -= location.header_characters + row.characters + location.drops_newline
            growth.newlines -= int(location.header_characters > 0) + row.newlines + location.drops_newline
            continue
        start, line = page.starts[i] + growth.characters, page[i].first_line + growth.newlines
        if number in wanted:
            row = _changed_row(row, wanted[number])
        rows.append(row._replace(gap=start - end, gap_newlines=line - end_newlines))
        end, end_newlines = start + row.characters, line + row.newlines
        if location is not None:
            growth.characters += len(location.new_text) - (location.stop - location.start) - location.drops_newline
            growth.newlines += location.new_text.count("\n") - page.newlines[i] - location.drops_newline
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
    fields = json.loads(metadata)
    return encode_metadata(
        {name: value for name, value in fields.items() if name != "file" or type(value) is not dict}, 0
    )
