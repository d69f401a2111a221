"""Find the literals that every match of a pattern must contain, in its parse tree. Pure: reads no text."""

from __future__ import annotations

import re

from monocontext.format.filters.query import INFINITE, All, Any, Literal, Query
from monocontext.text.regex import tree, widths
from monocontext.text.regex.tree import At, Atomic, Branch, Char, Group, Look, Node, Repeat, Seq

_UNROLLED = 8
"""The most copies of a repeated literal that are joined."""


def required_literals(pattern: str | re.Pattern[str], flags: int = 0) -> Query | None:
    """The literals that a text must contain for the pattern to match; None if unknown. Raises `re.error`."""
    compiled = re.compile(pattern, flags)
    nodes = tree.parse(compiled)
    return None if nodes is None else required(nodes)


def required(nodes: Seq) -> Query | None:
    """The literals that every match of a parse tree contains; None if unknown."""
    collector = _Collector(widths.in_characters(nodes))
    collector.sequence(nodes)
    collector.end_run()
    return _all(collector.queries)


class _Collector:
    """Walks a sequence of nodes and collects runs of adjacent literal characters."""

    def __init__(self, measure: widths.Measure, least: int = 0, most: int = 0):
        self.queries: list[Query] = []
        """The literals that are found. A match has all of them."""
        self._measure = measure
        self._least, self._most = least, most
        """The fewest and the most characters from the start of a match to the next node."""
        self._run: list[str] = []
        """The characters of the current run. They are joined once, since a pattern may have a million."""
        self._run_flags = 0
        self._run_at = (0, 0)
        """The fewest and the most characters from the start of a match to the run."""

    def sequence(self, nodes: Seq) -> None:
        for node in nodes:
            self._node(node)

    def end_run(self) -> None:
        """Add the current run to the queries."""
        if self._run:
            self.queries.append(Literal("".join(self._run), self._run_flags, *self._run_at))
        self._run = []

    def _node(self, node: Node) -> None:
        match node:
            case Char(_, literal, flags) if literal:
                self._character(literal, flags & int(re.I | re.A) if flags & re.I else 0)
            case Group(_, _, _, body) | Atomic(body):
                self.sequence(body)
            case At():
                pass
            case Look(ahead, negative, body):
                if ahead and not negative and (query := self._collect(body)):
                    self.queries.append(query)
            case Repeat(low, high, _, body) if low:
                copies = low if low == high and low <= _UNROLLED else 1
                for _ in range(copies):
                    self.sequence(body)
                if copies != high:
                    self.end_run()
                    self._move(widths.least_width(body) * (low - copies), self._repeat_width(node, copies))
            case Branch(options):
                self.end_run()
                found = [self._collect(option) for option in options]
                if all(found):
                    self.queries.append(Any(tuple(query for query in found if query is not None)))
                self._skip(node)
            case _:
                self.end_run()
                self._skip(node)

    def _character(self, literal: str, flags: int) -> None:
        if self._run and flags != self._run_flags:
            self.end_run()
        if not self._run:
            self._run_flags = flags
            self._run_at = (self._least, self._most)
        self._run.append(literal)
        self._move(1, 1)

    def _collect(self, body: Seq) -> Query | None:
        """The literals of a body that begins at this place; None if there are none."""
        inner = _Collector(self._measure, self._least, self._most)
        inner.sequence(body)
        inner.end_run()
        return _all(inner.queries)

    def _skip(self, node: Node) -> None:
        """Move to the place after a node."""
        self._move(widths.least_width((node,)), self._measure.of_node(node).width)

    def _repeat_width(self, repeat: Repeat, copies: int) -> int:
        """The most characters that the repeats after the first copies can match."""
        width = self._measure.of(repeat.body).width
        if repeat.high is None:
            return INFINITE if width else 0
        return width * (repeat.high - copies)

    def _move(self, least: int, most: int) -> None:
        self._least += least
        self._most = min(self._most + most, INFINITE)


def _all(queries: list[Query]) -> Query | None:
    if not queries:
        return None
    return queries[0] if len(queries) == 1 else All(tuple(queries))
