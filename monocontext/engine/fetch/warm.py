"""Keep the text of the contexts that fetched last, and let the others give theirs up.

Each context has a cache of its own. A process with a thousand of them, each looked at once, would keep a decoded frame
or more for each: so only so many stay warm, and the others fetch again what they are asked for again.
"""

from __future__ import annotations

from collections import OrderedDict
from weakref import ref

from monocontext.engine.fetch.cache import Cache

MOST_WARM = 256
"""Contexts that keep what they have read: a look at a thousand leaves 64 MiB of frames, not 256."""

_warm: OrderedDict[int, ref[Cache]] = OrderedDict()


def keep_warm(cache: Cache) -> None:
    """A context has just filed something in its cache. Called under the lock of all these caches."""
    _warm[id(cache)] = ref(cache)
    _warm.move_to_end(id(cache))
    while len(_warm) > MOST_WARM:
        _, found = _warm.popitem(last=False)
        oldest = found()
        if oldest is not None:
            oldest.cool()


def forget(cache: Cache) -> None:
    """A context is closed."""
    _warm.pop(id(cache), None)
