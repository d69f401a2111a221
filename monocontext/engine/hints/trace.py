"""The trace of a program that is followed: its hints so far, and how many more steps it may take."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from monocontext.engine.hints.hint import Hint, Lines, Needle, Pattern, Ranges, Whole

MOST_RECORDED = 4096
"""Hints of one block before progressions are made of them."""


class Spent(Exception):
    """The work that a block may cost is used up. What was found until then counts."""


class Unready(Exception):
    """A draft decides something in a loop, and what the loop goes on to change is not written yet: say nothing."""


@dataclass(slots=True)
class Trace:
    """Hints in the order of execution."""

    characters: int
    """Length of the context, in characters."""
    lines: int | None
    """Lines of the context, where they are known."""
    work: int
    """Nodes of the program that may still be looked at."""
    hints: list[Hint] = field(default_factory=list)
    doubt: int = 0
    """Conditions around the current place that are not known."""
    loops: int = 0
    """Loops around the current place: a search for the first place goes on from there in the next round."""
    rounds: int = 0
    """Rounds of the enclosing loop if only a failed search ends it early; else 0."""
    may_leave: bool = False
    """Whether what is evaluated is taken item by item, by a loop that may be left early."""
    ends_early: bool = False
    """The same where the loop is known to its end, and of `next`, `readline` and their like."""

    def spend(self, nodes: int = 1) -> None:
        """Work, counted in nodes of the program."""
        self.work -= nodes
        if self.work < 0:
            raise Spent

    def record(self, hint: Hint) -> None:
        if len(self.hints) >= MOST_RECORDED:
            raise Spent
        if self.doubt and isinstance(hint, Ranges) and hint.is_literal:
            hint = replace(hint, is_literal=False)
        if self.ends_early and isinstance(hint, Whole | Needle | Pattern) and hint.reach == "all":
            hint = replace(hint, reach="some")
        if self.loops and isinstance(hint, Needle | Pattern) and hint.reach == "first":
            hint = replace(hint, reach="some")
        if self.rounds and isinstance(hint, Needle) and hint.reach == "unplaced":  # on from where the last round was
            hint = replace(hint, reach="some", hits=self.rounds)
        self.hints.append(hint)

    def record_range(self, start: int, stop: int, *, is_exact: bool = True) -> None:
        """One slice, given in characters of the context; nothing if it is empty."""
        start, stop = max(start, 0), min(stop, self.characters)
        if start < stop:
            self.record(Ranges(start, stop - start, stop - start, 1, is_literal=is_exact))

    def extend(self, hints: Iterable[Hint]) -> None:
        """The reads of a whole loop; its lines end where the text ends."""
        for hint in hints:
            if isinstance(hint, Lines) and self.lines is not None and hint.stop > self.lines:
                if hint.start >= self.lines:
                    continue
                hint = Lines(hint.start, self.lines)
            self.hints.append(hint)

    def take(self, mark: int) -> list[Hint]:
        """The hints since there were `mark` of them, which are no longer part of the trace."""
        taken = self.hints[mark:]
        del self.hints[mark:]
        return taken
