"""Follow a loop for some rounds; if they are alike, derive the others without following them.

A round is the list of hints of one turn of a loop. Rounds are alike if they hold the same hints, or ranges of the same
width at starts that grow evenly; then round k is known without following it. 1 TB costs what 1 MB costs.
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
"""The number of rounds that are followed if they are not alike."""
_ALL_FOLLOWED = 32
"""Rounds up to which a loop over known items is followed to its end."""
_ENDLESS = 1 << 45
"""Rounds that no loop over a text makes."""
_APART = 64
"""Progressions that a loop within a loop may become."""

Turn = Callable[[int], bool | None]
"""Follows round k: False if the loop ends with it, None if it is not known whether there is such a round."""
Steps = dict[str, int | None]
"""How far a name moves in a round; None if it changes in another way."""


class Loops(Expressions):
    """Follows loops."""

    @contextmanager
    def loop(self, rounds: int) -> Iterator[None]:
        """Around a loop: doubt whether it was left early ends with it. `rounds`: as `Trace.rounds`."""
        trace = self.trace
        outer = trace.rounds, trace.doubt
        trace.rounds = rounds
        trace.loops += 1
        try:
            yield
        finally:
            trace.loops -= 1
            trace.rounds, trace.doubt = outer

    def once(self, names: Sequence[str], turn: Callable[[], object]) -> None:
        """One round of a loop of which nothing is known, in doubt, and what it leaves behind."""
        self.forget(names)
        with self.doubt():
            turn()
        self.forget(names)

    def repeat(self, turn: Turn, count: int | None, names: Sequence[str]) -> None:
        """Follow a loop of `count` rounds, or one of which only `turn` knows the end; it binds these names."""
        mark, number, has_jumped = len(self.trace.hints), 0, False
        going: bool | None = True
        lanes: defaultdict[int, list[Hint]] = defaultdict(list)  # the hints of each place in the body
        rounds: list[list[Hint]] = []
        states: list[Names] = []
        try:
            while going and number != count and len(rounds) < MOST_ROUNDS:
                going = turn(number)
                rounds.append(self.trace.take(mark))
                for place, hint in enumerate(rounds[-1]):
                    lanes[place].append(hint)
                states = [*states[1 - ALIKE :], self.copy_names()]
                number += 1
                if not going or has_jumped or number < PROBES or (count is not None and count <= _ALL_FOLLOWED):
                    continue
                moves, steps = _distances(rounds), self._steps(states)
                more = self._more(turn, number, count, steps) if moves is not None else 0
                if moves is None or more is None:
                    going = going if more is not None else None
                    continue
                for hint, move in zip(rounds[-1], moves, strict=True):
                    more = min(more, _fitting(hint, move, self.trace.characters))
                if more > 1 and self._goes_on(turn, number, more // 2, steps, rounds[-1], moves):
                    for place, (hint, move) in enumerate(zip(rounds[-1], moves, strict=True)):
                        lanes[place] += _onward(hint, move, more)
                    self._shift(steps, more)
                    number, has_jumped = number + more, True
            if going is None or (going and number != count):
                self.forget([*names, *self._steps(states)])
        except Spent:
            lanes[-1] = self.trace.take(mark)
            raise
        finally:
            self.trace.hints += [hint for lane in lanes.values() for hint in _merge(lane)]

    def _steps(self, states: Sequence[Names]) -> Steps:
        steps: Steps = {}
        for name in self.names:
            held = [state.get(name, UNKNOWN) for state in states]
            if all(value is held[0] for value in held) or all(isinstance(value, Loaded) for value in held):
                continue
            even = all(type(value) is int for value in held)
            moves = {b - a for a, b in pairwise(held)} if even else set()  # type: ignore[operator]
            steps[name] = moves.pop() if len(moves) == 1 else None
        return steps

    def _shift(self, steps: Steps, rounds: int) -> None:
        """The names after this many more rounds like the last ones."""
        for name, step in steps.items():
            value = self.names.get(name, UNKNOWN)
            if step is not None and type(value) is int:
                self.names[name] = value + step * rounds
            elif not isinstance(value, TextValue):
                self.names[name] = UNKNOWN

    def _tried(self, turn: Turn, number: int, ahead: int, steps: Steps) -> tuple[bool, list[Hint]]:
        """One of the later rounds: whether the loop continues after it, and its hints."""
        mark = len(self.trace.hints)
        with self.try_out():
            self._shift(steps, ahead)
            going = turn(number + ahead) is True
        return going, self.trace.take(mark)

    def _more(self, turn: Turn, number: int, count: int | None, steps: Steps) -> int | None:
        """How many more rounds are like these, without the last one; None if the loop does not end that way."""
        most = _ENDLESS if count is None else count - number - 1
        if count is None and not any(steps.values()):
            return None
        if self._tried(turn, number, most, steps)[0]:
            return None if count is None else most
        low, high = -1, most
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._tried(turn, number, middle, steps)[0] else (low, middle)
        return low

    def _goes_on(
        self, turn: Turn, number: int, ahead: int, steps: Steps, last: Sequence[Hint], moves: Sequence[int]
    ) -> bool:
        """Whether a round half way confirms the rule: ranges that enter the text later show there."""
        found = self._tried(turn, number, ahead, steps)[1]
        wanted = [move * (ahead + 1) for move in moves]
        return len(found) == len(last) and all(
            _distance(*three) == by for *three, by in zip(last, found, wanted, strict=True)
        )


def _distances(rounds: Sequence[Sequence[Hint]]) -> list[int] | None:
    """How far each hint of a round moves from one round to the next; None if the rounds are not alike."""
    if len({len(hints) for hints in rounds}) != 1:
        return None
    moves = []
    for lane in zip(*rounds[-ALIKE:], strict=True):
        steps = {_distance(a, b) for a, b in pairwise(lane)}
        step = steps.pop()
        if steps or step is None:
            return None
        moves.append(step)
    return moves


def _distance(a: Hint, b: Hint) -> int | None:
    match a, b:
        case Ranges(), Ranges() if (a.width, a.count) == (b.width, b.count) and (a.count == 1 or a.step == b.step):
            return b.start - a.start
    return 0 if a == b else None


def _fitting(hint: Hint, move: int, characters: int) -> int:
    """The number of further rounds whose ranges are within the text; rounds that its ends cut are followed."""
    if not move or not isinstance(hint, Ranges):
        return characters
    ends = hint.start, hint.start + hint.step * (hint.count - 1)
    room = characters - max(ends) - hint.width if move > 0 else min(ends)
    return room // abs(move)


def _onward(hint: Hint, move: int, rounds: int) -> list[Hint]:
    """The hint of a later round."""
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
    """Progressions of three ranges and more become one hint."""
    merged: list[Hint] = []
    run: list[Ranges] = []  # a progression as far as it goes
    for hint in hints:
        if isinstance(hint, Ranges) and run and (joined := _joined([*run, hint])):
            run = joined
            continue
        if len(run) == 2 and isinstance(hint, Ranges) and (joined := _joined([run[1], hint])):
            merged.append(run[0])  # the second begins the continuing part
            run = joined
            continue
        merged += run
        run = [hint] if isinstance(hint, Ranges) else []
        merged += [] if run else [hint]
    return merged + run


def _joined(run: Sequence[Ranges]) -> list[Ranges] | None:
    """The ranges as one where they are three or more that go on evenly, or two that may; None if they do not."""
    moves = {b.start - (a.start + a.step * (a.count - 1)) for a, b in pairwise(run)}
    moves |= {part.step for part in run if part.count > 1}
    if len(moves) != 1 or 0 in moves or len({part.width for part in run}) != 1:
        return None
    count = sum(part.count for part in run)
    return [replace(run[0], step=moves.pop(), count=count, is_literal=False)] if count > 2 else list(run)
