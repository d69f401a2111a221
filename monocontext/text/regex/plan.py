"""Plan how to run a pattern over a text that is read in windows, from its parse tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monocontext.format.filters.query import Literal, Query, longest_literal
from monocontext.text.regex import literals, tree, widths
from monocontext.text.regex.rewrite import Marked, Unmarkable, mark
from monocontext.text.regex.tree import Char, Group, Look, Seq
from monocontext.text.regex.widths import Stops

BOUND = 1 << 16
"""The most characters by which windows overlap, so that the plain pattern can run in each. If matches reach farther,
the marked pattern is cheaper."""
_LEAST_LITERAL = 2
"""The fewest characters of a literal that is looked for first. For one character the engine is as fast."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run one pattern. The defaults are those of a pattern that cannot be parsed.

    The first of `reach`, `stops` and `marked` that is not None is used. With all three None the text must be one `str`.
    """

    real: re.Pattern[str]
    left: int = 1
    """The most characters before the start of a match that the engine reads. At least 1, since the engine would take
    the edge of a window for the beginning of the text."""
    reach: int | None = None
    """The most characters from the start of a match on that the engine reads; None if they are more than `BOUND`."""
    stops: Stops | None = None
    """The reach in stops (see `widths.Stops`). They decide most windows, and `marked` decides the others."""
    marked: Marked | None = None
    """The marked pattern (see `rewrite`). It works in every window, but may need a larger one."""
    literal: Literal | None = None
    """A literal that every match has."""
    early_literal: Literal | None = None
    """A literal that every match has within `marked.head` characters."""
    begins_with_literal: bool = False
    """Whether the pattern begins with `literal`. The engine then looks for the first character of it by itself."""
    query: Query | None = None
    """The literals that every match has, for search filters; None if unknown."""
    within_line: bool = False
    """Whether no match and no look-around goes over a newline."""
    is_never_empty: bool = False
    """Whether no match is empty."""
    sees_outside: bool = True
    """Whether groups may be outside the match, since one captures inside look-around."""

    @property
    def streams(self) -> bool:
        """Whether the pattern can run on less than the whole text."""
        return self.reach is not None or self.stops is not None or self.marked is not None


def plan(real: re.Pattern[str]) -> Plan:
    """Plan a pattern. Parses and compiles it a second time (no GET)."""
    nodes = tree.parse(real)
    if nodes is None:
        return Plan(real)
    reach = widths.in_characters(nodes).of(nodes).reach
    is_bounded = reach <= BOUND
    marked = None if is_bounded else _try_mark(nodes, real)
    query = literals.required(nodes)
    literal = _keep_if_long(longest_literal(query))
    return Plan(
        real=real,
        left=max(1, widths.left_reach(nodes)),
        reach=reach if is_bounded else None,
        stops=None if is_bounded else widths.stops(nodes),
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
    """The marked pattern for `fullmatch`; None if there is none."""
    nodes = tree.parse(real)
    return None if nodes is None else _try_mark(nodes, real, to_end=True)


def _try_mark(nodes: Seq, real: re.Pattern[str], *, to_end: bool = False) -> Marked | None:
    try:
        return mark(nodes, real, to_end=to_end)
    except (Unmarkable, re.error, OverflowError, RecursionError):  # the last three: the compiler refuses the tree
        return None


def _keep_if_long(literal: Literal | None) -> Literal | None:
    return literal if literal and len(literal.text) >= _LEAST_LITERAL else None


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
    """Whether a group captures inside look-around."""
    return any(
        isinstance(node, Look) and any(isinstance(inner, Group) and inner.number for inner in widths.walk(node.body))
        for node in widths.walk(nodes)
    )
