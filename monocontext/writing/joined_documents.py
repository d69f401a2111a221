"""Join the documents of appended text with those of the text before it: their pages, and the tables of their names."""

from __future__ import annotations

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
    decode_names,
    encode_names,
    encode_page,
    entries_of,
    last_of_each_name,
    name_hash,
    page_ref,
)
from monocontext.format.folding import opened_documents
from monocontext.format.manifest import Manifest
from monocontext.format.refs import fresh_id
from monocontext.records import replace
from monocontext.stores.protocol import Store
from monocontext.writing.documents import DocumentRows, load_document_page


def join_documents(store: Store, base: Manifest | None, new: DocumentRows | None) -> DocumentsRef | None:
    """Store the documents of a new text, and return all documents: those of `base` and, after them, the new ones.

    Costs 1 PUT for each page and each table of names, none for a last page of up to 32 KiB. Where few documents precede
    the new ones, also 1 GET for each of their pages and tables.
    """
    if new is None or not new.count:
        return base.documents if base else None
    known = _KnownDocuments(store, base.documents if base else None)
    before = known.ref
    pages = list(before.pages) if before else []
    shift, shift_newlines = (base.characters, base.newlines) if base else (0, 0)
    rows = new.rows
    start, start_newline = new.start[0] + shift, new.start[1] + shift_newlines
    if before and before.last_page is not None:
        last = known.page(len(pages) - 1)
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
    pages += [_moved(page, end, shift, shift_newlines) for page in new.pages]
    last_page = None
    if rows:
        data = encode_page(rows)
        ref = page_ref(data, rows, pages[-1] if pages else None, start, start_newline)
        pages.append(replace(ref, id=fresh_id()))
        if len(data) <= INLINE_BYTES:
            last_page = data
        else:
            store.put(documents_key(pages[-1].id), data)
    doubled = before.doubled if before else None
    if doubled is None and new.doubled:
        doubled = known.count + new.doubled[1]
    return DocumentsRef(tuple(pages), last_page, _join_names(store, known, new), doubled)


def _moved(page: DocumentPageRef, end: DocumentPageRef | None, characters: int, newlines: int) -> DocumentPageRef:
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


class _KnownDocuments:
    """The documents of the text before, whose pages are read as they are needed."""

    def __init__(self, store: Store, ref: DocumentsRef | None):
        self._store = store
        directories = [page for page in ref.pages if isinstance(page, DocumentDirectory)] if ref else []
        if ref and directories and directories[-1].documents > ref.named:  # no table of names covers these pages yet
            ref = opened_documents(ref, lambda ref: store.get(ref.key).data)
        self.ref = ref
        self.count = ref.documents if ref else 0

    def page(self, number: int) -> DocumentPage:
        """One page, which must not be a directory (1 GET, none for a page that the root holds)."""
        assert self.ref is not None
        return load_document_page(self.ref, number, lambda key: self._store.get(key).data)

    def hashes_from(self, first: int) -> bytes:
        """The hashes of the names of documents from number `first` on."""
        found = b""
        for number, ref in enumerate(self.ref.pages if self.ref else ()):
            if ref.documents > first and not isinstance(ref, DocumentDirectory):
                page = self.page(number)
                found += b"".join(name_hash(page.raw_name(i)) for i in range(max(first - page.first, 0), len(page)))
        return found


def _join_names(store: Store, known: _KnownDocuments, new: DocumentRows) -> tuple[NameTableRef, ...]:
    """The tables of names. Once documents without a table fill a page, they get a table.

    It takes in the tables before it that cover no more documents than it does. So the number of tables grows with the
    logarithm of the number of documents.
    """
    tables = list(known.ref.names) if known.ref else []
    first = known.ref.named if known.ref else 0
    total = known.count + new.count
    if total - first <= DOCUMENTS_PER_PAGE:
        return tuple(tables)
    entries = entries_of(known.hashes_from(first) + bytes(new.hashes), first)
    while tables:
        began = tables[-2].documents if len(tables) > 1 else 0
        if tables[-1].documents - began > total - first:
            break
        import numpy as np

        table, first = tables.pop(), began
        entries = np.concatenate([decode_names(store.get(documents_key(table.id)).data, table), entries])
    entries = last_of_each_name(entries)
    data, buckets, stride = encode_names(entries)
    ref = NameTableRef(fresh_id(), total, len(entries), buckets, stride)
    store.put(documents_key(ref.id), data)
    return (*tables, ref)
