"""Remove old generations, and the objects that no remaining generation names.

Invariants:

- the newest root, the one in `manifest.json`, and each one that was the newest within the grace period stay, with all
  objects that they name; if one of them cannot be read, nothing is removed
- nothing younger than the grace period is removed: a writer that has not committed yet may have stored it
- no name is stored twice, so a DELETE that arrives late finds the object that was checked, or nothing
- roots are removed before objects: a root that exists names only objects that exist
- objects whose keys do not have the form of `docs/format.md` stay; unfinished files are removed by their own age
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from itertools import pairwise

from monocontext.errors import NotFound, StoreFailure
from monocontext.format.manifest import MOST_ROOT_BYTES, ROOT_KEY, History, Manifest, find_root, generation_in
from monocontext.options import StoreOptions, check_seconds
from monocontext.records import dataclass, replace
from monocontext.stores.protocol import ObjectInfo, Store, StoreBase, get_bounded, innermost, seconds_now
from monocontext.writing.commit import Place, commit_at, open_store_at
from monocontext.writing.pages import FOLDERS, OBJECT, NamedPage, id_in, ids_in_page, ids_in_root

OLDER_THAN_SECONDS = 7 * 86400  # the age of the objects that `gc` removes: a week
SAFE_SECONDS = 2 * 86400
"""The shortest grace period that needs no fence: an upload may run for two days before it commits."""
REQUESTS = 16  # the number of requests at once


@dataclass(frozen=True, slots=True)
class Collected:
    """The objects that `gc` removed, or with `dry_run` would remove."""

    url: str
    dry_run: bool
    kept_generations: int
    generations: int
    """The number of removed roots; the next fields count other objects."""
    segments: int
    pages: int
    filters: int
    bytes: int
    """Size of all that was removed."""
    temporaries: int = 0
    """Unfinished files of killed writers, in a directory."""
    documents: int = 0
    """Pages of documents, and tables of their names."""

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

    A generation is removed if its successor was stored more than `older_than_seconds` ago, so the newest always stays;
    another object if no remaining generation names it and it is that old too. Ages are by the store's clock. `progress`
    takes the bytes of the objects removed so far.

    Safe while readers of kept generations, and writers, run. With a grace period below two days (`SAFE_SECONDS`) it
    first commits the newest text once more, as a fence: short appends and edits that are not committed yet store their
    text again; a longer append and `publish` raise `AlreadyExists`, and change nothing.

    Raises `NotFound` if there is no context, and `DamagedData` before anything is removed if a root or page that stays
    cannot be read. Cost: 1 LIST for each kind and thousand objects, 1 GET for each generation, its directories, and
    each page that stays, 1 request for each removed object.
    """
    check_seconds("older_than_seconds", older_than_seconds)
    with ExitStack() as stack:
        store = stack.enter_context(open_store_at(url, store_options))
        # one thread for a directory: more would wait for the lock of a folder, in steps of some milliseconds
        is_near = isinstance(store, StoreBase) and store.is_near
        threads = stack.enter_context(ThreadPoolExecutor(1 if is_near else REQUESTS))
        objects = [info for folder in FOLDERS for info in store.list(folder) if OBJECT.fullmatch(info.key)]
        cutoff = seconds_now(store, max((info.now_seconds for info in objects), default=0.0)) - older_than_seconds
        old = [info for info in objects if info.modified_seconds < cutoff]
        gone, garbage, live, needs_fence = _garbage(store, old, threads, partial(_superseded, cutoff=cutoff))
        if older_than_seconds < SAFE_SECONDS and not dry_run and needs_fence:
            _commit_fence(store)
            gone, garbage, live, _ = _garbage(store, old, threads, lambda roots: gone.keys() & roots.keys())
        roots, removed_bytes = list(gone.values()), 0
        for some in (roots, garbage) if not dry_run else ():  # a root that exists names objects that exist
            for info, _ in zip(some, threads.map(lambda info: store.delete(info.key), some), strict=True):
                removed_bytes += info.size_bytes
                progress(removed_bytes)
        kinds = Counter(info.key.partition("/")[0] for info in garbage)
        temporaries, size = innermost(store).sweep(cutoff, dry_run=dry_run)
        return Collected(
            store.url,
            dry_run,
            kept_generations=live,
            generations=len(roots),
            segments=kinds["segments"],
            pages=kinds["index"],
            filters=kinds["filters"],
            bytes=size + sum(info.size_bytes for info in [*roots, *garbage]),
            temporaries=temporaries,
            documents=kinds["documents"],
        )


_Roots = dict[int, ObjectInfo]


_Garbage = tuple[_Roots, list[ObjectInfo], int, bool]
"""The roots, by generation, and the objects to remove; how many roots stay; whether a fence must come first."""


def _garbage(store: Store, old: list[ObjectInfo], threads: Executor, choose: Callable[[_Roots], set[int]]) -> _Garbage:
    """The generations that `choose` returns, given all of them, and those of the `old` objects that no other generation
    names. The root in `manifest.json` stays: it may lag after a crash, but readers open it."""
    while True:
        roots = _list_roots(store)
        try:
            current = []
            with suppress(NotFound):
                current.append(_read_root(store, ROOT_KEY))
            if not current and not roots:
                raise NotFound(f"no context at {store.url}: nothing to remove")
            gone = choose(roots) - {root.generation for root, _, _ in current}
            live = list(threads.map(partial(_read_root, store), (roots[n].key for n in sorted(roots.keys() - gone))))
            pages = {page[0].id: page for _, _, some in [*current, *live] for page in some}
            pages |= {page[0].id: page for _, _, some in [*current, *live] for page in some if page[2]}  # copies
            named = set().union(*(ids for _, ids, _ in [*current, *live]))
            named.update(*threads.map(partial(ids_in_page, store), pages.values()))
            break
        except NotFound:
            if roots.keys() <= _list_roots(store).keys():
                raise  # else another `gc` has removed a generation, with the objects that only it names
    newest = max((root for root, _, _ in [*current, *live]), key=lambda root: root.generation)
    unnamed = [info for info in old if id_in(info.key) not in named]
    needs_fence = bool(unnamed) or any(number >= newest.history.floor for number in gone)
    return {number: roots[number] for number in sorted(gone)}, unnamed, len(live), needs_fence


def _list_roots(store: Store) -> _Roots:
    infos = list(store.list("generations/"))
    return {number: info for info in infos if (number := generation_in(info.key)) is not None}


def _superseded(roots: _Roots, *, cutoff: float) -> set[int]:
    """Generations whose successor was stored before the cutoff."""
    return {number for number, successor in pairwise(sorted(roots)) if roots[successor].modified_seconds < cutoff}


def _commit_fence(store: Store) -> None:
    """Commit the newest text once more, as a fence: writers that stored objects before it find it when they commit, and
    store them again under new names, or give up."""

    def fence(base: Manifest, _: Store) -> Manifest:
        number = base.generation + 1
        return replace(base, history=History(floor=number, fence=number))

    root = commit_at(store, None, "to remove objects from", fence)
    if find_root(store).manifest.generation < root.generation:
        raise StoreFailure(f"{store.url}: {ROOT_KEY} could not be updated: nothing was removed")


def _read_root(store: Store, key: str) -> tuple[Manifest, set[str], list[NamedPage]]:
    """A root, the ids in it and in its directories, and its index pages."""
    data = get_bounded(store, key, MOST_ROOT_BYTES).data
    root = Manifest.from_bytes(data, f"{store.url}/{key}")
    return root, *ids_in_root(store, root, data)
