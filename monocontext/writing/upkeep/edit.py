"""Replace and delete documents of a context, as its next generation.

Only frames with changed text are stored again. Index pages and pages of documents without a change keep their objects.
Search filters keep the columns of frames whose text, and the text right after them, did not change. Readers keep the
generation that they opened. If another writer commits first, the edit is made again on the root of that writer.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from typing import Any

from monocontext.errors import InvalidText, NotFound
from monocontext.format.documents import encode_metadata
from monocontext.format.generations import read_newest
from monocontext.format.manifest import Manifest, generation_key
from monocontext.globs import Globs
from monocontext.options import StoreOptions
from monocontext.records import replace as changed
from monocontext.stores.disk.cache import DiskCache
from monocontext.stores.protocol import Store, seconds_now
from monocontext.writing.documents import DocumentInputs
from monocontext.writing.documents import documents as as_inputs
from monocontext.writing.input_options import InputOptions
from monocontext.writing.inputs import read_pieces
from monocontext.writing.place import Place, open_store_at
from monocontext.writing.publish import append
from monocontext.writing.segments import SegmentLayout
from monocontext.writing.tail import Pieces
from monocontext.writing.upkeep.commit_rewrite import commit_change, with_copies
from monocontext.writing.upkeep.edited_documents import load_documents, write_documents
from monocontext.writing.upkeep.edited_filters import keep_filters
from monocontext.writing.upkeep.edited_index import changed_root
from monocontext.writing.upkeep.edited_text import Change, group, places_of, store_frames, with_shared_objects
from monocontext.writing.upkeep.gc import gc
from monocontext.writing.upkeep.rewrite import Rewrite, fill_filters, wants_filters

_READ_CACHE_BYTES = 64 << 20
"""The cache of the reader of the old text."""
_LOOK_SECONDS = 0.1
"""The pause between two looks at the clock of the store."""


Changes = Callable[[Sequence[bytes]], Mapping[int, Change]]
"""Returns the changes by the number of the document, given the names of all documents in order."""


def replace(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the texts of documents in the context at `url`, found by name, and return the committed root.

    `documents` is a mapping of name to text, or an iterable of (name, text) and (name, text, metadata); a text is a
    `str` or the path of a file. Without metadata, those of the document stay. Of several documents with one name the
    last is replaced. The result is the text that `publish` makes of the same documents. The new texts are kept in
    memory. `allow`: as for `Monocontext.open`.

    Raises `NotFound`, and changes nothing, if a name is missing (`update` appends missing ones). Earlier generations
    stay readable until `gc` removes them. The bytes written grow with the size of the change.

    Cost: 1 GET a page of 4096 documents, 1 for each index page and each range of frames that changes; 1 PUT for 16 MiB
    of new frames, for each index page and each page of documents with a change; about 6 requests for the commit. Two
    writers at once both succeed.
    """
    given = _texts_of(documents)

    def changes(names: Sequence[bytes]) -> Mapping[int, Change]:
        found, missing = _split(given, names)
        if missing:
            more = f" and {len(missing) - 1:,} more" if len(missing) > 1 else ""
            raise NotFound(f"no document {next(iter(missing))!r}{more} to replace: `update` adds new ones")
        return found

    return edit(url, changes, allow, store_options)


