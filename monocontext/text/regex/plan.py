"""Plan how to run a pattern over a text that comes in windows, from its parse tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monocontext.format.filters.query import Literal, Query, longest_literal
from monocontext.text.regex import literals, tree, widths
from monocontext.text.regex.rewrite import Marked, Unmarkable, mark
from monocontext.text.regex.tree import Char, Group, Look, Seq
from monocontext.text.regex.widths import Stops

BOUND = 1 << 16
"""Characters that a match may reach for the plain pattern to run in windows with so much overlap. Above it the
rewritten pattern is cheaper, which says where the window does not suffice."""
_SHORT = 2
"""Characters of the shortest literal that is worth finding first: the engine is as fast for one character."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run one pattern.

    The first of `reach`, `stops` and `marked` that is not None is used; with all three None the text must be one `str`.
    """

    real: re.Pattern[str]
    left: int
    """Characters before the start of a match that the engine may read; at least 1, so that no window's edge looks like
    the beginning of the text."""
    reach: int | None
    """Characters from the start of a match that decide it."""
    stops: Stops | None
    """The same in stops (`widths.Stops`): decides most windows; `marked` decides the others."""
    marked: Marked | None
    """The rewritten pattern (`rewrite`), which works in every window but may need a larger one."""
    literal: Literal | None
    """A literal that every match has."""
    early_literal: Literal | None
    """A literal that every match has within the head of the rewritten pattern."""
    begins_with_literal: bool
    """The pattern begins with `literal`, so that the engine looks for its first character by itself."""
    query: Query | None
    """The literals that every match has, for search filters."""
    within_line: bool
    """Neither a match nor its look-around goes over a newline."""
    is_never_empty: bool
    """No match is empty."""
    sees_outside: bool
    """Groups may lie outside the match: one captures inside look-around."""

    @property
    def streams(self) -> bool:
        """Whether it can be run on less than the whole text."""
        return self.reach is not None or self.stops is not None or self.marked is not None


def plan(real: re.Pattern[str]) -> Plan:
    """Plan a pattern. Parses and compiles it a second time (no GET)."""
    nodes = tree.parse(real)
    if nodes is None:
        return Plan(real, 1, None, None, None, None, None, False, None, False, False, True)
    marked = None
    reach: int | None = widths.in_characters(nodes).of(nodes).reach
    stops = None
    if reach is None or reach > BOUND:
        reach = None
        stops = widths.stops(nodes)
        marked = _try_mark(nodes, real)
    query = literals.required(nodes)
    literal = _keep_if_long(longest_literal(query))
    return Plan(
        real=real,
        left=max(1, widths.left_reach(nodes)),
        reach=reach,
        stops=stops,
        marked=marked,
        literal=literal,
        early_literal=_keep_if_long(longest_literal(query, within=marked.head)) if marked else None,
        begins_with_literal=literal is not None and literal.latest == 0 and _begins_with_character(nodes),
        query=query,
        within_line=query is not None and not sees_newline(nodes),
        is_never_empty=widths.least_width(nodes) > 0,
        sees_outside=_sees_outside(nodes),
    )


def plan_to_end(real: re.Pattern[str]) -> Marked | None:
    """The rewritten pattern for `fullmatch`."""
    nodes = tree.parse(real)
    return None if nodes is None else _try_mark(nodes, real, to_end=True)


def _try_mark(nodes: Seq, real: re.Pattern[str], *, to_end: bool = False) -> Marked | None:
    try:
        return mark(nodes, real, to_end=to_end)
    except (Unmarkable, re.error, OverflowError, RecursionError):  # patterns that the compiler refuses are not streamed
        return None


def _keep_if_long(literal: Literal | None) -> Literal | None:
    return literal if literal and len(literal.text) >= _SHORT else None


def _begins_with_character(nodes: Seq) -> bool:
    match nodes[:1]:
        case (Char(_, literal, flags),):
            return bool(literal) and not flags & re.I
        case (Group(_, _, _, body),):
            return _begins_with_character(body)
    return False


def sees_newline(nodes: Seq) -> bool:
    """Whether any character of the pattern may be a newline."""
    characters = {node.key: node for node in widths.walk(nodes) if isinstance(node, Char)}
    return any(tree.build_plain((tree.with_own_flags(char),)).match("\n") for char in characters.values())


def _sees_outside(nodes: Seq) -> bool:
    return any(
        isinstance(node, Look) and any(isinstance(inner, Group) and inner.number for inner in widths.walk(node.body))
        for node in widths.walk(nodes)
    )
