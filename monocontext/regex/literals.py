"""Literals that every match of a pattern must contain (`needs`), read from its parse tree. Pure: no text is needed."""

from __future__ import annotations

import re

from monocontext.needs import INFINITE, All, Any, Literal, Need
from monocontext.regex import tree, widths
from monocontext.regex.tree import At, Atomic, Branch, Char, Group, Look, Node, Repeat, Seq

_UNROLLED = 8
"""Copies of a repeated literal that are put together."""


def required_literals(pattern: str | re.Pattern[str], flags: int = 0) -> Need | None:
    """What a text must contain for the pattern to match somewhere in it; None: nothing is known."""
    compiled = re.compile(pattern, flags)
    nodes = tree.parse(compiled)
    return None if nodes is None else required(nodes)


def required(nodes: Seq) -> Need | None:
    """The same from a tree."""
    collector = _Collector(widths.in_characters(nodes))
    collector.sequence(nodes)
    collector.end_run()
    return _all(collector.needs)


class _Collector:
    """Walks a sequence and gathers runs of literal characters that stand side by side."""

    def __init__(self, measure: widths.Measure, least: int = 0, most: int = 0):
        self.needs: list[Need] = []
        self._measure = measure
        self._least = least
        self._most = most
        self._run = ""
        self._run_flags = 0
        self._run_at = (0, 0)

    def sequence(self, nodes: Seq) -> None:
        for node in nodes:
            self._node(node)

    def end_run(self) -> None:
        if self._run:
            self.needs.append(Literal(self._run, self._run_flags, *self._run_at))
        self._run = ""

    def _node(self, node: Node) -> None:
        match node:
            case Char(_, literal, flags) if literal:
                self._character(literal, flags & int(re.I | re.A) if flags & re.I else 0)
            case Group(_, _, _, body) | Atomic(body):
                self.sequence(body)
            case At():
                pass
            case Look(ahead, negative, body):
                if ahead and not negative:
                    self._aside(body)
            case Repeat(low, high, _, body) if low:
                copies = low if low == high and low <= _UNROLLED else 1
                for _ in range(copies):
                    self.sequence(body)
                if copies != high:
                    self.end_run()
                    self._move(widths.least_width(body) * (low - copies), self._times(node, copies))
            case Branch(options):
                self.end_run()
                found = [self._apart(option) for option in options]
                if all(found):
                    self.needs.append(Any(tuple(need for need in found if need is not None)))
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
        self._run += literal
        self._move(1, 1)

    def _aside(self, body: Seq) -> None:
        """Required where we stand, without moving on."""
        if need := self._apart(body):
            self.needs.append(need)

    def _apart(self, body: Seq) -> Need | None:
        inner = _Collector(self._measure, self._least, self._most)
        inner.sequence(body)
        inner.end_run()
        return _all(inner.needs)

    def _skip(self, node: Node) -> None:
        self._move(widths.least_width((node,)), self._measure.of_node(node).width)

    def _times(self, repeat: Repeat, copies: int) -> int:
        """Characters that the repeats after the first few can take."""
        width = self._measure.of(repeat.body).width
        if repeat.high is None:
            return INFINITE if width else 0
        return width * (repeat.high - copies)

    def _move(self, least: int, most: int) -> None:
        self._least += least
        self._most = min(self._most + most, INFINITE)


def _all(needs: list[Need]) -> Need | None:
    if not needs:
        return None
    return needs[0] if len(needs) == 1 else All(tuple(needs))
