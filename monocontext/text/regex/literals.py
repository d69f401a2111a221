"""Collect the literals that every match of a pattern has, from its tree."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from monocontext.format.filters.query import INFINITE, All, AnyOf, Literal, Query
from monocontext.text.regex.syntax import REPEATS, Node, Tree, bodies, inner_flags, opcode, subtree


def literals_of(tree: Tree) -> Query | None:
    """The literals that every match has; None if there are none."""
    return _Collector(tree.state).collect(tree, tree.state.flags)


class _Collector:
    """Walks nodes and joins adjacent characters to literals: `ab(?:c|de)+f?` has "ab", and "c" or "de"."""

    def __init__(self, state: Any, earliest: int = 0, latest: int = 0):
        self._queries: list[Query] = []
        """The literals so far. A match has all of them."""
        self._state = state
        self._earliest, self._latest = earliest, latest
        """The fewest and the most characters from the start of a match to the next node."""
        self._run: list[str] = []
        """The characters of the current literal. They are joined once, since a pattern may have a million."""
        self._run_flags = 0
        self._run_start = (0, 0)
        """The fewest and the most characters from the start of a match to the current literal."""

    def collect(self, body: Iterable[Node], flags: int) -> Query | None:
        """The literals that every match of `body`, which begins at the next node, has; None if there are none."""
        inner = _Collector(self._state, self._earliest, self._latest)
        inner._add(body, flags)
        inner._end_run()
        if not inner._queries:
            return None
        return inner._queries[0] if len(inner._queries) == 1 else All(tuple(inner._queries))

    def _add(self, nodes: Iterable[Node], flags: int) -> None:
        """Collect the literals of the next nodes. A node that a match may lack, such as `x?`, has none."""
        for op, value in nodes:
            if op is opcode.LITERAL:
                self._add_character(chr(value), flags & int(re.I | re.A) if flags & re.I else 0)
            elif op in (opcode.SUBPATTERN, opcode.ATOMIC_GROUP):
                self._add(bodies(value)[0], inner_flags(op, value, flags))
            elif op in (opcode.ASSERT, opcode.ASSERT_NOT):
                if op is opcode.ASSERT and value[0] > 0 and (query := self.collect(value[1], flags)):
                    self._queries.append(query)
            elif op in REPEATS and value[0]:
                self._add_repeat(value, flags)
            elif op is not opcode.AT:
                self._end_run()
                options = [self.collect(option, flags) for option in bodies(value)] if op is opcode.BRANCH else [None]
                if all(options):
                    self._queries.append(AnyOf(tuple(query for query in options if query is not None)))
                self._move(*subtree([(op, value)], self._state).getwidth())

    def _add_repeat(self, repeat: tuple[int, int, Any], flags: int) -> None:
        """Collect the first of the required repetitions, and move over the others."""
        low, high, body = repeat
        self._add(body, flags)
        if high != 1:
            self._end_run()
            least, most = body.getwidth()
            self._move(least * (low - 1), INFINITE if high == opcode.MAXREPEAT and most else most * (high - 1))

    def _add_character(self, character: str, flags: int) -> None:
        """Add a character to the current literal, or begin one."""
        if self._run and flags != self._run_flags:
            self._end_run()
        if not self._run:
            self._run_flags = flags
            self._run_start = (self._earliest, self._latest)
        self._run.append(character)
        self._move(1, 1)

    def _end_run(self) -> None:
        """End the current literal, if there is one."""
        if self._run:
            self._queries.append(Literal("".join(self._run), self._run_flags, *self._run_start))
        self._run = []

    def _move(self, least: int, most: int) -> None:
        """Go on to the next node. `re` counts widths up to `MAXREPEAT`, which stands for no limit."""
        self._earliest += least
        self._latest = INFINITE if most >= opcode.MAXREPEAT else min(self._latest + most, INFINITE)
