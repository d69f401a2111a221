"""Replace, add and delete documents of a context, as its next generation.

Only frames, index pages and pages of documents with a change are stored again. If another writer commits first, names
are looked up again in the root of that writer, and the edit is made on it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from monocontext.errors import InvalidText, NotFound
from monocontext.format.documents import DocumentPage, encode_metadata
from monocontext.format.generations import listed_generations, read_generation
from monocontext.format.manifest import Manifest
from monocontext.globs import Globs
from monocontext.options import StoreOptions
from monocontext.records import NamedTuple
from monocontext.records import replace as with_fields
from monocontext.writing.changes import Change, stored_again
from monocontext.writing.commit import Staged, commit_on
from monocontext.writing.document_table import change_documents, load_documents
from monocontext.writing.documents import DocumentInputs
from monocontext.writing.documents import documents as as_inputs
from monocontext.writing.input_options import InputOptions
from monocontext.writing.inputs import parts_of, read_pieces
from monocontext.writing.place import Place, open_store_at
from monocontext.writing.publish import store_text, with_new
from monocontext.writing.segments import Written
from monocontext.writing.splice import EMPTY_ROOT, covered, splice, uncovered, wants_filters, with_copies
from monocontext.writing.stored_text import StoredText, expanded
from monocontext.writing.upkeep.forget import forget_rest, without_dead_bytes


class Edit(NamedTuple):
    """The changes of the documents of one root."""

    changes: Mapping[int, Change] = {}
    """By the number of the document."""
    added: Written | None = None
    """New documents, after all others (`publish.store_text`)."""


def replace(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the texts of documents in the context at `url`, found by name, and return the committed root.

    `documents` is a mapping of name to text, or an iterable of (name, text) and (name, text, metadata); a text is a
    `str` or the path of a file, and is kept in memory. Without metadata, those of the document stay. Of several
    documents with one name the last is replaced. `allow`: as for `Monocontext.open`. Raises `NotFound`, and changes
    nothing, if a name is missing (`update` appends missing ones). Two writers at once both succeed.

    Cost: 1 GET a page of 4096 documents, 1 for each index page and each range of frames that changes; 1 PUT for 16 MiB
    of new frames, for each index page and each page of documents with a change; about 6 requests for the commit.
    """
    return _put(url, documents, allow, store_options, adds=False)


