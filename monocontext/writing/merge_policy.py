"""Decide by their sizes which pieces an append merges, so that a text of many appends stays in few pieces.

This is a merge tree. Sizes fall into tiers, each `FAN_OUT` times the one below. When the last `FAN_OUT` pieces are in
the newest one's tier or below, they become one. So each tier has at most `FAN_OUT` - 1 pieces after the last larger
one, and each byte is stored again about once a tier.
"""

from __future__ import annotations

from collections.abc import Sequence

FAN_OUT = 4
"""The pieces of one tier that become one of the next."""


def merged(sizes: Sequence[int], new: int, least: int) -> int:
    """How many of the last pieces, with these sizes, are merged with a new piece of size `new`.

    All sizes up to `least` are in the lowest tier.
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
    """The tier of a size: 0 up to `least`, then one more for each factor of `FAN_OUT`."""
    tier = 0
    while size > least:
        size = -(-size // FAN_OUT)
        tier += 1
    return tier
