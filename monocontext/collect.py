"""Removing what no generation names any more.

Objects are never changed and never owned by one generation: which of them are needed is found by reading the roots that
are kept. Invariants:
- the newest root, that of `manifest.json`, and every root that was the newest one within the grace period stay, with
  all that they name;
- nothing younger than the grace period goes: a writer that has not committed yet may have put it there;
- roots go before objects: a root that is there names only what is there;
- a root or page that is kept and cannot be read stops it before anything is removed;
- keys that are not of a shape that `docs/format.md` gives are not ours, and are not touched.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from monocontext.errors import NotAContext, NotFound
from monocontext.index import Page
from monocontext.manifest import ROOT_KEY, Manifest, PageRef
from monocontext.store import ObjectInfo, Store, seconds_now
from monocontext.writer import Place, opened

OLDER_THAN_SECONDS = 7 * 86400
SAFE_SECONDS = 2 * 86400
"""The least grace beside writers: an upload takes segments for its own that are up to a day old
(`segments.REUSE_SECONDS`), and may itself go on for a day before it commits."""
REQUESTS = 16
"""Requests at once."""

_ROOT = re.compile(r"generations/(\d{20})\.json")
_OBJECT = re.compile(r"segments/[0-9a-f]{32}\.seg|index/[0-9a-f]{32}\.idx|filters/[0-9a-f]{32}\.flt")
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class Collected:
    """What a collection removed, or with `dry_run` would remove."""

    url: str
    dry_run: bool
    kept_generations: int
    generations: int
    """Roots that were removed."""
    segments: int
    pages: int
    filters: int
    bytes: int
    """Size of all that was removed."""

    @property
    def objects(self) -> int:
        return self.generations + self.segments + self.pages + self.filters


def gc(
    url: Place,
    *,
    older_than_seconds: float = OLDER_THAN_SECONDS,
    dry_run: bool = False,
    progress: Callable[[int], None] | None = None,
    store_options: dict[str, Any] | None = None,
) -> Collected:
    """Remove what no generation of the last `older_than_seconds` names; with `dry_run` only say what that is.

    A generation goes when its successor was stored longer ago than that, so the newest always stays; a segment, page or
    filter goes when no remaining generation names it and it is itself older. Ages are by the store's clock: a machine
    whose own is days ahead would else take what a writer has just stored. `progress` takes the bytes of the objects
    removed so far.

    Safe beside readers of generations that stay, and beside writers that take less than the grace period; with less
    than two days only while no writer is at work (`SAFE_SECONDS`). After a crash, run again, it goes on.

    Raises `NotFound` where no context is, `DamagedData` when a root or page that stays cannot be read: nothing is
    removed then. Cost: 1 LIST for each thousand objects, 1 GET for each generation and each different page that stays
    (none for a page that its root holds a copy of), 2 requests for each object that is removed, 1 for each root.
    """
    if not older_than_seconds >= 0:
        raise ValueError(f"older_than_seconds is at least 0, not {older_than_seconds}")
    with opened(url, store_options) as store, ThreadPoolExecutor(REQUESTS) as threads:
        objects = list(_objects(store))
        cutoff = seconds_now(store, max((info.now_seconds for info in objects), default=0.0)) - older_than_seconds
        old = [info for info in objects if info.modified_seconds < cutoff]
        roots = {int(found[1]): info for info in store.list("generations/") if (found := _ROOT.fullmatch(info.key))}
        pointed = _pointed(store)
        if not pointed and not roots:
            raise NotFound(f"no context at {store.url} (no {ROOT_KEY} there)")
        superseded = _superseded(roots, cutoff) - {root.generation for root, _ in pointed}
        kept = list(threads.map(lambda number: _root(store, roots[number].key), sorted(roots.keys() - superseded)))
        named = _named(store, [*pointed, *kept], threads)
        unnamed = [info for info in old if _id_of(info) not in named]
        gone = [roots[n] for n in sorted(superseded)]
        if not dry_run:
            gone, unnamed = _removed(store, gone, unnamed, cutoff, threads, progress)
        kinds = Counter(info.key.partition("/")[0] for info in unnamed)
        size = sum(info.size_bytes for info in [*gone, *unnamed])
        of_kinds = (kinds["segments"], kinds["index"], kinds["filters"])
        return Collected(store.url, dry_run, len(kept), len(gone), *of_kinds, size)


def _objects(store: Store) -> Iterator[ObjectInfo]:
    """What writers store before they commit, by the shape of its key."""
    for folder in ("segments/", "index/", "filters/"):
        yield from (info for info in store.list(folder) if _OBJECT.fullmatch(info.key))


def _id_of(info: ObjectInfo) -> str:
    return info.key.partition("/")[2][:32]


def _superseded(roots: dict[int, ObjectInfo], cutoff: float) -> set[int]:
    """Generations that another one followed before the cutoff."""
    neighbours = pairwise(sorted(roots))
    return {number for number, successor in neighbours if roots[successor].modified_seconds < cutoff}


# -- what the rest names -----------------------------------------------------------------------------------------------


def _pointed(store: Store) -> list[tuple[Manifest, set[str]]]:
    """The root that readers open: it may lag behind the newest generation by a crash, and is needed all the same."""
    try:
        return [_root(store, ROOT_KEY)]
    except NotAContext:
        raise
    except NotFound:
        return []


def _root(store: Store, key: str) -> tuple[Manifest, set[str]]:
    """A root, and whatever in it looks like an id: fields and filters of a later version name objects too."""
    data = store.get(key).data
    return Manifest.from_bytes(data, f"{store.url}/{key}"), set(_ID.findall(json.dumps(json.loads(data))))


def _named(store: Store, roots: list[tuple[Manifest, set[str]]], threads: Executor) -> set[str]:
    """Ids of all objects that some roots name, themselves or in their pages."""
    named: set[str] = set()
    pages: dict[str, tuple[PageRef, PageRef | None, bytes | None]] = {}
    for root, ids in roots:
        named |= ids
        for ref, before in zip(root.pages, (None, *root.pages), strict=False):
            copy = root.last_page if ref is root.pages[-1] else None
            if copy or ref.id not in pages:
                pages[ref.id] = ref, before, copy

    def segments(page: tuple[PageRef, PageRef | None, bytes | None]) -> set[str]:
        ref, before, copy = page
        data = copy or store.get(ref.key).data
        return {name for run in Page(data, ref, before).runs for name in _ID.findall(run.object)}

    return named.union(*threads.map(segments, pages.values()))


# -- removing ----------------------------------------------------------------------------------------------------------


def _removed(
    store: Store,
    roots: list[ObjectInfo],
    objects: list[ObjectInfo],
    cutoff: float,
    threads: Executor,
    progress: Callable[[int], None] | None,
) -> tuple[list[ObjectInfo], list[ObjectInfo]]:
    """Remove roots, and then objects, and return what was removed of each."""

    def remove(info: ObjectInfo) -> bool:
        """Unless it was stored again meanwhile, by an upload of the same text that is under way."""
        try:
            if store.head(info.key).modified_seconds >= cutoff:
                return False
        except NotFound:
            return False
        store.delete(info.key)
        return True

    for _ in threads.map(lambda info: store.delete(info.key), roots):
        pass
    gone, removed_bytes = [], sum(info.size_bytes for info in roots)
    for info, removed in zip(objects, threads.map(remove, objects), strict=True):
        if removed:
            gone.append(info)
            removed_bytes += info.size_bytes
            if progress:
                progress(removed_bytes)
    return roots, gone
