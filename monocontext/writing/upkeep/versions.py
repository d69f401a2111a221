"""List the versions of a context, and make an earlier one the newest again."""

from __future__ import annotations

import os
from collections.abc import Iterable

from monocontext.errors import NotFound
from monocontext.format.manifest import Manifest, listed_generations, read_generation, read_newest
from monocontext.options import StoreOptions
from monocontext.stores import Place, open_store_at
from monocontext.stores.parallel import at_once
from monocontext.writing.commit import Staged, commit_at
from monocontext.writing.documents import READ_AT_ONCE, change_documents, load_documents
from monocontext.writing.splice import add_copies, add_filter, copy_frames, find_gaps, splice, wants_filters
from monocontext.writing.stored_text import StoredText, expanded


def list_versions(
    url: Place, *, newest: int | None = None, store_options: StoreOptions | None = None
) -> list[Manifest]:
    """The roots of all versions that `gc` has not removed, or only of the last `newest` (at least 1), oldest first
    (1 LIST per 1,000 versions, 1 GET each). Raises `NotFound` if there is no context."""
    if newest is not None and newest < 1:
        raise ValueError(f"newest must be at least 1, not {newest}")
    with open_store_at(url, store_options) as store:
        last = read_newest(store)
        if last is None:
            raise NotFound(f"no context at {store.url}: no text is stored there")
        numbers = sorted({*listed_generations(store), last.generation})
        if newest is not None:
            numbers = numbers[-newest:]

        def load(number: int) -> Manifest | None:
            try:
                return last if number == last.generation else read_generation(store, number)
            except NotFound:  # `gc` has removed it since
                return None

        return [root for root in at_once(load, numbers, READ_AT_ONCE) if root is not None]


def restore(
    url: Place,
    generation: int,
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Commit the text and the documents of an earlier version as a new generation, and return its root.

    The versions in between stay, so a restore can be undone. Frames that the newest version lacks, their filters, and
    all pages are stored again, since `gc` may be about to remove their objects. `allow`: as for `Monocontext.open`.

    Cost: 1 GET per index page of both versions, page of documents, and 8 MiB of frames that are stored again; 1 PUT
    per 16 MiB of these and per page; 6 requests for the commit. Raises `NotFound` for a version that is gone.
    """

    def change(base: Manifest, store: Staged) -> Manifest:
        try:
            earlier = read_generation(store, generation)
        except NotFound:
            raise NotFound(f"{store.url}: no version {generation}: `monocontext history` lists the versions") from None
        if generation < base.history.forgotten:
            raise NotFound(f"{store.url}: version {generation} cannot be restored: its text has since been forgotten")
        with StoredText(store, expanded(store, earlier), allow=allow, store_options=store_options) as text:
            return _restored(text, expanded(store, base))

    return commit_at(url, store_options, "restore", change)


def _restored(text: StoredText, base: Manifest) -> Manifest:
    """The root that restores the text of an earlier version, to be committed after `base`."""
    store, earlier = text.store, text.root
    living = {frame.object for frame in text.after(base).frames(0, base.frames)}  # `gc` may be removing others
    stretches, new = copy_frames(text, lambda frame: frame.object not in living and "://" not in frame.object)
    if documents := earlier.documents:
        documents = change_documents(store, documents, load_documents(store, documents), {}, {}, all_pages=True)
    living_parts = {part for ref in base.filters for part in ref.parts}
    filters = tuple(ref for ref in earlier.filters if living_parts.issuperset(ref.parts))
    root = splice(text, stretches, new, all_pages=True, documents=documents, filters=filters)
    if len(filters) < len(earlier.filters) and wants_filters(root):
        root = add_filter(text.after(root), find_gaps(filters, root.frames))
    return add_copies(text.after(root), earlier)