def update(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the documents whose names exist, and append the others, in one generation; returns its root.

    Parameters and cost as for `replace`, and those of `append`. Two writers at once that add a name both succeed: the
    second replaces the document of the first.
    """
    return _put(url, documents, allow, store_options, adds=True)


def _put(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    allow: Iterable[str | os.PathLike[str]],
    options: StoreOptions | None,
    *,
    adds: bool,
) -> Manifest:
    given = _texts_of(documents)
    wanted = {name.encode("utf-8", "surrogatepass"): name for name in given}

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        last = {wanted[name]: number for number, name in enumerate(_names_in(pages)) if name in wanted}
        missing = [name for name in given if name not in last]
        if missing and not adds:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise NotFound(f"no document {missing[0]!r}{more} to replace: `update` adds new ones")
        new = [(name, given[name].text, json.loads(given[name].metadata or b"null")) for name in missing]
        return Edit(
            {number: given[name] for name, number in last.items()},
            store_text(store, as_inputs(new), base) if new else None,
        )

    with open_store_at(url, options) as store:
        return commit_on(store, _PURPOSE, lambda base, store: edited(base, store, plan, options, allow))


def delete(
    url: Place,
    names: str | Iterable[str],
    *,
    forget: bool = False,
    cache_dir: str | os.PathLike[str] | None = None,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Delete documents from the context at `url`, and return the committed root.

    `names` is a name or a glob, or an iterable of names and of globs with `*`, `?` or `[`; a document's own name comes
    first. All documents with such a name are deleted, and the ones after them get new numbers. The header line before a
    file of a folder goes too, unless the upload set another `header`. Earlier generations keep the text until `gc`
    removes them. Parameters and cost as for `replace`; with more than 4096 documents, also a table of names, 16 bytes a
    document.

    `forget`: leave the text in no object below `url`. Frames that share a segment with it are stored again, and `gc`
    without a grace period removes earlier generations; readers of these fail at their next read of a removed object.
    `find_leftovers` proves the result. `cache_dir`: a folder in which readers on this machine cache data, which is
    emptied too. Copies in other places remain, such as old versions that the bucket keeps.

    Raises `NotFound`, and changes nothing, if no document has such a name; with `forget`, if none has it in an earlier
    version either (2 GETs a version more). So a deletion that was cut off, or made without `forget`, can be ended.
    """
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a name, a glob or an iterable of names, not {type(names).__name__}")
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if wrong := [name for name in wanted if not isinstance(name, str)]:
        raise TypeError(f"the name of a document must be a str, not {type(wrong[0]).__name__}: {str(wrong[0])[:80]!r}")
    if cache_dir is not None and not forget:
        raise ValueError("cache_dir needs forget=True")

    def numbers_of(there: list[bytes]) -> dict[str, list[int]]:
        """The documents that each of `wanted` means, of those with these names."""
        by_name: dict[bytes, list[int]] = {}
        for number, raw in enumerate(there):
            by_name.setdefault(raw, []).append(number)
        results = {name: by_name.get(name.encode("utf-8", "surrogatepass"), []) for name in wanted}
        for name, numbers in results.items():
            is_glob = isinstance(names, str) or any(sign in name for sign in "*?[")
            if is_glob and not numbers and not name.startswith("!"):
                select = Globs([name]).select
                numbers += [number for number, raw in enumerate(there) if select(raw.decode())]
        return results

    def plan(base: Manifest | None, pages: list[DocumentPage], store: Staged) -> Edit:
        numbers = numbers_of(_names_in(pages))
        changes = {number: Change(None) for some in numbers.values() for number in some}
        if forget and not changes and any(any(numbers_of(there).values()) for there in _earlier_names(store, base)):
            return Edit()
        if missing := [name for name, some in numbers.items() if not some]:
            raise NotFound(f"no document is named {missing[0]!r} or matches that glob")
        return Edit(changes)

    with open_store_at(url, store_options) as store:
        root = commit_on(
            store, _PURPOSE, lambda base, store: edited(base, store, plan, store_options, allow, forget=forget)
        )
        if forget:
            forget_rest(store, root, cache_dir)
        return root


_PURPOSE = "to change: `upload` makes one"


def _texts_of(documents: Mapping[str, str] | Iterable[Any]) -> dict[str, Change]:
    """The new texts by name, read from files if they are paths. Raises `InvalidText` or `TypeError`."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable | DocumentInputs):
        raise TypeError(
            f"documents must be a mapping of name to text, or (name, text) tuples, not {type(documents).__name__}"
        )
    items = documents.items if isinstance(documents, DocumentInputs) else as_inputs(documents).items
    results: dict[str, Change] = {}
    for number, item in enumerate(items):
        if not (isinstance(item, tuple) and item and isinstance(item[0], str)):
            raise InvalidText(f"document {number}: expected (name, text) or (name, text, metadata)")
        name, text, metadata = parts_of(item, number)
        text = b"".join(read_pieces(text if isinstance(text, str) else [text], InputOptions())).decode()
        results[name] = Change(text, None if metadata is None else encode_metadata(metadata, number))
    return results


def _names_in(pages: Sequence[DocumentPage]) -> list[bytes]:
    return [page.raw_name(i) for page in pages for i in range(len(page))]


def _earlier_names(store: Staged, newest: Manifest | None) -> Iterator[list[bytes]]:
    """The names of documents in each earlier version whose pages are still there."""
    for number in listed_generations(store):
        if newest is not None and number < newest.generation:
            with suppress(NotFound):
                root = expanded(store, read_generation(store, number))
                yield _names_in(load_documents(store, root.documents))


def edited(
    base: Manifest | None,
    store: Staged,
    plan: Callable[[Manifest | None, list[DocumentPage], Staged], Edit],
    options: StoreOptions | None,
    allow: Iterable[str | os.PathLike[str]] = (),
    *,
    forget: bool = False,
) -> Manifest | None:
    """The root after the changes that `plan` returns, given the newest root, its documents and the store for new ones;
    None if there are no changes. With `forget`, it names no object with text that no version from this one on has."""
    old = EMPTY_ROOT if base is None else expanded(store, base)
    pages = load_documents(store, old.documents)
    changes, new = plan(base and old, pages, store)
    if not changes and new is None and not forget:
        return None
    with StoredText(store, old, allow=allow, store_options=options) as text:
        if changes:
            text = text.after(_changed(text, pages, changes))
        if new is not None:
            text = text.after(with_new(text, new))
        if forget:
            text = text.after(without_dead_bytes(text))
        store.has_steps |= bool(changes) and (new is not None or forget)
        return with_copies(text) if changes or forget else text.root


def _changed(text: StoredText, pages: Sequence[DocumentPage], changes: Mapping[int, Change]) -> Manifest:
    """The root of the text with changed documents, without copies of its text."""
    documents = text.root.documents
    assert documents is not None
    stretches, new, patches = stored_again(text, pages, changes)
    root = splice(text, stretches, new, documents=change_documents(text.store, documents, pages, changes, patches))
    if not text.root.filters or not stretches:
        return root
    if not wants_filters(root):
        return with_fields(root, filters=())
    return covered(text.after(root), uncovered(text, stretches))
