"""Find the documents that differ between two versions of a text, at a cost that grows with the difference.

The list of documents is stored in pages. Pages that both versions share are not read. Two documents with the same name
and size are equal if both are in the same stored frames; otherwise their texts are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from monocontext.adapters.text_bytes import reader_of
from monocontext.format.documents import Document
from monocontext.text.monocontext import Monocontext

MOST_PAGES = 32  # pages to read of each version, with 4,096 documents each
MOST_COMPARED_CHARACTERS = 1 << 20  # characters of text to compare, in all documents together
_MOST_NAMES = 200  # names in each list of an answer
_MOST_FRAMES = 64  # frames of a document whose addresses are compared
_NAME_CHARACTERS = 300  # the most characters of a name in an answer

_Key = tuple[str, int]  # a name, and the number of documents with that name before this one


def document_changes(old: Monocontext, new: Monocontext) -> dict[str, Any]:
    """The documents that `new` has added, replaced and removed: for each kind the count, and the first names.

    `unknown` counts documents that were stored again and are too long to compare. Costs 1 GET for each page that
    differs, and those of the text to compare. Returns `{"too_many": pages}` if more than `MOST_PAGES` differ.
    """
    old_refs, new_refs = old.documents.table.page_refs, new.documents.table.page_refs
    shared = {ref.id for ref in old_refs} & {ref.id for ref in new_refs}
    old_pages = [number for number, ref in enumerate(old_refs) if ref.id not in shared]
    new_pages = [number for number, ref in enumerate(new_refs) if ref.id not in shared]
    differing = max(len(old_pages), len(new_pages))
    if differing > MOST_PAGES:
        return {"too_many": differing}
    before, after = dict(_documents_by_key(old, old_pages)), dict(_documents_by_key(new, new_pages))
    remaining_characters = MOST_COMPARED_CHARACTERS
    replaced, unknown = [], 0
    for key in [key for key in after if key in before]:
        earlier, later = before[key], after[key]
        if _size_and_metadata(old, earlier) != _size_and_metadata(new, later):
            replaced.append(later)
        elif not _are_same_frames(old, earlier, new, later):
            remaining_characters -= len(earlier)
            if remaining_characters < 0:
                unknown += 1
            elif str(old.view(earlier.start, earlier.stop)) != str(new.view(later.start, later.stop)):
                replaced.append(later)
    return {
        "added": _name_list([document for key, document in after.items() if key not in before]),
        "replaced": _name_list(replaced),
        "removed": _name_list([document for key, document in before.items() if key not in after]),
        "unknown": unknown,
    }


def _documents_by_key(text: Monocontext, pages: list[int]) -> Iterator[tuple[_Key, Document]]:
    """Yield the documents in some pages of the list, in order, each with its key."""
    counts = Counter[str]()
    for number in pages:
        page = text.documents.table.page(number)
        for index in range(len(page)):
            document = page[index]
            yield (document.name, counts[document.name]), document
            counts[document.name] += 1


def _size_and_metadata(text: Monocontext, document: Document) -> tuple[object, ...]:
    """The characters, bytes, lines and metadata of a document."""
    metadata = text.documents.metadata_of(document.number)
    return len(document), document.bytes, document.newlines, metadata


def _are_same_frames(old: Monocontext, earlier: Document, new: Monocontext, later: Document) -> bool:
    """Whether two documents of the same size are in the same stored frames, at the same offset."""
    if not len(earlier):
        return True
    addresses = _addresses(old, earlier)
    return addresses is not None and addresses == _addresses(new, later)


def _addresses(text: Monocontext, document: Document) -> list[tuple[object, ...]] | None:
    """The offset of a document in its first frame, then where each frame is stored; None above `_MOST_FRAMES`."""
    reader = reader_of(text)
    first, last = reader.locate(document.start), reader.locate(document.stop - 1)
    if last.number - first.number > _MOST_FRAMES:
        return None
    frames = [reader.frame(number) for number in range(first.number, last.number + 1)]
    return [(document.start - first.start,), *((frame.object, frame.offset) for frame in frames)]


def _name_list(documents: list[Document]) -> dict[str, Any]:
    """The number of documents, and the first `_MOST_NAMES` names, each cut to `_NAME_CHARACTERS`."""
    names = [document.name[:_NAME_CHARACTERS] for document in documents[:_MOST_NAMES]]
    return {"count": len(documents), "names": names}
