"""Search filters for a text that is stored already."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable
from typing import Any

from monocontext.errors import NotFound
from monocontext.generations import newest
from monocontext.manifest import Manifest
from monocontext.opening import Opened
from monocontext.rework import Rework, commit_reworked, filled, gaps, wants_filters
from monocontext.writer import Place, opened


def add_filters(
    url: Place,
    *,
    rebuild: bool = False,
    allow: Iterable[str | os.PathLike[str]] = (),
    progress: Callable[[int], None] | None = None,
    store_options: dict[str, Any] | None = None,
) -> Manifest:
    """Give search filters to those frames of the context at `url` that have none, as a new generation of the same text.

    Where all have theirs, and for a text that is too short for filters (fewer than 9 frames, or frames below 512
    bytes), this is the newest root and nothing is written. `rebuild`: make those that are there anew, too: one was lost
    or damaged. `progress` takes the bytes of text read so far.

    Reads that text once, in bounded memory: 1 GET for some 8 MiB stored and for each index page, 1 PUT for each 16 MiB
    of filter, about 6 requests for the commit. `allow`: places outside the context in which text may be read, as for
    `Monocontext.open`; raises `ForeignObject` where one is missing. Safe beside readers and appenders; raises
    `AlreadyExists` when another writer replaced the text or its frames meanwhile.
    """
    with opened(url, store_options) as store:
        base = newest(store)
        if base is None:
            raise NotFound(f"{store.url}: no context there to add filters to")
        bare = dataclasses.replace(base, filters=()) if rebuild else base
        if not wants_filters(base) or not any(gaps(bare.filters, 0, base.frames)):
            return base
        context = Opened(store, cache_bytes=0, allow=allow, store_options=store_options, owns_store=False)
        try:
            work = Rework(context, base, progress)
            return commit_reworked(work, base, filled(work, bare), filters=True)
        finally:
            context.close()
