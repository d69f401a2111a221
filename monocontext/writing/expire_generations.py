"""Drop old generations during appends, a few at a time, without a listing of the store.

A root names the objects whose frames it stored again (`History.replaced`). No later root names them, so they may be
removed together with all generations before that root. An append commits a root that announces a new floor, then
removes the generations below it. If it crashes in between, `gc` removes them.
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
"""The age of old generations is checked once in this many appends."""
MOST = 64
"""At most this many generations are removed at once: more than are added between two checks."""
_REQUESTS = 16
"""The most requests at once."""


def next_floor(store: Store, base: Manifest, older_than_seconds: float) -> int:
    """The floor that the root after `base` announces: generations below it may be removed (1 HEAD each 32nd time).

    These are generations whose successor was stored more than `older_than_seconds` ago, by the store's clock.
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
    """Remove the generations from `floor` up to the floor of the committed `root`, and the objects that only they name.

    Costs 1 GET and 1 DELETE for each generation, and 1 DELETE for each object. Does nothing while `manifest.json` is
    older than `root`: it may be one of these generations.
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
    """The keys of objects that a generation replaced, for each one that follows the one before it in the list."""
    return [
        key
        for before, root in pairwise(roots)
        if before and root and root.history.ancestors[-1:] == (before.write_id[:8],)
        for key in root.history.replaced
    ]
