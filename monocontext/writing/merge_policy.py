"""Decide which pieces an append merges, so that a text of many appends stays in few pieces: a merge tree, by sizes
alone.

Sizes fall into tiers, each `FAN_OUT` times the one below. When the last `FAN_OUT` pieces are in the newest one's tier
or below, they become one. So each tier has at most `FAN_OUT` - 1 pieces after the last larger one, and each byte is
stored again about once a tier.
"""

from __future__ import annotations

from collections.abc import Sequence

FAN_OUT = 4


def merged(sizes: Sequence[int], new: int, least: int) -> int:
    """The number of last pieces, of these sizes, that are stored again together with `new` ones after them.

    Sizes up to `least` are of one tier.
    """
    taken = 0
    while True:
        tier = _tier(new, least)
        more = 0
        while taken + more < len(sizes) and _tier(sizes[-1 - taken - more], least) <= tier:
            more += 1
        if more + 1 < FAN_OUT:
            return taken
        new += sum(sizes[len(sizes) - taken - more : len(sizes) - taken])
        taken += more


def _tier(size: int, least: int) -> int:
    """0 up to `least`, then one more for each factor of `FAN_OUT`."""
    tier = 0
    while size > least:
        size = -(-size // FAN_OUT)
        tier += 1
    return tier
