"""Follow loops for some rounds; where the rounds are alike, extrapolate the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise

from monocontext.engine.hints.bounded import MOST_ITEMS
from monocontext.engine.hints.calls import CallEvaluator
from monocontext.engine.hints.expressions import Expressions
from monocontext.engine.hints.hint import Hint
from monocontext.engine.hints.loops import (
    ALIKE,
    DECIDED_PROBES,
    MOST_ROUNDS,
    PROBES,
    compress,
    continue_rounds,
    distances,
    is_moved,
)
from monocontext.engine.hints.state import Names
from monocontext.engine.hints.trace import Spent
from monocontext.engine.hints.values import UNKNOWN, Items, Iteration, Loaded, Table, TextValue, progression

_ALL_FOLLOWED = 32
"""Rounds up to which a loop over known items is followed to its end."""
_ENDLESS = 1 << 45
"""Rounds that no loop over a text makes."""

_Lengths = dict[Items, int | None]


class Repetition(CallEvaluator):
    """Follows loops."""

    LEAVE = object()
    """Given by a round that ends the loop."""
    SKIP = object()
    """Given by a round that adds no item."""

    @contextmanager
    def loop(self, rounds: int) -> Iterator[None]:
        """Around a loop: doubt whether it was left early ends with it. `rounds`: as `Trace.rounds`."""
        self.owed.append(0)
        self.trace.loops += 1
        outer, self.trace.rounds = self.trace.rounds, rounds
        try:
            yield
        finally:
            self.trace.rounds = outer
            self.trace.loops -= 1
            self.trace.doubt -= self.owed.pop()

    def once(self, names: Sequence[str], turn: Callable[[], object]) -> None:
        """One round of a loop of which nothing is known, in doubt, and what it leaves behind."""
        self.forget(names)
        with self.doubt():
            turn()
        self.forget(names)

    def repeat(self, run: Iteration, body: Callable[[object], object]) -> object:
        mark = len(self.trace.hints)
        rounds: list[list[Hint]] = []
        values: list[object] = []
        history = _History(self)
        count = 0
        skipped = False

        def turn(k: int) -> bool:
            nonlocal skipped
            value = body(run.item(k))
            rounds.append(self.trace.take(mark))
            history.note()
            skipped = skipped or value is self.SKIP
            if value is not self.SKIP:
                values.append(value)
            return value is not self.LEAVE

        try:
            while count < run.count:
                going = turn(count)
                count += 1
                if not going:
                    self.trace.extend(compress(rounds))
                    return Items(None)
                if run.count > _ALL_FOLLOWED and PROBES <= count < run.count - 1:
                    settled = history.is_settled(count) and not skipped
                    settled = settled and (run.count > MOST_ROUNDS or not history.has_decided)
                    moves = distances(rounds[-ALIKE:]) if settled else None
                    ahead = (run.count - count) // 2
                    if moves is not None and self._goes_on(rounds[-1], moves, ahead, history, body, run.item):
                        break
                    if count >= MOST_ROUNDS:
                        self.trace.extend(compress(rounds))
                        history.give_up()
                        return Items(None, None if skipped else run.count)
            else:
                self.trace.extend(compress(rounds))
                return Items(values)
        except Spent:
            self._keep(rounds, mark)
            raise
        finally:
            history.close()
        return self._jump(run, count, rounds, values, turn, history)

    def _goes_on(
        self,
        last: list[Hint],
        moves: list[int],
        ahead: int,
        history: _History,
        body: Callable[[object], object],
        item: Callable[[int], object],
    ) -> bool:
        """Try one of the rounds to come: ranges that enter the text later, or a condition, show there."""
        mark, decided = len(self.trace.hints), len(self.decisions)
        with self.try_out():
            history.shift(ahead - 1)
            body(item(history.rounds + ahead - 1))
            del self.decisions[decided:]
        return is_moved(last, moves, ahead, self.trace.take(mark))

    def _keep(self, rounds: list[list[Hint]], mark: int) -> None:
        """What the rounds brought up until the work was used up, in place of what is left of it in the trace."""
        self.trace.extend(compress([*rounds, self.trace.take(mark)]))

    def _jump(
        self,
        run: Iteration,
        count: int,
        rounds: list[list[Hint]],
        values: list[object],
        turn: Callable[[int], bool],
        history: _History,
    ) -> object:
        """All rounds but the last are like those before; the last one is followed, as it may take what is left over."""
        moves = distances(rounds[-ALIKE:]) or []
        between = run.count - 1 - count
        onward = continue_rounds(rounds[-1], moves, between, self.trace.characters)
        history.advance(between)
        made = _extend(values, between)
        turn(run.count - 1)
        self.trace.extend(compress(rounds[:count], onward, rounds[count:]))
        return made

    def repeat_while(
        self,
        test: Callable[[], bool | None],
        turn: Callable[[], bool],
        names: Sequence[str],
        again: Callable[[], None],
    ) -> bool:
        """Follow a `while`; False if its end is not known. `again` makes the loop forget that it was left."""
        mark = len(self.trace.hints)
        rounds: list[list[Hint]] = []
        onward: list[list[Hint]] = []
        jumped = 0
        history = _History(self)
        ended = False
        try:
            for _ in range(MOST_ROUNDS):
                going = test()
                if going is None:
                    self.once(names, turn)
                    again()
                    rounds.append(self.trace.take(mark))
                    break
                if going is False or not turn():
                    rounds.append(self.trace.take(mark))
                    ended = True
                    break
                rounds.append(self.trace.take(mark))
                history.note()
                settled = history.is_settled(len(rounds)) and not jumped
                moves = distances(rounds[-ALIKE:]) if settled else None
                if moves is not None and not any(moves) and history.is_still():
                    break
                if moves is not None and history.is_even():
                    more = self._rounds_left(test, turn, history, again)
                    if more is None:
                        break
                    ahead = (more + 1) // 2
                    goes_on = self._goes_on(rounds[-1], moves, ahead, history, lambda _: turn(), int)
                    again()
                    if more and goes_on:
                        onward = continue_rounds(rounds[-1], moves, more, self.trace.characters)
                        history.advance(more)
                        jumped = len(rounds)
            if not ended:
                self.forget(names)
        except Spent:
            self._keep(rounds, mark)
            raise
        finally:
            history.close()
        split = jumped or len(rounds)
        self.trace.extend(compress(rounds[:split], onward, rounds[split:]))
        return ended

    def _rounds_left(
        self,
        test: Callable[[], bool | None],
        turn: Callable[[], bool],
        history: _History,
        again: Callable[[], None],
    ) -> int | None:
        """After how many more rounds like these the loop is still on; None if it does not end that way."""
        mark, decided = len(self.trace.hints), len(self.decisions)

        def is_on(rounds: int, *, whole: bool) -> bool:
            with self.try_out():
                history.shift(rounds)
                on = test() is True and (not whole or turn())
            again()
            self.trace.take(mark)
            del self.decisions[decided:]
            return on

        for whole in (False, True):
            if is_on(_ENDLESS, whole=whole):
                continue
            low, high = 0, _ENDLESS
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if is_on(middle, whole=whole) else (low, middle)
            return low
        return None


class _History:
    """The changes of a loop to names and lists, round by round."""

    def __init__(self, machine: Expressions) -> None:
        self._machine = machine
        self._names = machine.names
        self._outer = machine.touched
        machine.touched = set()
        self._states: list[tuple[Names, _Lengths]] = []
        self.rounds = 0
        self._moves: dict[str, int | None] = {}
        self._decided: list[tuple[bool, ...]] = []
        self._mark = len(machine.decisions)

    def note(self) -> None:
        """A round has ended."""
        lengths = {items: items.known_length for items in self._machine.touched if isinstance(items, Items)}
        self._states.append((self._machine.copy_names(), lengths))
        del self._states[:-ALIKE]
        self._moves.clear()
        self.rounds += 1
        self._decided.append(tuple(self._machine.decisions[self._mark :]))
        del self._machine.decisions[self._mark :]

    @property
    def has_decided(self) -> bool:
        """Whether a condition in the body is known: it may come out otherwise later."""
        return any(self._decided)

    def is_settled(self, rounds: int) -> bool:
        """Whether enough rounds were followed to take the next ones to be like the last."""
        if not self.has_decided:
            return rounds >= PROBES
        return rounds >= DECIDED_PROBES and len(set(self._decided[-(DECIDED_PROBES // 2) :])) == 1

    def close(self) -> None:
        """The loop has ended."""
        self._outer |= self._machine.touched
        self._machine.touched = self._outer

    def is_still(self) -> bool:
        """Whether no name changes any more: a loop that goes on so does not end, as far as one can see."""
        return all(self._move(name) == 0 for name in self._names)

    def is_even(self) -> bool:
        """Whether some number moves, and all that move do so evenly."""
        moves = [self._move(name) for name in self._names]
        return len(self._states) == ALIKE and any(moves)

    def shift(self, rounds: int) -> None:
        """Names as they will be after so many more rounds like the last ones."""
        moved: Names = {}
        for name, value in self._names.items():
            move = self._move(name)
            if move and type(value) is int:
                moved[name] = value + move * rounds
            elif move is None and not isinstance(value, TextValue | Loaded):
                moved[name] = UNKNOWN
        self._names.update(moved)

    def advance(self, rounds: int) -> None:
        """The same for lists."""
        self.shift(rounds)
        for changed in self._states[-1][1]:
            lengths = [state[1].get(changed) for state in self._states]
            known = [length for length in lengths if length is not None]
            steps = {b - a for a, b in pairwise(known)}
            if len(known) < len(lengths) or len(steps) != 1:
                changed.items, changed.length = None, None
                continue
            added = steps.pop() * rounds
            total = known[-1] + added
            items = changed.items
            even = progression(items[-ALIKE:], ALIKE + added) if items is not None and added == rounds else None
            if items is not None and even is not None and total <= MOST_ITEMS:
                more = even if isinstance(even, range) else [even.item(k) for k in range(even.count)]
                items.extend(more[ALIKE:])
            elif added:
                changed.items, changed.length = None, max(total, 0)
        for other in self._machine.touched:
            if isinstance(other, Table):
                other.items = None

    def give_up(self) -> None:
        """The rest of the loop is not known."""
        for name, value in self._names.items():
            if self._move(name) != 0 and not isinstance(value, TextValue):
                self._names[name] = UNKNOWN
        for changed in self._machine.touched:
            changed.items = None
            if isinstance(changed, Items):
                changed.length = None

    def _move(self, name: str) -> int | None:
        """How far a number moves in a round; 0 if the value stays; None if it changes in another way."""
        if name not in self._moves:
            self._moves[name] = self._step_of(name)
        return self._moves[name]

    def _step_of(self, name: str) -> int | None:
        values = [state[0].get(name, UNKNOWN) for state in self._states]
        if all(value is values[0] for value in values):
            return 0
        if not all(type(value) is int for value in values):
            return 0 if all(isinstance(value, Loaded) for value in values) else None
        moves = {b - a for a, b in pairwise(value for value in values if type(value) is int)}
        return moves.pop() if len(moves) == 1 else None


def _extend(values: list[object], more: int) -> object:
    """The items that a loop gave, with those of the rounds between and the last."""
    count = len(values) + more + 1
    even = progression(values, count)
    if even is not None:
        return even
    tail = progression(values[-ALIKE:], ALIKE + more + 1)
    if tail is not None and count <= MOST_ITEMS:
        rest = list(tail) if isinstance(tail, range) else [tail.item(k) for k in range(tail.count)]
        return Items([*values[:-ALIKE], *rest])
    return Items(None, count)
