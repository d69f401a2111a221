"""Follow a loop for some rounds; if they are alike, derive the others without following them.

Rounds are alike if they give the same hints, or ranges of the same width whose starts move evenly; then the hints of
round k are known without following it. A loop over 1 TB costs as much as one over 1 MB.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

from monocontext.engine.hints.expressions import Expressions, Names
from monocontext.engine.hints.hint import Hint, Ranges
from monocontext.engine.hints.reads import Spent
from monocontext.engine.hints.values import UNKNOWN, Loaded, TextValue

PROBES = 8
"""Rounds that are followed before the others are taken to be like them; `max(0, i - 50)` bends the first."""
ALIKE = 4
"""The number of last rounds that must be alike."""
MOST_ROUNDS = 256
"""The most rounds that are followed if they are not alike."""
_ALL_FOLLOWED = 32
"""A loop over at most this many known items is followed to its end."""
_ENDLESS = 1 << 45
"""More rounds than any loop over a text makes."""
_APART = 64
"""The most progressions that a loop within a loop may become."""

Round = Callable[[int], bool | None]
"""Follows round k of a loop. Returns False if the loop ends with it, None if it is unknown whether there is such a
round."""
Steps = dict[str, int | None]
"""The amount by which each changing name grows in a round; None if it changes in another way."""


class Loops(Expressions):
    """Follows loops."""

    @contextmanager
    def loop(self, rounds: int) -> Iterator[None]:
        """Inside, code runs in a loop; doubt whether the loop was left early ends with it. `rounds`: see
        `Trace.rounds`."""
        trace = self.trace
        outer = trace.rounds, trace.doubt
        trace.rounds = rounds
        trace.loops += 1
        try:
            yield
        finally:
            trace.loops -= 1
            trace.rounds, trace.doubt = outer

    def once(self, names: Sequence[str], follow: Callable[[], object]) -> None:
        """Follow one round, in doubt, of a loop whose items are unknown. It binds `names`, which are unknown before and
        after it."""
        self.forget(names)
        with self.doubt():
            follow()
        self.forget(names)

    def repeat(self, follow: Round, count: int | None, names: Sequence[str]) -> None:
        """Follow a loop of `count` rounds; None: only `follow` knows its end. It binds `names`."""
        mark, number, has_jumped = len(self.trace.hints), 0, False
        going: bool | None = True
        places: defaultdict[int, list[Hint]] = defaultdict(list)  # the hints of each place in the body
        rounds: list[list[Hint]] = []
        states: list[Names] = []
        try:
            while going and number != count and len(rounds) < MOST_ROUNDS:
                going = follow(number)
                hints = self.trace.take(mark)
                rounds.append(hints)
                for place, hint in enumerate(hints):
                    places[place].append(hint)
                states = [*states[1 - ALIKE :], self.copy_names()]
                number += 1
                if not going or has_jumped or number < PROBES or (count is not None and count <= _ALL_FOLLOWED):
                    continue
                moves, steps = _distances(rounds), self._steps(states)
                if moves is None:
                    continue
                more = self._rounds_left(follow, number, count, steps)
                if more is None:
                    going = None
                    continue
                for hint, move in zip(hints, moves, strict=True):
                    more = min(more, _fitting(hint, move, self.trace.characters))
                if more > 1 and self._is_confirmed(follow, number, more // 2, steps, hints, moves):
                    for place, (hint, move) in enumerate(zip(hints, moves, strict=True)):
                        places[place] += _derived(hint, move, more)
                    self._shift(steps, more)
                    number, has_jumped = number + more, True
            if going is None or (going and number != count):
                self.forget([*names, *self._steps(states)])
        except Spent:
            places[-1] = self.trace.take(mark)
            raise
        finally:
            self.trace.hints += [hint for found in places.values() for hint in _merge(found)]

    def _steps(self, states: Sequence[Names]) -> Steps:
        """The steps of the names that are not the same after each of the last rounds."""
        steps: Steps = {}
        for name in self.names:
            seen = [state.get(name, UNKNOWN) for state in states]
            if all(value is seen[0] for value in seen) or all(isinstance(value, Loaded) for value in seen):
                continue
            are_numbers = all(type(value) is int for value in seen)
            moves = {b - a for a, b in pairwise(seen)} if are_numbers else set()  # type: ignore[operator]
            steps[name] = moves.pop() if len(moves) == 1 else None
        return steps

    def _shift(self, steps: Steps, rounds: int) -> None:
        """Set names to their values after this many more rounds."""
        for name, step in steps.items():
            value = self.names.get(name, UNKNOWN)
            if step is not None and type(value) is int:
                self.names[name] = value + step * rounds
            elif not isinstance(value, TextValue):
                self.names[name] = UNKNOWN

    def _try_round(self, follow: Round, number: int, ahead: int, steps: Steps) -> tuple[bool, list[Hint]]:
        """Follow a later round without effect: whether the loop continues after it, and its hints."""
        mark = len(self.trace.hints)
        with self.try_out():
            self._shift(steps, ahead)
            going = follow(number + ahead) is True
        return going, self.trace.take(mark)

    def _rounds_left(self, follow: Round, number: int, count: int | None, steps: Steps) -> int | None:
        """The number of further rounds after which the loop continues; None if it does not end by these steps."""
        most = _ENDLESS if count is None else count - number - 1
        if count is None and not any(steps.values()):
            return None
        if self._try_round(follow, number, most, steps)[0]:
            return None if count is None else most
        low, high = -1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._try_round(follow, number, middle, steps)[0] else (low, middle)
        return low

    def _is_confirmed(
        self, follow: Round, number: int, ahead: int, steps: Steps, last: Sequence[Hint], moves: Sequence[int]
    ) -> bool:
        """Whether a later round gives the hints that are derived for it: ranges that enter the text later show
        there."""
        found = self._try_round(follow, number, ahead, steps)[1]
        return len(found) == len(last) and all(
            _distance(hint, other) == move * (ahead + 1) for hint, other, move in zip(last, found, moves, strict=True)
        )


def _distances(rounds: Sequence[Sequence[Hint]]) -> list[int] | None:
    """The distance of each hint from one round to the next, in characters; None if the rounds are not alike."""
    if len({len(hints) for hints in rounds}) != 1:
        return None
    moves = []
    for hints in zip(*rounds[-ALIKE:], strict=True):
        steps = {_distance(a, b) for a, b in pairwise(hints)}
        step = steps.pop()
        if steps or step is None:
            return None
        moves.append(step)
    return moves


def _distance(a: Hint, b: Hint) -> int | None:
    """The distance of two ranges; 0 for equal hints; None for different ones."""
    match a, b:
        case Ranges(), Ranges() if (a.width, a.count) == (b.width, b.count) and (a.count == 1 or a.step == b.step):
            return b.start - a.start
    return 0 if a == b else None


def _fitting(hint: Hint, move: int, characters: int) -> int:
    """The number of further rounds whose ranges are within the text. Rounds that its ends cut are followed."""
    if not move or not isinstance(hint, Ranges):
        return characters
    ends = hint.start, hint.start + hint.step * (hint.count - 1)
    room = characters - max(ends) - hint.width if move > 0 else min(ends)
    return room // abs(move)


def _derived(hint: Hint, move: int, rounds: int) -> list[Hint]:
    """The hints of so many later rounds, at a place that gave `hint` in the last one."""
    if not move or not isinstance(hint, Ranges):
        return []
    start = hint.start + move
    if hint.count == 1:
        return [replace(hint, start=start, step=move, count=rounds, is_literal=False)]
    if move == hint.step * hint.count:
        return [replace(hint, start=start, count=hint.count * rounds)]
    if hint.count > rounds:
        return [replace(hint, start=start + k * move) for k in range(min(rounds, _APART))]
    each = replace(hint, step=move, count=rounds)
    return [replace(each, start=start + k * hint.step) for k in range(min(hint.count, _APART))]


def _merge(hints: Iterable[Hint]) -> list[Hint]:
    """The hints, with progressions of three ranges and more as one hint."""
    merged: list[Hint] = []
    run: list[Ranges] = []  # the progression that the last hints make
    for hint in hints:
        if not isinstance(hint, Ranges):
            merged += [*run, hint]
            run = []
        elif run and (joined := _joined([*run, hint])):
            run = joined
        elif len(run) == 2 and (joined := _joined([run[1], hint])):
            merged.append(run[0])  # the progression begins with the second
            run = joined
        else:
            merged += run
            run = [hint]
    return merged + run


def _joined(run: Sequence[Ranges]) -> list[Ranges] | None:
    """One hint for three or more ranges at even distances, the ranges themselves if they are two; else None."""
    moves = {b.start - (a.start + a.step * (a.count - 1)) for a, b in pairwise(run)}
    moves |= {part.step for part in run if part.count > 1}
    if len(moves) != 1 or 0 in moves or len({part.width for part in run}) != 1:
        return None
    count = sum(part.count for part in run)
    return [replace(run[0], step=moves.pop(), count=count, is_literal=False)] if count > 2 else list(run)
