"""Store the documents of a changed text: pages with changes, new ones at the end, and tables of names."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Mapping, Sequence

from monocontext.format.directories import expand_documents
from monocontext.format.document_names import name_hash
from monocontext.format.documents import (
    DOCUMENTS_PER_PAGE,
    DocumentPage,
    DocumentRow,
    encode_metadata,
)
from monocontext.format.manifest import Manifest
from monocontext.format.refs import (
    DocumentDirectory,
    DocumentPageRef,
    DocumentsRef,
    NameTableRef,
    documents_key,
)
from monocontext.records import replace
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.changes import Change, Patch
from monocontext.writing.documents import DocumentRows, DocumentWriter, load_document_page

_REQUESTS = 8  # the most requests at once


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """Load all pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []

    def load(number: int) -> DocumentPage:
        return load_document_page(ref, number, lambda key: store.get(key).data)

    return at_once(load, range(len(ref.pages)), _REQUESTS)


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """All documents: those of `base`, and the new ones after them, whose pages and names are stored (1 PUT each)."""
    before = base.documents if base else None
    if new is None or not new.count:
        return before
    pages = before.pages if before else ()
    writer = DocumentWriter(store, pages)
    if before and before.last_page is not None:  # it takes new documents, too
        last, ref = load_document_page(before, len(pages) - 1, lambda key: b""), pages[-1]
        writer = DocumentWriter(store, pages[:-1])
        writer.add_rows(last.rows(), (ref.start, ref.start_newline))
    shift = (base.characters, base.newlines) if base else (0, 0)
    ends: DocumentPageRef | None = None
    for page in new.pages:
        writer.keep(page, ends, shift)
        ends = page
    start = (ends.characters + shift[0], ends.newlines + shift[1]) if ends else shift
    writer.add_rows(new.rows, start)
    writer.finish()
    doubled = before.doubled if before else None
    if doubled is None and new.doubled:
        doubled = (before.documents if before else 0) + new.doubled[1]
    return DocumentsRef(tuple(writer.pages), writer.last_page, _join_names(store, before, new), doubled)


def _join_names(store: Store, before: DocumentsRef | None, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """The tables of names. Documents that fill a page get one, joined with tables before it of no more documents."""
    tables = list(before.names) if before else []
    first = before.named if before else 0
    total = (before.documents if before else 0) + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    from monocontext.format import name_tables  # imports numpy, for which few documents have no use

    hashes = b""
    if before and any(isinstance(ref, DocumentDirectory) and ref.documents > first for ref in before.pages):
        before = expand_documents(before, lambda ref: store.get(ref.key).data)
    for number, ref in enumerate(before.pages if before else ()):
        if ref.documents > first and not isinstance(ref, DocumentDirectory):
            page = load_document_page(before, number, lambda key: store.get(key).data)  # type: ignore[arg-type]
            hashes += b"".join(name_hash(page.raw_name(i)) for i in range(max(first - page.first, 0), len(page)))
    entries = name_tables.entries_of(hashes + bytes(new.hashes), first)
    while tables:
        began = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - began > total - first:
            break
        table, first = tables.pop(), began
        entries = name_tables.join(store.get(documents_key(table.id)).data, table, entries)
    return (*tables, _put_names(store, *name_tables.table_of(entries, total)))


def _put_names(store: Store, ref: NameTableRef, data: bytes) -> NameTableRef:
    store.put(documents_key(ref.id), data)
    return ref


def change_documents(
    store: Store,
    old: DocumentsRef,
    pages: Sequence[DocumentPage],
    wanted: Mapping[int, Change],
    patches: Mapping[int, Patch],
    *,
    anew: bool = False,
) -> DocumentsRef | None:
    """Store the pages of documents with a change, and a table of names if some were deleted; with `anew`, all of them.

    `patches`: the changes of the text. Returns the documents of the changed text, or None if it has none.
    """
    numbers = sorted(wanted)
    writer, shift = DocumentWriter(store), (0, 0)
    for page, ref, before in zip(pages, old.pages, (None, *old.pages), strict=False):
        is_touched = anew or bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        writer.end_page()
        start = ref.start + shift[0], ref.start_newline + shift[1]
        if not is_touched and start[0] >= writer.end[0] and start[1] >= writer.end[1]:
            writer.keep(ref, before, shift, old.last_page if ref is old.pages[-1] else None)
            continue
        for i, row in enumerate(page.rows()):
            document, change, patch = page[i], wanted.get(page.first + i), patches.get(page.first + i)
            if not (change and change.deletes):
                at = document.start + shift[0], document.first_line + shift[1]
                writer.add(row.name, *_changed(row, change, at))
            if patch:
                header, newline = document.start - patch.start, patch.stop - document.stop
                shift = (
                    shift[0] + len(patch.text) - (patch.stop - patch.start),
                    shift[1] + patch.text.count("\n") - row.newlines - (header > 0) - newline,
                )
    writer.finish()
    if not writer.pages:
        return None
    gone = {number for number, change in wanted.items() if change.deletes}
    result = DocumentsRef(tuple(writer.pages), writer.last_page, old.names, old.doubled)
    if not gone and not anew:
        return result
    count = result.documents
    if count <= DOCUMENTS_PER_PAGE and old.doubled is None:
        return replace(result, names=())
    from monocontext.format import name_tables

    entries = name_tables.entries_of(
        b"".join(name_hash(page.raw_name(i)) for page in pages for i in range(len(page)) if page.first + i not in gone)
    )
    double = name_tables.first_doubled(entries) if old.doubled is not None else None
    names = (_put_names(store, *name_tables.table_of(entries, count)),) if count > DOCUMENTS_PER_PAGE else ()
    return replace(result, names=names, doubled=double[1] if double else None)


def _changed(
    row: DocumentRow, change: Change | None, start: tuple[int, int]
) -> tuple[bytes, tuple[int, int], tuple[int, int, int]]:
    """Metadata, start and size of a document after its change."""
    size, metadata = (row.characters, row.text_bytes, row.newlines), row.metadata
    if change and change.text is not None and not change.keeps_text:
        size = len(change.text), len(change.text.encode()), change.text.count("\n")
        if change.metadata is None and b'"file"' in metadata:
            # without the facts that `sync` recorded of a file: with another text, it has to compare again
            facts = json.loads(metadata)
            metadata = encode_metadata({k: v for k, v in facts.items() if k != "file" or type(v) is not dict}, 0)
    return metadata if change is None or change.metadata is None else change.metadata, start, size