def update(
    url: Place,
    documents: Mapping[str, str] | Iterable[Any],
    *,
    allow: Iterable[str | os.PathLike[str]] = (),
    store_options: StoreOptions | None = None,
) -> Manifest:
    """Replace the documents whose names exist, and append the others, in one generation each; returns the last root.

    Parameters and cost as for `replace`, and those of `append`.
    """
    given = _texts_of(documents)
    added: dict[str, Change] = {}

    def changes(names: Sequence[bytes]) -> Mapping[int, Change]:
        nonlocal added
        found, added = _split(given, names)
        return found

    root = edit(url, changes, allow, store_options)
    if not added:
        return root
    new = [(name, change.text, _metadata_of(change)) for name, change in added.items()]
    return append(as_inputs(new), url, store_options=store_options)


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

    `names` is a name or a glob, or an iterable of names. All documents with such a name are deleted, and the ones after
    them get new numbers. The header line before a file of a folder is deleted with it, unless the upload set another
    `header`. Earlier generations keep the text until `gc` removes them. Parameters and cost as for `replace`; with
    more than 4096 documents, also a table of names, 16 bytes a document.

    `forget`: leave the text in no object below `url`. Frames that share a segment with it are stored again, and `gc`
    without a grace period removes earlier generations; readers of these fail at their next read of a removed object. If
    that `gc` did not finish, run it again. `find_leftovers` proves the result. `cache_dir`: a folder in which readers
    on this machine cache data (`Monocontext.open`), which is emptied too. Copies in other places remain, such as caches
    of other machines and old versions that the bucket keeps.

    Raises `NotFound`, and changes nothing, if no document has such a name.
    """
    if isinstance(names, bytes) or not isinstance(names, Iterable):
        raise TypeError(f"names must be a name, a glob or an iterable of names, not {type(names).__name__}")
    wanted = [names] if isinstance(names, str) else list(dict.fromkeys(names))
    if wrong := [name for name in wanted if not isinstance(name, str)]:
        raise TypeError(f"the name of a document must be a str, not {type(wrong[0]).__name__}: {str(wrong[0])[:80]!r}")
    is_glob = isinstance(names, str)

    def changes(there: Sequence[bytes]) -> Mapping[int, Change]:
        exact = {name.encode("utf-8", "surrogatepass") for name in wanted}
        found = {number: Change(None) for number, name in enumerate(there) if name in exact}
        if is_glob and not found and not wanted[0].startswith("!"):
            select = Globs(wanted).select
            found = {number: Change(None) for number, name in enumerate(there) if select(name.decode())}
        if is_glob and not found:
            raise NotFound(f"no document is named {wanted[0]!r} or matches that glob")
        if missing := sorted(exact - {there[number] for number in found}) if not is_glob else []:
            raise NotFound(f"no document {missing[0].decode(errors='replace')!r} to delete")
        return found

    if cache_dir is not None and not forget:
        raise ValueError("cache_dir needs forget=True")
    root = edit(url, changes, allow, store_options, forget)
    if forget:
        with open_store_at(url, store_options) as store:
            _wait_for_clock(store, root.generation)
            gc(store, older_than_seconds=0)
        if cache_dir is not None:
            DiskCache(cache_dir).clear()
    return root


def _wait_for_clock(store: Store, generation: int) -> None:
    """Wait until a commit is in the past by the store's clock, which may count whole seconds. Then `gc` without a grace
    period removes all that is older."""
    while committed := next(iter(store.list(generation_key(generation))), None):  # as `gc` looks at it
        if seconds_now(store, committed.now_seconds) > committed.modified_seconds:
            return
        time.sleep(_LOOK_SECONDS)


# -- the arguments -----------------------------------------------------------------------------------------------------


def _texts_of(documents: Mapping[str, str] | Iterable[Any]) -> dict[str, Change]:
    """The new texts by name, read from files if they are paths. Raises `InvalidText` or `TypeError`."""
    if isinstance(documents, str | bytes) or not isinstance(documents, Iterable | DocumentInputs):
        raise TypeError(
            f"documents must be a mapping of name to text, or (name, text) tuples, not {type(documents).__name__}"
        )
    items = documents.items if isinstance(documents, DocumentInputs) else as_inputs(documents).items
    found: dict[str, Change] = {}
    for number, item in enumerate(items):
        if not (isinstance(item, tuple) and len(item) in (2, 3) and isinstance(item[0], str)):
            raise InvalidText(f"document {number}: expected (name, text) or (name, text, metadata)")
        name, text = item[0], item[1]
        if not isinstance(text, str | os.PathLike):
            raise InvalidText(
                f"document {number} ({name!r}): its text must be a str or a path, not {type(text).__name__}"
            )
        text = b"".join(read_pieces(text if isinstance(text, str) else [text], InputOptions())).decode()
        metadata = encode_metadata(item[2], number) if len(item) == 3 and item[2] is not None else None
        found[name] = Change(text, metadata)
    return found


def _split(given: Mapping[str, Change], names: Sequence[bytes]) -> tuple[dict[int, Change], dict[str, Change]]:
    """Split changes into those of existing documents, by number, and the others, by name."""
    wanted = {name.encode("utf-8", "surrogatepass"): name for name in given}
    last = {wanted[name]: number for number, name in enumerate(names) if name in wanted}
    found: dict[int, Change] = {}
    missing: dict[str, Change] = {}
    for name, change in given.items():
        number = last.get(name)
        if number is None:
            missing[name] = change
        else:
            found[number] = change
    return found, missing


def _metadata_of(change: Change) -> Any:
    import json

    return json.loads(change.metadata) if change.metadata else None


# -- the edit ----------------------------------------------------------------------------------------------------------


def edit(
    url: Place,
    changes: Changes,
    allow: Iterable[str | os.PathLike[str]],
    store_options: StoreOptions | None,
    forget: bool = False,
) -> Manifest:
    """Commit changes of documents, and return the root. With `forget`, no object keeps a frame with changed text."""
    with open_store_at(url, store_options) as store:
        newest = read_newest(store)
        if newest is None:
            raise NotFound(f"{store.url}: no context there to change: `upload` makes one")
        work = Rewrite(store, allow=allow, store_options=store_options, cache_bytes=_READ_CACHE_BYTES)
        with closing(work):
            return commit_change(store, newest, lambda base: _edited(work, work.expand(base), changes, forget))


def _edited(work: Rewrite, base: Manifest, changes: Changes, forget: bool) -> Manifest | None:
    """The root to commit on `base`; None if nothing changes."""
    pages = load_documents(work.store, base.documents)
    names = [page.raw_name(i) for page in pages for i in range(len(page))]
    wanted = changes(names)
    if not wanted:
        return None
    places = places_of(pages, wanted, base.characters)
    with work.text(base) as text:
        stretches = group(text, places)
        if forget:
            stretches = with_shared_objects(text, stretches)
        pieces = Pieces(work.store, SegmentLayout(base.frame_bytes, codec=base.codec))
        runs = store_frames(text, pieces, stretches)
        filters, is_lost = keep_filters(text, stretches)
        table = write_documents(work.store, base, pages, wanted, stretches)
        root = changed_root(work, text, stretches, runs, filters=filters, documents=table)
    if is_lost:
        root = fill_filters(work, root) if wants_filters(root) else changed(root, filters=())
    root = with_copies(work, root, root)
    root.check()
    return root
