"""Compare two arms, paired by question: exact McNemar, a bootstrap of the difference, and where transcripts part."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from random import Random
from typing import Any

FEWEST = 10
"""Questions below which no percentage is written."""
_DRAWS = 2_000


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two arms over the same questions."""

    questions: int
    only_first: int
    """Right on the first arm alone."""
    only_second: int
    p: float
    """Of the exact McNemar test, two-sided: that the arms differ so much by chance."""
    interval: tuple[float, float]
    """95 % of the difference of the shares of right answers, first less second, by bootstrap."""


def pair(first: Sequence[bool], second: Sequence[bool], seed: int = 0) -> Pairing:
    """Whether each question was right on one arm and on the other, in the same order."""
    if len(first) != len(second) or not first:
        raise ValueError(f"{len(first)} and {len(second)} results are no pairs")
    only_first = sum(a and not b for a, b in zip(first, second, strict=True))
    only_second = sum(b and not a for a, b in zip(first, second, strict=True))
    differing = only_first + only_second
    tail = sum(comb(differing, k) for k in range(min(only_first, only_second) + 1)) / 2**differing
    differences = [int(a) - int(b) for a, b in zip(first, second, strict=True)]
    dice = Random(seed)
    drawn = sorted(sum(dice.choices(differences, k=len(differences))) / len(differences) for _ in range(_DRAWS))
    interval = drawn[_DRAWS // 40], drawn[-1 - _DRAWS // 40]
    return Pairing(len(first), only_first, only_second, min(1.0, 2 * tail), interval)


def share(right: int, of: int) -> str:
    """`17 of 20 (85 %)`; no percentage of few."""
    return f"{right} of {of}" + (f" ({100 * right / of:.0f} %)" if of >= FEWEST else "")


def parting(first: Sequence[dict[str, Any]], second: Sequence[dict[str, Any]]) -> str:
    """Where two transcripts differ first; empty where they are the same."""
    for turn, (one, other) in enumerate(zip(first, second, strict=False), 1):
        if one["reply"] != other["reply"]:
            return f"turn {turn}: another reply"
        if one["output"] != other["output"]:
            return f"turn {turn}: the same reply, another output"
    return "" if len(first) == len(second) else f"{len(first)} and {len(second)} turns"
