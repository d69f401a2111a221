"""Extrapolate loops: from a few rounds that were followed, one hint for the rest. Pure.

A round is the list of hints of one turn of a loop. Rounds are alike if they hold the same hints, or ranges of the same
width at starts that grow evenly; then round k is known without following it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import chain, pairwise

from monocontext.engine.hints.hint import Hint, Lines, Ranges

PROBES = 8
"""Rounds that are followed before the others are taken to be like them; `max(0, i - 50)` bends the first."""
ALIKE = 4
"""Rounds at the end of those that must be alike."""
DECIDED_PROBES = 64
"""The same where the body decides something: `if i % 10 == 0` needs long to show. The later half must decide alike."""
MOST_ROUNDS = 256
"""Rounds that are followed where they are not alike."""

_LISTED = 16
"""Hints of a loop that are left in the order of reading; more become one progression for each place in the body."""
_APART = 64
"""Progressions that a loop within a loop may become; runs of lines, with gaps between them, that a loop may."""

Round = Sequence[Hint]


def distances(rounds: Sequence[Round]) -> list[int] | None:
    """How far each hint of a round moves from one round to the next; None if the rounds are not alike."""
    if len(rounds) < ALIKE or len({len(hints) for hints in rounds}) != 1:
        return None
    moves = []
    for lane in zip(*rounds, strict=True):
        steps = {_distance(a, b) for a, b in pairwise(lane)}
        if len(steps) != 1 or None in steps:
            return None
        moves.append(steps.pop() or 0)
    return moves


def is_moved(last: Round, moves: Sequence[int], rounds: int, found: Round) -> bool:
    """Whether `found` is what the moves say of the round that comes `rounds` rounds after the last one."""
    if len(found) != len(last):
        return False
    return all(_distance(a, b) == move * rounds for a, b, move in zip(last, found, moves, strict=True))


def continue_rounds(last: Round, moves: Sequence[int], rounds: int, characters: int) -> list[list[Hint]]:
    """For each hint of the last round, those of the `rounds` rounds after it, as the moves say, within the text."""
    return [_onward(hint, move, rounds, characters) for hint, move in zip(last, moves, strict=True)]


def _onward(hint: Hint, move: int, rounds: int, characters: int) -> list[Hint]:
    match hint:
        case _ if not move or rounds < 1:
            return []
        case Ranges(count=1):
            return clip(hint.start + move, hint.width, move, rounds, characters)
        case Ranges() if move == hint.step * hint.count:
            return clip(hint.start + move, hint.width, hint.step, hint.count * rounds, characters)
        case Ranges() if hint.count <= rounds:
            starts = (hint.start + k * hint.step + move for k in range(min(hint.count, _APART)))
            return [cut for start in starts for cut in clip(start, hint.width, move, rounds, characters)]
        case Ranges():
            starts = (hint.start + k * move for k in range(1, min(rounds, _APART) + 1))
            return [cut for start in starts for cut in clip(start, hint.width, hint.step, hint.count, characters)]
        case Lines(start, stop) if abs(move) > stop - start:
            starts = (start + k * move for k in range(1, min(rounds, _APART) + 1))
            return [Lines(low, low + stop - start) for low in starts if low >= 0]
        case Lines():
            moved = abs(move) * rounds
            low = hint.start - moved if move < 0 else hint.stop
            return [Lines(max(low, 0), max(low + moved, 0))]
    return []


def clip(start: int, width: int, step: int, count: int, characters: int) -> list[Hint]:
    """Ranges within the text: those that fit whole as one hint, those that are cut by an end of it one by one."""
    if step < 0:
        start, step, backward = start + (count - 1) * step, -step, True
    else:
        backward = False
    first = max(-(start // step), 0)  # the first that begins within the text
    stop = min(max((characters - width - start) // step + 1, 0), count)  # after the last that ends within it
    hints: list[Hint] = []
    for k in chain(range(max(first - _APART, 0), first), range(max(stop, first), min(stop + _APART, count))):
        low, high = max(start + k * step, 0), min(start + k * step + width, characters)
        if low < high:
            hints.append(Ranges(low, high - low, high - low, 1, is_literal=False))
    if stop - first == 1:
        hints.append(Ranges(start + first * step, width, width, 1, is_literal=False))
    elif stop > first:
        low, high = start + first * step, start + (stop - 1) * step
        hints.append(Ranges(high if backward else low, width, -step if backward else step, stop - first, False))
    hints.sort(key=lambda hint: hint.start if isinstance(hint, Ranges) else 0, reverse=backward)
    return hints


def compress(rounds: Sequence[Round], onward: Sequence[Round] = (), ending: Sequence[Round] = ()) -> list[Hint]:
    """The hints of a loop: rounds at its beginning, what `continue_rounds` says, rounds at its end.

    Progressions of three ranges and more become one hint. So do, in a long loop, the ranges of one place in its body,
    though they are read by turns with those of other places.
    """
    followed = [hints for hints in (*rounds, *ending) if hints]
    size = sum(map(len, followed))
    if onward or (size > _LISTED and len({len(hints) for hints in followed}) == 1):
        merged: list[Hint] = []
        for lane in range(max(map(len, followed), default=0)):
            hints = [hints[lane] for hints in rounds if lane < len(hints)]
            hints += onward[lane] if lane < len(onward) else []
            merged += _merge(chain(hints, (hints[lane] for hints in ending if lane < len(hints))))
        return merged
    return _merge(chain.from_iterable(followed))


def _distance(a: Hint, b: Hint) -> int | None:
    match a, b:
        case Ranges(), Ranges() if (a.width, a.count) == (b.width, b.count) and (a.count == 1 or a.step == b.step):
            return b.start - a.start
        case Lines(), Lines() if a.stop - a.start == b.stop - b.start:
            return b.start - a.start
    return 0 if a == b else None


def _merge(hints: Iterable[Hint]) -> list[Hint]:
    merged: list[Hint] = []
    run: list[Ranges] = []  # a progression as far as it goes
    for hint in hints:
        if not isinstance(hint, Ranges):
            merged += [*_as_one(run), hint]
            run = []
            continue
        if len(run) == 2 and run[0].count == 1 and not _goes_on(run, hint):
            merged.append(run.pop(0))  # the second may begin what goes on
        if run and not _goes_on(run, hint):
            merged += _as_one(run)
            run = []
        run.append(hint)
    return merged + _as_one(run)


def _goes_on(run: list[Ranges], hint: Ranges) -> bool:
    """Whether the range is the next one of the run."""
    move = hint.start - _last_start(run[-1])
    return (
        hint.width == run[-1].width
        and move != 0
        and _step(run) in (None, move)
        and (hint.count == 1 or hint.step == move)
    )


def _step(run: list[Ranges]) -> int | None:
    if len(run) > 1:
        return run[1].start - _last_start(run[0])
    return run[0].step if run[0].count > 1 else None


def _last_start(ranges: Ranges) -> int:
    return ranges.start + ranges.step * (ranges.count - 1)


def _as_one(run: list[Ranges]) -> list[Hint]:
    count = sum(ranges.count for ranges in run)
    step = _step(run) if run else None
    if count < 3 or len(run) == 1 or step is None:
        return list(run)
    return [replace(run[0], step=step, count=count, is_literal=False)]
