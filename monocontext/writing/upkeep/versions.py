"""List the versions of a context, and make an earlier one the newest again."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from monocontext.errors import NotFound
from monocontext.format.generations import listed_generations, read_generation, read_newest
from monocontext.format.manifest import Manifest
from monocontext.format.refs import DocumentsRef, documents_key, fresh_id, index_key
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.stores.parallel import at_once
from monocontext.stores.protocol import Store
from monocontext.writing.commit import Staged, commit_on
from monocontext.writing.cover import covered, gaps, wants_filters
from monocontext.writing.place import Place, open_store_at
from monocontext.writing.splice import moved_frames, splice, with_copies
from monocontext.writing.stored_text import StoredText, expanded

_REQUESTS = 8
"""The most GETs at once."""


def list_versions(
    url: Place, *, newest: int | None = None, store_options: StoreOptions | None = None
) -> list[Manifest]:
    """The roots of all versions that `gc` has not removed, or of the last `newest`, the oldest first.

    Costs 1 LIST for each thousand versions, and 1 GET for each one. Raises `NotFound` if there is no context.
    """
    with open_store_at(url, store_options) as store:
        last = read_newest(store)
        if last is None:
            raise NotFound(f"{store.url}: no context there")
        numbers = sorted({*listed_generations(store), last.generation})[-newest if newest else 0 :]

        def read(number: int) -> Manifest | None:
            try:
                return last if number == last.generation else read_generation(store, number)
            except NotFound:  # `gc` has removed it since
                return None

        return [root for root in at_once(read, numbers, _REQUESTS) if root is not None]


def restore(
    url: Place,
    generation: int,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Make the text of an earlier version, with its documents, the newest one, and return the root that was committed.

    The versions in between stay, so a restore can be undone. Frames that the newest version has too keep their objects.
    Others are stored again as they are, since `gc` may be about to remove their objects. Search filters that the newest
    version does not have are made again, which reads their text. `allow`: as for `Monocontext.open`.

    Cost: 1 GET for each index page of both versions, each page of documents, and 8 MiB of frames that are stored again;
    1 PUT for 16 MiB of these and for each page; some 6 requests for the commit. Raises `NotFound` if there is no such
    version, or no longer.
    """
    with open_store_at(url, store_options) as store:

        def change(base: Manifest, store: Staged) -> Manifest:
            try:
                wanted = read_generation(store, generation)
            except NotFound:
                raise NotFound(f"{store.url}: no version {generation}: `history` lists the versions") from None
            with StoredText(store, expanded(store, wanted), allow=allow, store_options=store_options) as text:
                return _restored(text, expanded(store, base))

        return commit_on(store, "to restore", change)


def _restored(text: StoredText, base: Manifest) -> Manifest:
    """The root that follows `base` and has the text of an earlier one."""
    store, wanted = text.store, text.root
    shared = {frame.object for frame in text.after(base).frames(0, base.frames)}
    root = splice(text, *moved_frames(text, lambda frame: frame.object not in shared and "://" not in frame.object))
    kept = {page.id for page in base.pages}
    old = {page.id for page in wanted.pages} - kept
    pages = [replace(page, id=_copy(store, page.key, index_key)) if page.id in old else page for page in root.pages]
    named = {part for ref in base.filters for part in ref.parts}
    root = replace(
        root,
        pages=tuple(pages),
        filters=tuple(ref for ref in wanted.filters if named.issuperset(ref.parts)),
        documents=_copy_documents(store, wanted.documents),
    )
    if len(root.filters) < len(wanted.filters) and wants_filters(root):
        root = covered(text.after(root), gaps(root.filters, root.frames))
    return with_copies(text.after(root), wanted)


def _copy(store: Store, key: str, key_of: Callable[[str], str]) -> str:
    """Copy an object under a new id (1 GET and 1 PUT): `gc` may be about to remove the old one."""
    new = fresh_id()
    store.put(key_of(new), store.get(key).data)
    return new


def _copy_documents(store: Store, ref: DocumentsRef | None) -> DocumentsRef | None:
    """Copy pages of documents and tables of names to new objects."""
    if ref is None:
        return None

    def copy(id: str) -> str:
        return _copy(store, documents_key(id), documents_key)

    held = len(ref.pages) - 1 if ref.last_page is not None else len(ref.pages)
    pages = [replace(page, id=copy(page.id)) if index < held else page for index, page in enumerate(ref.pages)]
    names = [replace(table, id=copy(table.id)) for table in ref.names]
    return DocumentsRef(tuple(pages), ref.last_page, tuple(names), ref.doubled)
