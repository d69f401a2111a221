r"""Plan how to run a pattern: how far its matches reach, and which literals they need.

A pattern that `syntax.parse` cannot parse runs on the whole text, up to the limit.
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Any

from monocontext.format.filters.query import Literal, Query, longest_literal
from monocontext.records import dataclass, replace
from monocontext.text.regex import syntax
from monocontext.text.regex.literals import literals_of
from monocontext.text.regex.syntax import Node, Tree, opcode

MOST_REACH = 1 << 18  # the most characters that a match of a bounded pattern reaches: windows overlap by as many
RUN_CHARACTERS = 1 << 12
r"""A repeat of one character class, such as `\s*`, ends at the next character outside the class. If each block of this
many characters has such a character, as in most text, the repeat matches fewer than twice as many."""


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """How to run one pattern. The defaults are those of a pattern that needs all of its text at once."""

    compiled: re.Pattern[str]
    least_width: int = 0
    """The fewest characters of a match."""
    reach_back: int = 1
    """The most characters before the start of a match that the engine reads. At least 1, since the engine would take
    the edge of a window for the beginning of the text."""
    reach: int | None = None
    """The most characters from the start of a match on that the engine reads; None for more than `MOST_REACH`."""
    run_stops: tuple[re.Pattern[str], ...] = ()
    r"""For each unbounded repeat, a pattern of the character that ends it: `\S` for `\s*`. `reach` needs these near."""
    within_line: bool = False
    """Whether no match and no look-around crosses a newline."""
    sees_one_line: bool = False
    r"""Whether the pattern matches a line in a text as the line alone: `within_line`, and no anchor but `\b`."""
    query: Query | None = None
    """The literals that every match has, for search filters; None if unknown."""
    literal: str = ""
    """A case-sensitive literal that the window of every match contains; empty if unknown."""
    near_literal: Literal | None = None
    """A case-sensitive literal that every match has within `MOST_REACH` characters of its start; None if unknown."""
    is_literal: bool = False
    """Whether every match is `literal` itself."""
    parts: tuple[PatternPlan, ...] = ()
    """The parts between repeats such as `(?s).*?`, if each part streams; else empty."""

    @property
    def streams(self) -> bool:
        """Whether the pattern can run on less than the whole text."""
        return self.reach is not None or self.within_line or bool(self.parts)

    def first_undecided(self, window: str, start: int) -> int:
        """The first position in a window, from `start` on, at which a match may depend on text after the window.

        The last character of the window stands for the next one of the text, whatever that is.
        """
        if self.parts:
            return self._first_undecided_of_parts(window, start)
        last = len(window) - 1
        if self.within_line and (newline := window.rfind("\n", start, last)) >= 0:
            return newline + 1  # matches in a line that ends in the window depend on no text after it
        if self.reach is not None and last - self.reach > start and self._has_short_runs(window, last - self.reach):
            return last - self.reach  # matches that begin before it end in the window
        if self.near_literal is not None:  # without the literal at most `latest` characters later, nothing matches
            literal, latest = self.near_literal.text, self.near_literal.latest
            location = window.find(literal, start)
            if location < 0:
                location = len(window) - len(literal)  # where it may begin with its end after the window
            return max(start, location - latest)
        return start

    def _has_short_runs(self, window: str, start: int) -> bool:
        """Whether `reach` holds for matches that begin before `start`: after it, each block ends every repeat."""
        blocks = range(start, len(window) - RUN_CHARACTERS, RUN_CHARACTERS)
        return all(stop.search(window, block, block + RUN_CHARACTERS) for stop in self.run_stops for block in blocks)

    def _first_undecided_of_parts(self, window: str, start: int) -> int:
        """`first_undecided` for a pattern in parts: after each part `re` takes the nearest match of the next part. So
        if each part has a decided match, `re` looks no further than these matches."""
        head, *others = self.parts
        match = head.compiled.search(window, start)
        undecided = head.first_undecided(window, start)
        if match is None or match.start() >= undecided:
            return undecided
        first = match.start()
        for part in others:
            stop = match.end()
            match = part.compiled.search(window, stop)
            if match is None or match.start() >= part.first_undecided(window, stop):
                return first
        return first + 1


@lru_cache(maxsize=512)
def plan(compiled: re.Pattern[str]) -> PatternPlan:
    """The plan of a pattern. Its first use parses the pattern a second time."""
    tree = syntax.parse(compiled)
    return PatternPlan(compiled) if tree is None else _plan_tree(compiled, tree)


def required_literals(pattern: str | re.Pattern[str], flags: int = 0) -> Query | None:
    """The literals that a text must contain for the pattern to match; None if unknown. Raises `re.error`."""
    return plan(re.compile(pattern, flags)).query


def _plan_tree(compiled: re.Pattern[str], tree: Tree) -> PatternPlan:
    """Plan a pattern, or a part of a pattern, from its tree."""
    nodes = list(syntax.walk(tree, tree.state.flags))
    opcodes = {op for (op, _), _ in nodes}
    look_behinds = (value[1] for (op, value), _ in nodes if op in (opcode.ASSERT, opcode.ASSERT_NOT) and value[0] < 0)
    boundaries = {value for (op, value), _ in nodes if op is opcode.AT}
    within_line = not any(_may_match_newline(op, value, tree.state, flags) for (op, value), flags in nodes)
    reach = _reach(tree, tree.state, tree.state.flags) + 2  # `$` looks at two characters
    # One for each different repeat, since a pattern may have thousands of equal ones.
    runs = {(repr(node), flags): _run_stop(node[1][2], flags) for node, flags in nodes if syntax.is_unbounded(*node)}
    query = literals_of(tree)
    literal = longest_literal(query)
    near = longest_literal(query, MOST_REACH)
    result = PatternPlan(
        compiled=compiled,
        least_width=tree.getwidth()[0],
        reach_back=1 + sum(body.getwidth()[1] for body in look_behinds),
        reach=reach if reach <= MOST_REACH else None,
        run_stops=tuple(stop for stop in runs.values() if stop is not None),
        within_line=within_line,
        sees_one_line=within_line and boundaries <= {opcode.AT_BOUNDARY},
        query=query,
        literal=literal.text if literal and not literal.flags else "",
        near_literal=near if near and not near.flags else None,
        is_literal=opcodes == {opcode.LITERAL} and not tree.state.flags & re.I,
    )
    if result.streams or opcodes & {opcode.GROUPREF, opcode.GROUPREF_EXISTS}:
        return result
    return replace(result, parts=_parts(tree))


def _parts(tree: Tree) -> tuple[PatternPlan, ...]:
    """The parts of a pattern, such as `start` and `end` of `(?s)start(.*?)end`. Empty if the pattern has no such
    repeat, if a part does not stream, or if the first part may match the empty string."""
    state = tree.state
    parts: list[list[Node]] = [[]]
    for op, value in _without_groups(tree):
        is_any = op is opcode.MIN_REPEAT and list(value[2]) == [(opcode.ANY, None)] and state.flags & re.S
        if is_any and value[0] <= MOST_REACH and syntax.is_unbounded(op, value):
            parts[-1] += list(value[2]) * value[0]  # the characters that `.+?` takes at least
            parts.append([])
        else:
            parts[-1].append((op, value))
    if len(parts) == 1 or not syntax.subtree(parts[0], state).getwidth()[0]:
        return ()
    plans = [
        _plan_tree(syntax.compile_nodes(nodes, state, state.flags), syntax.subtree(nodes, state)) for nodes in parts
    ]
    return tuple(plans) if all(plan.streams for plan in plans) else ()


def _without_groups(nodes: Iterable[Node]) -> Iterator[Node]:
    """The nodes, with the contents of each group in its place."""
    for op, value in nodes:
        if op is opcode.SUBPATTERN and not value[1] and not value[2]:
            yield from _without_groups(value[3])
        else:
            yield op, value


def _reach(nodes: Iterable[Node], state: Any, flags: int) -> int:
    """The most characters that the engine reads from the start of a match on, if repeats are short (`run_stops`)."""
    total = 0
    for op, value in nodes:
        inner = [_reach(body, state, syntax.inner_flags(op, value, flags)) for body in syntax.bodies(value)]
        if syntax.is_unbounded(op, value) and _run_stop(value[2], flags) is not None:
            total += 2 * RUN_CHARACTERS
        elif op in syntax.REPEATS:
            total += inner[0] * int(value[1])
        else:
            total += max(inner, default=0) or syntax.subtree([(op, value)], state).getwidth()[1]
    return total


def _run_stop(body: Tree, flags: int) -> re.Pattern[str] | None:
    """A pattern of the character that ends a repeat of `body`, such as `[^a]` for `a*`; None if none is known."""
    if len(body) != 1 or body[0][0] not in syntax.CHARACTERS:
        return None
    stop = syntax.compile_nodes([(opcode.ASSERT_NOT, (1, body)), syntax.ANY_CHARACTER], body.state, flags)
    return stop if stop.search(string.printable) else None


def _may_match_newline(op: Any, value: Any, state: Any, flags: int) -> bool:
    """Whether a node that matches one character matches a newline."""
    if op is opcode.LITERAL:  # as most nodes are
        return bool(value == ord("\n"))
    return op in syntax.CHARACTERS and syntax.compile_nodes([(op, value)], state, flags).match("\n") is not None
