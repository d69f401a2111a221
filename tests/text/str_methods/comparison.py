"""One case: a chain of three operations on a `str` and on the context that stands for it, each with a verdict.

- **same**: equal values of equal kinds, or errors of one type
- **loud**: `ContextTooLarge`, from an operation that is the `str`'s own (`cases.LOUD`)
- **WRONG**: anything else
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.text.monocontext import MATERIALIZE_LIMIT

from .cases import LOUD, NAMES, Operation, chain, operation, text
from .subject import Inconsistent, read, small_pieces, stored


@dataclass
class Counts:
    """Verdicts so far."""

    same: int = 0
    loud: Counter[str] = field(default_factory=Counter)
    """By operation."""
    wrong: list[str] = field(default_factory=list)
    """What was done, expected and found."""

    @property
    def compared(self) -> int:
        return self.same + self.loud.total() + len(self.wrong)

    def __str__(self) -> str:
        return f"{self.compared:,} compared: {self.same:,} same, {self.loud.total():,} loud, {len(self.wrong)} WRONG"


def compare(op: Operation, right: str, mine: Any, counts: Counts, story: str) -> tuple[Any, Any]:
    """Both results, where the chain can go on with them; else (None, None)."""
    expected, expected_value = _outcome(op, right)
    result, found_value = _outcome(op, mine)
    if result is ContextTooLarge and op.name in LOUD:
        counts.loud[op.name] += 1
    elif result == expected:
        counts.same += 1
        return expected_value, found_value
    else:
        counts.wrong.append(f"{story}: {op}\n   expected {expected!r}\n   found    {result!r}")
    return None, None


def _outcome(op: Operation, on: Any) -> tuple[Any, Any]:
    """What an operation gives, read whole, and the value itself; or the type of its error."""
    try:
        value = op(on)
        return read(value), value
    except Inconsistent as error:
        return error, None
    except ContextTooLarge:
        return ContextTooLarge, None
    except Exception as error:  # compared, whatever it is
        return type(error), None


def run_case(random: Random, counts: Counts, names: Sequence[str] = NAMES) -> None:
    """A text, its context, and a few chains of three operations of `names`."""
    right = text(random)
    frame_bytes = random.choice((1, 2, 3, 4, 5, 17, 100))
    limit = random.choice((3, 3, 3, 10, MATERIALIZE_LIMIT))
    cache_bytes = random.choice((0, 700, 1 << 20))
    story = f"{right!r} in frames of {frame_bytes}, limit {limit}"
    with small_pieces(random):
        context: Any = stored(right, frame_bytes, limit, cache_bytes)
        low, high = (random.randrange(len(right) + 1) for _ in range(2))
        for number in range(5):
            here, mine, so_far = right, context, story
            if number == 4:
                view = context.view(low, high) if isinstance(context, Monocontext) else context[low:high]
                here, mine, so_far = right[low:high], view, f"{story}, view({low}, {high})"
            run_chain(random, here, mine, counts, so_far, names)


def run_chain(random: Random, right: Any, mine: Any, counts: Counts, story: str, names: Sequence[str] = NAMES) -> None:
    for name in chain(random, names):
        op = operation(random, right, name)
        right, mine = compare(op, right, mine, counts, story)
        right, mine, which = _text_in(random, right, mine)
        if right is None or len(right) > 300:
            return
        story = f"{story}: {op}{which}"


def _text_in(random: Random, right: Any, mine: Any) -> tuple[Any, Any, str]:
    """The text to go on with: the result, or an item of the list that it is."""
    if isinstance(right, list | tuple) and right:
        offset = random.randrange(len(right))
        right, mine, which = right[offset], mine[offset], f"[{offset}]"
    else:
        which = ""
    return (right, mine, which) if isinstance(right, str) else (None, None, "")


def campaign(seed: int, compared: int, wrong: int = 1, names: Sequence[str] = NAMES) -> Counts:
    """Seeded cases with operations of `names` until so many comparisons are made, or so many are WRONG."""
    counts = Counts()
    number = 0
    while counts.compared < compared and len(counts.wrong) < wrong:
        run_case(Random(f"{seed} {number}"), counts, names)
        number += 1
    return counts
