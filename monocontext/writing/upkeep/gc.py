"""Remove old generations, and the objects that no remaining generation names.

Invariants:

- the root in `manifest.json`, all roots after it (which lead writers to the newest one), and each root that was the
  newest within the grace period stay, with all objects that they name; if one cannot be read, nothing is removed
- nothing younger than the grace period is removed: a writer that has not committed yet may have stored it
- no name is used twice, so a DELETE that arrives late finds the object that was checked, or nothing
- roots are removed before objects: a root that exists names only objects that exist
- objects whose keys do not have the form of `docs/format.md` stay; unfinished files are removed by their own age
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from itertools import pairwise

from monocontext.errors import NotFound, StoreFailure
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, History, Manifest, find_root, generation_in
from monocontext.format.refs import FOLDERS, OBJECT, id_in
from monocontext.options import StoreOptions, check_seconds
from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores import Place, open_store_at
from monocontext.stores.protocol import ObjectInfo, Store, innermost, seconds_now
from monocontext.writing.commit import commit_at
from monocontext.writing.pages import NamedPage, ids_in_page, ids_in_root

OLDER_THAN_SECONDS = 7 * 86400  # the age of the objects that `gc` removes: a week
SAFE_SECONDS = 2 * 86400
"""The shortest grace period that needs no fence: an upload may run for two days before it commits."""
_REQUESTS_AT_ONCE = 16


@dataclass(frozen=True, slots=True)
class Collected:
    """The objects that `gc` removed, or with `dry_run` would remove."""

    url: str
    dry_run: bool
    kept_generations: int
    generations: int  # removed roots; the next three are other objects
    segments: int
    pages: int
    filters: int
    bytes: int  # the size of all that was removed
    temporaries: int = 0  # unfinished files of writers that were killed, in a directory
    documents: int = 0  # pages of documents, and tables of their names

    @property
    def objects(self) -> int:
        return self.generations + self.segments + self.pages + self.filters + self.documents


def gc(
    url: Place,
    *,
    older_than_seconds: float = OLDER_THAN_SECONDS,
    dry_run: bool = False,
    progress: Callable[[int], None] = lambda removed_bytes: None,
    store_options: StoreOptions | None = None,
) -> Collected:
    """Remove old generations and the objects that only they name. Returns what was removed, or with `dry_run` would be.

    A generation is removed if its successor was stored more than `older_than_seconds` ago, so the newest always stays.
    Another object is removed if no remaining generation names it and it is that old too. Ages are by the store's clock.
    `progress` is called with the bytes of the objects removed so far.

    Safe while writers and readers of the remaining generations run. With a grace period below two days (`SAFE_SECONDS`)
    it first commits the newest text once more, as a fence: short appends and edits that are not committed yet store
    their text again; a longer append and `publish` raise `AlreadyExists`, and change nothing.

    Raises `NotFound` if there is no context, and `DamagedData` before anything is removed if a root or page that stays
    cannot be read. Cost: 1 LIST per 1,000 objects of each kind, 1 GET per generation, directory and index page that
    stays, 1 DELETE per removed object.
    """
    check_seconds("older_than_seconds", older_than_seconds)
    with open_store_at(url, store_options) as store, ThreadPoolExecutor(_REQUESTS_AT_ONCE) as threads:
        objects = [info for folder in FOLDERS for info in store.list(folder) if OBJECT.fullmatch(info.key)]
        cutoff = seconds_now(store, max((info.now_seconds for info in objects), default=0.0)) - older_than_seconds
        old = [info for info in objects if info.modified_seconds < cutoff]
        garbage = _find_garbage(store, old, threads, lambda roots: _find_superseded(roots, cutoff))
        if garbage.needs_fence and older_than_seconds < SAFE_SECONDS and not dry_run:
            _commit_fence(store)
            chosen = garbage.roots.keys()
            garbage = _find_garbage(store, old, threads, lambda roots: chosen & roots.keys())
        if not dry_run:
            _remove(store, garbage, threads, progress)
        temporaries, temporary_bytes = innermost(store).sweep(cutoff, dry_run=dry_run)
        kinds = Counter(info.key.partition("/")[0] for info in garbage.objects)
        return Collected(
            store.url,
            dry_run,
            kept_generations=garbage.kept_generations,
            generations=len(garbage.roots),
            segments=kinds["segments"],
            pages=kinds["index"],
            filters=kinds["filters"],
            bytes=sum(info.size_bytes for info in [*garbage.roots.values(), *garbage.objects]) + temporary_bytes,
            temporaries=temporaries,
            documents=kinds["documents"],
        )


_Roots = dict[int, ObjectInfo]  # the stored roots by generation


@dataclass(frozen=True, slots=True)
class _Garbage:
    """What to remove from a context."""

    roots: _Roots
    objects: list[ObjectInfo]  # other objects
    kept_generations: int
    needs_fence: bool  # whether a writer that has not committed yet may need any of it


def _find_superseded(roots: _Roots, cutoff: float) -> set[int]:
    """The generations whose successor was stored before the cutoff."""
    return {number for number, successor in pairwise(sorted(roots)) if roots[successor].modified_seconds < cutoff}


def _find_garbage(
    store: Store, old: list[ObjectInfo], threads: Executor, choose: Callable[[_Roots], set[int]]
) -> _Garbage:
    """The generations that `choose` returns, if they are before that of `manifest.json`, and the objects among `old`
    that no other generation names."""
    while True:
        roots = _list_roots(store)
        try:
            return _garbage_among(store, roots, old, threads, choose(roots))
        except NotFound:
            if roots.keys() <= _list_roots(store).keys():
                raise
            # Another `gc` removed a generation meanwhile, and objects that only it names: look again.


def _garbage_among(store: Store, roots: _Roots, old: list[ObjectInfo], threads: Executor, chosen: set[int]) -> _Garbage:
    """`_find_garbage` for these roots, without a retry. Raises `NotFound` if an object that stays is missing."""
    kept: list[_StoredRoot] = []
    with suppress(NotFound):  # missing after a crash: then readers open the newest generation
        kept.append(_read_root(store, ROOT_KEY))
    if not kept and not roots:
        raise NotFound(f"no context at {store.url}: nothing to remove")
    current = kept[0].manifest.generation if kept else max(roots)  # the generation that readers open
    gone = {number for number in chosen if number < current}
    staying = sorted(roots.keys() - gone)
    kept += threads.map(lambda number: _read_root(store, roots[number].key), staying)
    pages: dict[str, NamedPage] = {}
    for root in kept:
        for page in root.pages:
            if page.copy or page.ref.id not in pages:  # a page with a copy in its root costs no request
                pages[page.ref.id] = page
    named = set().union(*(root.ids for root in kept), *threads.map(partial(ids_in_page, store), pages.values()))
    unnamed = [info for info in old if id_in(info.key) not in named]
    newest = max((root.manifest for root in kept), key=lambda manifest: manifest.generation)
    # A writer that has not committed yet may name an unnamed object, or begin from a root at or above the floor.
    is_unsafe = bool(unnamed) or any(number >= newest.history.floor for number in gone)
    needs_fence = is_unsafe or current < newest.generation  # a fence also updates `manifest.json`
    return _Garbage({number: roots[number] for number in sorted(gone)}, unnamed, len(staying), needs_fence)


def _list_roots(store: Store) -> _Roots:
    infos = store.list("generations/")
    return {number: info for info in infos if (number := generation_in(info.key)) is not None}


class _StoredRoot(NamedTuple):
    manifest: Manifest
    ids: set[str]  # of the objects that it and its directories name
    pages: list[NamedPage]


def _read_root(store: Store, key: str) -> _StoredRoot:
    data = store.get(key, most_bytes=MOST_ROOT_BYTES).data
    root = Manifest.from_bytes(data, f"{store.url}/{key}")
    return _StoredRoot(root, *ids_in_root(store, root, data))


def _commit_fence(store: Store) -> None:
    """Commit the newest text once more. Writers that find this fence store their objects again, or raise an error."""

    def fence(base: Manifest, _: Store) -> Manifest:
        number = base.generation + 1
        return replace(base, history=History(floor=number, fence=number))

    root = commit_at(store, None, "remove objects from", fence)
    if find_root(store).manifest.generation < root.generation:
        raise StoreFailure(f"{store.url}: {ROOT_KEY} could not be updated, so nothing was removed: try again")


def _remove(store: Store, garbage: _Garbage, threads: Executor, progress: Callable[[int], None]) -> None:
    """Remove the roots, then the objects, so that a root that exists names only objects that exist."""
    removed_bytes = 0
    for infos in (list(garbage.roots.values()), garbage.objects):
        for info, _ in zip(infos, threads.map(lambda info: store.delete(info.key), infos), strict=True):
            removed_bytes += info.size_bytes
            progress(removed_bytes)
