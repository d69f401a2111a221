"""How a pattern is to be run over a text that comes in windows: decided once, from its parse tree."""

from __future__ import annotations

import re
from dataclasses import dataclass

from monocontext.needs import Literal, Need, longest
from monocontext.regex import literals, tree, widths
from monocontext.regex.rewrite import Marked, Unmarkable, mark
from monocontext.regex.tree import Char, Group, Look, Seq
from monocontext.regex.widths import Stops

BOUND = 1 << 16
"""Characters that a match may reach for the plain pattern to run in windows with so much overlap. Above it is cheaper
to ask the rewritten pattern where the window did not suffice."""
_SHORT = 2
"""Characters of the shortest literal that it pays to look for first: the engine is as fast for one."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is known of a pattern.

    Of the three ways the first that is not None is taken; with all three None the text must be one `str`.
    """

    real: re.Pattern[str]
    left: int
    """Characters before a start that the engine may look at; at least 1, so that no window's edge looks like the
    beginning of the text."""
    reach: int | None
    """Characters from a start on that decide it."""
    stops: Stops | None
    """The same counted in stops (`widths.Stops`): decides most windows, the others fall to `marked`."""
    marked: Marked | None
    """The rewritten pattern (`rewrite`), which works in every window but may ask for a larger one."""
    literal: Literal | None
    """Every match has it."""
    early_literal: Literal | None
    """Every match has it within the head of the rewritten pattern."""
    need: Need | None
    """What every match has, for search filters."""
    within_line: bool
    """Neither a match nor what it looks at reaches over a newline."""
    is_never_empty: bool
    """No match is empty."""
    sees_outside: bool
    """Groups may lie outside the match: one captures inside look-around."""

    @property
    def streams(self) -> bool:
        """Whether it can be run on less than the whole text."""
        return self.reach is not None or self.stops is not None or self.marked is not None


def plan(real: re.Pattern[str]) -> Plan:
    """Choose. Costs a second parse and compilation of the pattern, and no GET."""
    nodes = tree.parse(real)
    if nodes is None:
        return Plan(real, 1, None, None, None, None, None, None, False, False, True)
    marked = None
    reach: int | None = widths.in_characters(nodes).of(nodes).reach
    stops = None
    if reach is None or reach > BOUND:
        reach = None
        stops = widths.stops(nodes)
        marked = _marked(nodes, real)
    need = literals.required(nodes)
    return Plan(
        real=real,
        left=max(1, widths.left_reach(nodes)),
        reach=reach,
        stops=stops,
        marked=marked,
        literal=_worth(longest(need)),
        early_literal=_worth(longest(need, within=marked.head)) if marked else None,
        need=need,
        within_line=need is not None and not sees_newline(nodes),
        is_never_empty=widths.least_width(nodes) > 0,
        sees_outside=_sees_outside(nodes),
    )


def plan_to_end(real: re.Pattern[str]) -> Marked | None:
    """The rewritten pattern for `fullmatch`."""
    nodes = tree.parse(real)
    return None if nodes is None else _marked(nodes, real, to_end=True)


def _marked(nodes: Seq, real: re.Pattern[str], *, to_end: bool = False) -> Marked | None:
    try:
        return mark(nodes, real, to_end=to_end)
    except (Unmarkable, re.error, OverflowError, RecursionError):  # what the compiler refuses is not streamed
        return None


def _worth(literal: Literal | None) -> Literal | None:
    return literal if literal and len(literal.text) >= _SHORT else None


def sees_newline(nodes: Seq) -> bool:
    """Whether any character of the pattern may be a newline."""
    characters = {node.key: node for node in widths.walk(nodes) if isinstance(node, Char)}
    return any(tree.build_plain((tree.with_own_flags(char),)).match("\n") for char in characters.values())


def _sees_outside(nodes: Seq) -> bool:
    return any(
        isinstance(node, Look) and any(isinstance(inner, Group) and inner.number for inner in widths.walk(node.body))
        for node in widths.walk(nodes)
    )
