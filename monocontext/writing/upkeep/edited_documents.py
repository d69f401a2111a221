"""Read the documents of a text, and store the pages with changes, and a table of names."""

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
from monocontext.records import replace as changed
from monocontext.stores.protocol import Store
from monocontext.writing.upkeep.edited_text import Change, Stretch

_REQUESTS = 8


def load_documents(store: Store, ref: DocumentsRef | None) -> list[DocumentPage]:
    """All pages of documents (1 GET each, some at once)."""
    if ref is None:
        return []
    last = len(ref.pages) - 1

    def load(number: int) -> DocumentPage:
        page = ref.pages[number]
        held = ref.last_page if number == last else None
        data = held if held is not None else store.get(documents_key(page.id)).data
        return DocumentPage(data, page, ref.pages[number - 1] if number else None)

    return in_threads(load, range(len(ref.pages)), _REQUESTS, "monocontext-edit")


def write_documents(
    store: Store,
    base: Manifest,
    pages: Sequence[DocumentPage],
    wanted: Mapping[int, Change],
    stretches: Sequence[Stretch],
) -> DocumentsRef | None:
    """Store the pages of documents with a change, and where some are gone the table of names."""
    ref = base.documents
    assert ref is not None
    spots = {spot.number: spot for stretch in stretches for spot in stretch.spots}
    refs: list[DocumentPageRef] = []
    bodies: list[bytes | None] = []
    """The data to store for each page; None if its object stays."""
    shift = lines = 0
    numbers = sorted(wanted)
    for at, page in enumerate(pages):
        before = refs[-1] if refs else None
        end, end_line = (before.characters, before.newlines) if before else (0, 0)
        touched = bisect_left(numbers, page.first) < bisect_left(numbers, page.first + len(page))
        old, old_before = ref.pages[at], ref.pages[at - 1] if at else None
        start, start_line = old.start + shift, old.start_newline + lines
        if not touched and start >= end and start_line >= end_line:
            refs.append(
                changed(
                    old,
                    documents=(before.documents if before else 0) + len(page),
                    start=start,
                    start_newline=start_line,
                    characters=old.characters + shift,
                    newlines=old.newlines + lines,
                    bytes=(before.bytes if before else 0) + old.bytes - (old_before.bytes if old_before else 0),
                )
            )
            bodies.append(None)
            continue
        rows: list[DocumentRow] = []
        first, first_line = end, end_line
        """The offsets at which the page begins."""
        for i, row in enumerate(page.rows()):
            start, line = page.starts[i], page[i].first_line
            spot = spots.get(page.first + i)
            if spot is not None and spot.change.text is None:
                shift -= spot.header + row.characters + spot.newline
                lines -= int(spot.header > 0) + row.newlines + spot.newline
                continue
            if (change := wanted.get(page.first + i)) is not None:
                row = _changed_row(row, change)
            gap, gap_lines = start + shift - end, line + lines - end_line
            row = row._replace(gap=gap, gap_newlines=gap_lines)
            end, end_line = end + gap + row.characters, end_line + gap_lines + row.newlines
            rows.append(row)
            if spot is not None:
                shift += len(spot.new_text) - (spot.stop - spot.start) - spot.newline
                lines += spot.new_text.count("\n") - page.newlines[i] - spot.newline
        if rows:
            data = encode_page(rows)
            refs.append(changed(page_ref(data, rows, before, first, first_line), id=fresh_id()))
            bodies.append(data)
    if not refs:
        return None
    last_page = bodies[-1] if bodies[-1] is not None and len(bodies[-1]) <= INLINE_BYTES else None
    if bodies[-1] is None and refs[-1].id == ref.pages[-1].id:
        last_page = ref.last_page
    new = [(documents_key(page.id), body) for page, body in zip(refs, bodies, strict=True) if body is not None]
    if new and new[-1][1] is last_page:
        new.pop()
    in_threads(lambda page: store.put(*page), new, _REQUESTS, "monocontext-edit")
    gone = {number for number, change in wanted.items() if change.deletes}
    if not gone:
        return DocumentsRef(tuple(refs), last_page, ref.names, ref.doubled)
    hashes = b"".join(
        name_hash(page.raw_name(i)) for page in pages for i in range(len(page)) if page.first + i not in gone
    )
    names, doubled = _write_names(store, hashes, refs[-1].documents, ref)
    return DocumentsRef(tuple(refs), last_page, names, doubled)


def _changed_row(row: DocumentRow, change: Change) -> DocumentRow:
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
    """Metadata without what `sync` recorded of a file: the text is another one, and `sync` has to look again."""
    found = json.loads(metadata)
    return encode_metadata(
        {name: value for name, value in found.items() if name != "file" or type(value) is not dict}, 0
    )


def _write_names(
    store: Store, hashes: bytes, count: int, before: DocumentsRef
) -> tuple[tuple[NameTableRef, ...], int | None]:
    """A table of all names, where there are more documents than a page holds; and the first doubled name."""
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
