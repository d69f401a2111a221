r"""Rewrite a pattern so that its matches tell whether the engine needed text past the end of its window.

Java's matcher calls this `hitEnd`. At each place where the engine would need a character past the end, the rewritten
pattern first takes another path: to the end of the window, through one extra, empty *marker group*, and past the rest
of the pattern. The engine tries paths in the same order as before. So a match in a window tells about the whole text:
- A match without the marker was found before the engine needed text past the end. Any longer text has it too.
- If there is no match at a place, none starts there, whatever text follows.
- A match with the marker decides nothing. The engine needs a larger window.
A marker too many costs a second search, while one too few would give a wrong match. So in doubt, it marks.

How each part of a pattern is rewritten:

- a stretch of bounded reach r:  `(to the end, if fewer than r characters are left; mark | the stretch, the rest)`
- `X*` of one character:         `(X*+ at the end, mark | X* the rest)`
- `X*?`:                         `(X*? the rest | X*+ at the end, mark)`
- groups, branches, look-ahead, larger repeats: rewritten inside; what follows (a repeated body too) only if not marked
- `(?!X)`:                       `(?=X rewritten, fails unless marked)` or the original

The *head* of a pattern, the stretch of bounded reach with which it begins, stays as it is, so the engine can still look
for a literal prefix or a first character. Matches that start with less text than the head before the end are undecided.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from monocontext.text.regex import tree
from monocontext.text.regex.tree import Atomic, Branch, Char, Cond, Fail, Group, Look, Node, Repeat, Seq
from monocontext.text.regex.widths import Measure, in_characters, walk

BOUNDED = 1000
"""The most characters that a stretch may read. A guard checks that a window has these left, and else marks."""


class Unmarkable(Exception):
    """The pattern cannot be rewritten exactly.

    Either it is unknown how far the engine reads, for an unlimited back-reference or a look-ahead inside look-behind.
    Or a group captures inside a possessive repeat or an atomic group. It may keep the span of a failed attempt, which
    depends on how the pattern is compiled, and for which CPython 3.11 may even raise `SystemError`.
    """


@dataclass(frozen=True, slots=True)
class Marked:
    """A rewritten pattern."""

    pattern: re.Pattern[str]
    marker: int
    """The number of the marker group, which matches where the engine needs text past the end."""
    head: int
    """The reach of the head. Matches that start fewer characters before the end of the window are undecided."""


def mark(nodes: Seq, pattern: re.Pattern[str], *, to_end: bool = False) -> Marked:
    r"""Rewrite the tree of `pattern`. `to_end`: as if `\Z` followed it, for `fullmatch`. Raises `Unmarkable`."""
    if _captures_without_backtracking(nodes):
        raise Unmarkable
    if to_end:
        nodes = (*nodes, tree.end_of_string())
    rewriter = _Rewriter(tree.marker_group(pattern), in_characters(nodes))
    rewritten = rewriter.sequence(nodes)
    # An undecided match must not be empty, or the engine would refuse it where it has just found an empty one.
    final = Cond(rewriter.marker, (Repeat(0, None, "possessive", (tree.any_character(),)),), ())
    return Marked(tree.build((*rewritten, final), pattern), rewriter.marker, rewriter.head)


def _captures_without_backtracking(nodes: Seq) -> bool:
    return any(
        any(isinstance(inner, Group) and inner.number for inner in walk(node.body))
        for node in walk(nodes)
        if isinstance(node, Atomic) or (isinstance(node, Repeat) and node.kind == "possessive")
    )


class _Rewriter:
    """Rewrites the nodes of one pattern."""

    def __init__(self, marker: int, measure: Measure):
        self.marker = marker
        self._measure = measure
        self._in_head = True
        """Whether the next node belongs to the head."""
        self._head_width = 0
        """The most characters that the head matches before the next node."""
        self.head = 0
        """The reach of the head so far."""

    def sequence(self, nodes: Seq) -> Seq:
        """The rewritten nodes. Once the marker is set, all nodes after it are skipped."""
        if not nodes:
            return ()
        stretch = self._count_bounded(nodes)
        if stretch:
            return self._guard(nodes[:stretch], nodes[stretch:])
        first, rest = nodes[0], nodes[1:]
        if isinstance(first, Repeat) and len(first.body) == 1 and isinstance(first.body[0], Char):
            return self._rewrite_run(first, rest)
        if isinstance(first, Look) and first.negative:
            return self._rewrite_negative_look(first, rest)
        rewritten = self._rewrite_inside(first)
        self._in_head = False
        return (rewritten, *self._unless_marked(self.sequence(rest)))

    def _count_bounded(self, nodes: Seq) -> int:
        """The number of nodes at the beginning that together read at most `BOUNDED` characters."""
        width = 0
        for count, node in enumerate(nodes):
            extent = self._measure.of_node(node)
            if width + extent.reach > BOUNDED:
                return count
            width += extent.width
        return len(nodes)

    def _guard(self, stretch: Seq, rest: Seq) -> Seq:
        """Rewrite a stretch of bounded reach: mark if the window has fewer characters left than its reach."""
        extent = self._measure.of(stretch)
        if self._in_head:
            self.head = max(self.head, self._head_width + extent.reach)
            self._head_width += extent.width
            return (*stretch, *self.sequence(rest))
        tail = (*stretch, *self.sequence(rest))
        if not extent.reach:
            return tail
        fewer = Repeat(0, extent.reach - 1, "possessive", (tree.any_character(),))
        return (Branch(((fewer, *self._mark()), tail)),)

    def _rewrite_run(self, repeat: Repeat, rest: Seq) -> Seq:
        """Rewrite a repeat of one character. If its required copies are bounded, they become a stretch before it."""
        if 0 < repeat.low <= BOUNDED:
            least = repeat.body if repeat.low == 1 else (Repeat(repeat.low, repeat.low, "greedy", repeat.body),)
            high = None if repeat.high is None else repeat.high - repeat.low
            return self.sequence((*least, Repeat(0, high, repeat.kind, repeat.body), *rest))
        self._in_head = False
        tail = (repeat, *self.sequence(rest))
        to_end = (Repeat(0, repeat.high, "possessive", repeat.body), *self._mark())
        return (Branch((tail, to_end) if repeat.kind == "lazy" else (to_end, tail)),)

    def _rewrite_negative_look(self, look: Look, rest: Seq) -> Seq:
        self._in_head = False
        if not look.ahead:
            raise Unmarkable
        seen = Look(True, False, (*self.sequence(look.body), Cond(self.marker, (), (Fail(),))))
        return (Branch(((seen,), (look, *self.sequence(rest)))),)

    def _rewrite_inside(self, node: Node) -> Node:
        match node:
            case Group(number, add, drop, body):
                return Group(number, add, drop, self.sequence(body))
            case Atomic(body):
                return Atomic(self.sequence(body))
            case Look(True, _, body):
                return Look(True, False, self.sequence(body))
            case Branch(options):
                return Branch(self._rewrite_options(options))
            case Repeat(low, high, kind, body):
                self._in_head = False
                return Repeat(low, high, kind, self._unless_marked(self.sequence(body)))
            case Cond(group, yes, no):
                self._in_head = False
                return Cond(group, self.sequence(yes), self.sequence(no))
            case _:
                raise Unmarkable

    def _rewrite_options(self, options: tuple[Seq, ...]) -> tuple[Seq, ...]:
        """Rewrite the options of a branch. The head may continue in each of them."""
        in_head, width = self._in_head, self._head_width
        rewritten = []
        for option in options:
            self._in_head, self._head_width = in_head, width
            rewritten.append(self.sequence(option))
        return tuple(rewritten)

    def _mark(self) -> Seq:
        """Nodes that match at the end of the window and set the marker."""
        return (tree.end_of_string(), Group(self.marker, 0, 0, ()))

    def _unless_marked(self, nodes: Seq) -> Seq:
        return (Cond(self.marker, (), nodes),) if nodes else ()
