"""Drop old generations during appends, a few at a time, without a listing of the store.

A root names the objects of open frames that it replaced, and those are never stored again. So once all generations
before it are gone, these objects may go too. The root that an append commits announces the floor, and roots below it
are removed after that. `gc` finds the remains of a crash in between.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from itertools import pairwise

from monocontext.engine.fetch.threads import in_threads
from monocontext.errors import DamagedData, NotFound
from monocontext.format.generations import find_root, read_generation
from monocontext.format.manifest import Manifest, generation_key
from monocontext.stores.protocol import Store, seconds_now

EVERY = 32
"""Appends between two looks at the age of old generations."""
MOST = 64
"""Generations that go at once: they catch up with appends."""
_REQUESTS = 16


def next_floor(store: Store, base: Manifest, older_than_seconds: float) -> int:
    """The floor that the root after `base` may announce (no request, each 32nd time 1).

    A generation may go when its successor was stored longer ago than that, by the store's clock.
    """
    floor = max(base.history.floor, 1)
    following = min(floor + MOST, base.generation)
    if base.generation % EVERY or following == floor:
        return floor
    try:
        info = store.head(generation_key(following))
    except NotFound:
        return floor
    is_old = info.modified_seconds <= seconds_now(store, info.now_seconds) - older_than_seconds
    return following if is_old else floor


def clear(store: Store, floor: int, root: Manifest) -> None:
    """Remove the generations from `floor` to the floor of `root`, which is committed, and the objects that only they
    name.

    Costs 1 GET and 1 DELETE for each of them, and 1 DELETE for each object. Does nothing if `manifest.json` may still
    name one of them.
    """
    stop = root.history.floor
    if stop <= max(floor, 1) or find_root(store).manifest.generation < root.generation:
        return
    do = partial(in_threads, most=_REQUESTS, name="monocontext-clear")
    found = do(lambda number: _read(store, number), range(max(floor, 1), stop + 1))
    do(lambda number: store.delete(generation_key(number)), range(max(floor, 1), stop))
    do(store.delete, _replaced(found))


def _read(store: Store, number: int) -> Manifest | None:
    try:
        return read_generation(store, number)
    except (NotFound, DamagedData):
        return None


def _replaced(roots: Iterable[Manifest | None]) -> list[str]:
    """The objects that each of these generations replaced, where it follows the one before it in the list."""
    return [
        key
        for before, root in pairwise(roots)
        if before and root and root.history.ancestors[-1:] == (before.write_id[:8],)
        for key in root.history.replaced
    ]
