r"""Measure how far a match can reach, from the parse tree, to decide whether a window has enough text.

Lengths are counted in characters, or only in *stops*: the characters that no unlimited repeat of the pattern can match.
`(\w+)\s*=.*` is unlimited in characters, but limited in stops. The stops of `.*`, for example, are the newlines. All
lengths are upper bounds for every path of the engine, including paths that fail.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field

from monocontext.format.filters.query import INFINITE
from monocontext.text.regex import tree
from monocontext.text.regex.tree import At, Atomic, Branch, Char, Cond, Fail, Group, Look, Node, Ref, Repeat, Seq

LONG_REPEAT = 1000
"""The most copies of a repeat that is not taken for unlimited, when the stops of a pattern are computed."""

_REACH_AT = {"begin": 0, "end": 2, "end_string": 1, "boundary": 1}
"""Characters that an anchor reads to its right: `$` also checks whether a newline is the last character."""
_PROBE = "".join(map(chr, range(0x250))) + "\u2028\u3000\u4e00"
"""Frequent characters. A pattern with no stop among these is not searched by stops."""


@dataclass(frozen=True, slots=True)
class Extent:
    """How far a part of a pattern reaches from the start of its match."""

    width: int
    """The longest match of the part."""
    reach: int
    """The most that the engine reads for the part, including look-ahead; at least `width`."""


NOTHING = Extent(0, 0)


@dataclass
class Measure:
    """Computes extents in one unit. It remembers those of groups, for the references to them."""

    cost: Callable[[Char], int]
    """The most that one character of this node counts."""
    characters: Measure | None = None
    """The measure that counts all characters; None if this one does."""
    _groups: dict[int, Extent] = field(default_factory=dict)

    def of(self, nodes: Seq) -> Extent:
        width = reach = 0
        for node in nodes:
            extent = self.of_node(node)
            reach = max(reach, width + extent.reach)
            width += extent.width
        return Extent(min(width, INFINITE), min(reach, INFINITE))

    def of_node(self, node: Node) -> Extent:
        match node:
            case Char():
                return Extent(self.cost(node), 1)
            case Repeat(_, high, _, body):
                return _times(self.of(body), high)
            case Group(number, _, _, body):
                extent = self.of(body)
                if number is not None:
                    self._groups[number] = extent
                return extent
            case Atomic(body):
                return self.of(body)
            case Branch(options):
                return _widest([self.of(option) for option in options])
            case Cond(_, yes, no):
                return _widest([self.of(yes), self.of(no)])
            case Look(_, _, body):
                return Extent(0, self.of(body).reach)
            case At(_, where):
                return Extent(0, _REACH_AT[where])
            case Ref():
                return self._of_ref(node)
            case Fail():
                return NOTHING

    def _of_ref(self, ref: Ref) -> Extent:
        """The extent of a back-reference: that of its group.

        If case is ignored, its characters may differ from the group's, and be stops where those are not. Then all
        characters are counted.
        """
        if self.characters is not None:
            whole = self.characters.of_node(ref)
            if ref.ignore_case:
                return whole
        width = self._groups[ref.group].width
        return Extent(width, min(width + 1, INFINITE))


def _times(extent: Extent, high: int | None) -> Extent:
    if high == 0:
        return NOTHING
    if high is None:
        return extent if extent.width == 0 else Extent(INFINITE, INFINITE)
    return Extent(min(extent.width * high, INFINITE), min(extent.width * (high - 1) + extent.reach, INFINITE))


def _widest(extents: list[Extent]) -> Extent:
    return Extent(max(extent.width for extent in extents), max(extent.reach for extent in extents))


def in_characters(nodes: Seq) -> Measure:
    """The measure that counts every character, with the groups of this pattern."""
    measure = Measure(lambda char: 1)
    measure.of(nodes)
    return measure


def least_width(nodes: Seq) -> int:
    """The length of the shortest match, in characters."""
    return sum(_least(node) for node in nodes)


def _least(node: Node) -> int:
    match node:
        case Char():
            return 1
        case Repeat(low, _, _, body):
            return low * least_width(body)
        case Group(_, _, _, body) | Atomic(body):
            return least_width(body)
        case Branch(options):
            return min(least_width(option) for option in options)
        case Cond(_, yes, no):
            return min(least_width(yes), least_width(no))
        case _:
            return 0


def left_reach(nodes: Seq) -> int:
    """The most characters before the start of a match that the engine reads: 1 for anchors, more for look-behind."""
    characters = in_characters(nodes)
    reach = 0
    for node in walk(nodes):
        if isinstance(node, At):
            reach = max(reach, 1)
        elif isinstance(node, Look) and not node.ahead:
            reach = max(reach, characters.of(node.body).width + left_reach(node.body))
    return reach


def walk(nodes: Seq) -> list[Node]:
    """All nodes of a tree, outer ones first."""
    found: list[Node] = []
    for node in nodes:
        found.append(node)
        for part in parts(node):
            found.extend(walk(part))
    return found


def parts(node: Node) -> tuple[Seq, ...]:
    """The sequences that a node is made of."""
    match node:
        case Repeat(_, _, _, body) | Group(_, _, _, body) | Look(_, _, body) | Atomic(body):
            return (body,)
        case Branch(options):
            return options
        case Cond(_, yes, no):
            return (yes, no)
        case _:
            return ()


@dataclass(frozen=True, slots=True)
class Stops:
    """The reach of a pattern in stops. The text up to the `count`-th stop after a place, with that stop, decides
    whether a match starts at the place."""

    stop: re.Pattern[str]
    """A pattern that matches one stop."""
    count: int

    def limit(self, window: str, far: int = INFINITE) -> int:
        """The first place in the window with too few stops after it to decide whether a match starts there.

        0 if no place has enough, or if there are too few within `far` characters of the end.
        """
        tail = min(4 * self.count + 4, far)  # to find many stops is slow, so search a short tail first
        while True:
            low = max(0, len(window) - tail)
            found = [match.start() for match in self.stop.finditer(window, low)]
            if len(found) >= self.count:
                return found[-self.count] + 1
            if low == 0 or tail == far:
                return 0
            tail = min(8 * tail, far)


def stops(nodes: Seq) -> Stops | None:
    """The stops of a pattern with unlimited repeats; None if it has no stops, or reaches over too many."""
    repeated: dict[str, Char] = {}
    for node in walk(nodes):
        if isinstance(node, Repeat) and (node.high is None or node.high > LONG_REPEAT):
            repeated.update((inner.key, inner) for inner in walk(node.body) if isinstance(inner, Char))
    if not repeated:
        return None
    measure = Measure(lambda char: 0 if char.key in repeated else 1, in_characters(nodes))
    count = measure.of(nodes).reach
    if count > LONG_REPEAT:
        return None
    not_repeated = tuple(Look(True, True, (tree.with_own_flags(char),)) for char in repeated.values())
    stop = tree.build_plain((*not_repeated, tree.any_character()))
    return Stops(stop, count) if stop.search(_PROBE) else None
