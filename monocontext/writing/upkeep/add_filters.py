"""Add search filters to a context that exists."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from contextlib import closing

from monocontext.errors import NotFound
from monocontext.format.generations import read_newest
from monocontext.format.manifest import Manifest
from monocontext.options import StoreOptions
from monocontext.records import replace
from monocontext.writing.place import Place, open_store_at, portable_place
from monocontext.writing.upkeep.commit_rewrite import commit_rewrite
from monocontext.writing.upkeep.rewrite import Rewrite, conflict_if_replaced, fill_filters, gaps, wants_filters


def add_filters(
    url: Place,
    *,
    rebuild: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] | None = None,
    store_options: StoreOptions | None = None,
    executor: Executor | None = None,
) -> Manifest:
    """Make search filters for those frames of the context at `url` that have none, as a new generation of the text.

    Where every frame has one, and for a text that is too short for filters (fewer than 9 frames, or frames below 512
    bytes), writes nothing and returns the newest root. `rebuild` makes all filters again, where one was lost or
    damaged. `progress` takes the bytes of text read so far.

    `executor`: any `concurrent.futures.Executor`, whose workers then read the text, some 32 MiB at a time, and make the
    filters.

    Reads the text of these frames once, in bounded memory: 1 GET for some 8 MiB stored and for each index page, 1 PUT
    for each 16 MiB of filter, about 6 requests for the commit. `allow`: places outside the context in which text may be
    read, as for `Monocontext.open`; raises `ForeignObject` where one is missing. Safe while readers and appenders run;
    raises `AlreadyExists` when another writer replaced the text or its frames meanwhile.
    """
    with open_store_at(url, store_options) as store:
        newest = read_newest(store)
        if newest is None:
            raise NotFound(f"{store.url}: no context there to add filters to")
        work = Rewrite(
            store,
            allow=allow,
            store_options=store_options,
            progress=progress,
            executor=executor,
            url=portable_place(url),
        )
        with closing(work), conflict_if_replaced(store, newest):
            base = work.expand(newest)
            bare = replace(base, filters=()) if rebuild else base
            if not wants_filters(base) or not any(gaps(bare.filters, 0, base.frames)):
                return newest
            return commit_rewrite(work, base, fill_filters(work, bare), filters=True)
