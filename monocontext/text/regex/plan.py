r"""Tell from the parse tree of a pattern how far its matches reach, and which literals they need.

Only this file uses the private `re._parser`, which knows the width of each part of a pattern. It is the same in CPython
3.11 to 3.14. If it is missing, or a tree has an unknown opcode, the pattern runs on the whole text, up to the limit.
"""

from __future__ import annotations

import re
import string
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, cast

from monocontext.format.filters.query import INFINITE, All, AnyOf, Literal, Query, longest_literal
from monocontext.records import dataclass, replace

try:
    from re import _compiler, _parser  # type: ignore[attr-defined]
    from re import _constants as _op  # type: ignore[attr-defined]
except ImportError:  # pragma: no cover  (a Python later than those that this was written for)
    _compiler = _parser = _op = cast("Any", None)

BOUND = 1 << 16  # the most characters that a match of a bounded pattern reaches: windows overlap by as many
RUN = 1 << 12
r"""A repeat of one character class, such as `.+`, `\s*` or `[^"]*`, matches fewer than twice as many characters where
each block of so many has one that the class has not. Most text is so."""
_PARSER_FLAGS = int(re.I | re.M | re.S | re.X | re.A | re.U)
_TYPE_FLAGS = int(re.A | re.L | re.U)
_REPEATS = _parser and (_op.MAX_REPEAT, _op.MIN_REPEAT, _op.POSSESSIVE_REPEAT)

Node = tuple[Any, Any]  # an opcode of `re`, and its arguments


@dataclass(frozen=True, slots=True)
class PatternPlan:
    """How to run one pattern. The defaults are those of a pattern that needs all of its text at once."""

    real: re.Pattern[str]
    least_width: int = 0
    """The fewest characters of a match."""
    left: int = 1
    """The most characters before the start of a match that the engine reads. At least 1, since the engine would take
    the edge of a window for the beginning of the text."""
    reach: int | None = None
    """The most characters from the start of a match on that the engine reads; None if they are more than `BOUND`."""
    run_stops: tuple[re.Pattern[str], ...] = ()
    """The characters that end each unbounded repeat. `reach` holds only where they are close together (`RUN`)."""
    within_line: bool = False
    """Whether no match and no look-around goes over a newline."""
    sees_one_line: bool = False
    r"""Whether it matches a line among others as that line alone: within a line, and no position but `\b`."""
    query: Query | None = None
    """The literals that every match has, for search filters; None if unknown."""
    literal: str = ""
    """A literal that the window of every match has, in this case; empty if unknown."""
    literal_latest: int = 0
    """The most characters from the start of a match to `literal`; `INFINITE` for no limit."""
    is_literal: bool = False
    """Whether every match is `literal` itself."""
    parts: tuple[PatternPlan, ...] = ()
    """The parts between repeats such as `(?s).*?`, if the pattern consists of parts that stream."""

    @property
    def streams(self) -> bool:
        """Whether the pattern can run on less than the whole text."""
        return self.reach is not None or self.within_line or bool(self.parts)

    def has_short_runs(self, text: str, start: int) -> bool:
        """Whether the engine reads at most `reach` characters from `start` on, for matches that begin before it."""
        starts = range(start, len(text) - RUN + 1, RUN)
        return all(stop.search(text, start, start + RUN) for stop in self.run_stops for start in starts)


def plan(real: re.Pattern[str]) -> PatternPlan:
    """Plan a pattern. Parses it a second time (no GET)."""
    if _parser is None or not isinstance(real.pattern, str):
        return PatternPlan(real)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the first compilation has warned already
        return _plan_tree(real, _parser.parse(real.pattern, real.flags & _PARSER_FLAGS))


def _plan_tree(real: re.Pattern[str], tree: Any) -> PatternPlan:
    nodes = list(_walk(tree, tree.state.flags))
    if not _known_opcodes().issuperset(op for (op, _), _ in nodes):
        return PatternPlan(real)
    reach = _reach(tree, tree.state, tree.state.flags) + 2  # `$` looks at two characters
    behind = (value[1] for (op, value), _ in nodes if op in (_op.ASSERT, _op.ASSERT_NOT) and value[0] < 0)
    left = 1 + sum(body.getwidth()[1] for body in behind)
    within_line = not any(_may_match_newline(node, flags) for node, flags in nodes)
    runs = {(repr(node), flags): _run_stop(node[1][2], flags) for node, flags in nodes if _is_unbounded(*node)}
    query = _Collector(tree.state).collect(tree, tree.state.flags)
    literal = longest_literal(query)
    result = PatternPlan(
        real=real,
        least_width=tree.getwidth()[0],
        left=left,
        reach=reach if reach <= BOUND and not (runs and within_line) else None,
        run_stops=tuple(stop for stop in runs.values() if stop is not None),
        within_line=within_line,
        sees_one_line=within_line and all(value is _op.AT_BOUNDARY for (op, value), _ in nodes if op is _op.AT),
        query=query,
        literal=literal.text if literal and not literal.flags else "",
        literal_latest=literal.latest if literal else 0,
        is_literal=bool(tree) and all(op is _op.LITERAL for op, _ in tree) and not tree.state.flags & re.I,
    )
    refers = any(op in (_op.GROUPREF, _op.GROUPREF_EXISTS) for (op, _), _ in nodes)
    return result if result.streams or refers else replace(result, parts=_parts(tree))


def _parts(tree: Any) -> tuple[PatternPlan, ...]:
    """The parts of a pattern (`PatternPlan.parts`). None if one of them does not stream, or the first may be empty."""
    parts: list[list[Node]] = [[]]
    for op, value in _flat(tree):
        is_any = op is _op.MIN_REPEAT and list(value[2]) == [(_op.ANY, None)] and tree.state.flags & re.S
        if is_any and value[0] <= BOUND and value[1] == _op.MAXREPEAT:
            parts[-1] += list(value[2]) * value[0]
            parts.append([])
        else:
            parts[-1].append((op, value))
    trees = [_parser.SubPattern(tree.state, nodes) for nodes in parts]
    if len(parts) == 1 or not trees[0].getwidth()[0]:
        return ()
    plans = tuple(_plan_tree(_compiler.compile(part), part) for part in trees)
    return plans if all(part.streams for part in plans) else ()


def _flat(nodes: Iterable[Node]) -> Iterator[Node]:
    """A sequence of nodes with the contents of groups in place of the groups."""
    for op, value in nodes:
        if op is _op.SUBPATTERN and not value[1] and not value[2]:
            yield from _flat(value[3])
        else:
            yield op, value


def required_literals(pattern: str | re.Pattern[str], flags: int = 0) -> Query | None:
    """The literals that a text must contain for the pattern to match; None if unknown. Raises `re.error`."""
    return plan(re.compile(pattern, flags)).query


# -- the tree ----------------------------------------------------------------------------------------------------------


def _known_opcodes() -> frozenset[Any]:
    names = """ANY ASSERT ASSERT_NOT AT ATOMIC_GROUP BRANCH FAILURE GROUPREF GROUPREF_EXISTS IN LITERAL MAX_REPEAT
        MIN_REPEAT NOT_LITERAL POSSESSIVE_REPEAT SUBPATTERN"""
    return frozenset(getattr(_op, name) for name in names.split())


def _bodies(op: Any, value: Any) -> Iterable[Any]:
    """The sequences that a node is made of."""
    if op in _REPEATS:
        return (value[2],)
    if op is _op.SUBPATTERN:
        return (value[3],)
    if op is _op.BRANCH:
        return tuple(value[1])
    if op in (_op.ASSERT, _op.ASSERT_NOT):
        return (value[1],)
    if op is _op.ATOMIC_GROUP:
        return (value,)
    if op is _op.GROUPREF_EXISTS:
        return tuple(body for body in value[1:] if body is not None)
    return ()


def _inner_flags(op: Any, value: Any, flags: int) -> int:
    """The flags that are in force inside a node."""
    if op is not _op.SUBPATTERN:
        return flags
    _, add, drop, _ = value
    return ((flags & ~_TYPE_FLAGS if add & _TYPE_FLAGS else flags) | int(add)) & ~int(drop)


def _walk(nodes: Iterable[Node], flags: int) -> Iterator[tuple[Node, int]]:
    """All nodes of a tree, each with the flags that are in force there."""
    for op, value in nodes:
        yield (op, value), flags
        for body in _bodies(op, value):
            yield from _walk(body, _inner_flags(op, value, flags))


def _reach(nodes: Iterable[Node], state: Any, flags: int) -> int:
    """The most characters that the engine reads from the start of a match on, where runs are short."""
    total = 0
    for op, value in nodes:
        inner = [_reach(body, state, _inner_flags(op, value, flags)) for body in _bodies(op, value)]
        if op in _REPEATS:
            is_run = _is_unbounded(op, value) and _run_stop(value[2], flags) is not None
            total += 2 * RUN if is_run else inner[0] * int(value[1])
        else:
            total += max(inner, default=0) or _parser.SubPattern(state, [(op, value)]).getwidth()[1]
    return total


def _is_unbounded(op: Any, value: Any) -> bool:
    return op in _REPEATS and value[1] == _op.MAXREPEAT


def _run_stop(body: Any, flags: int) -> re.Pattern[str] | None:
    """A pattern of the characters that end a repeat of a body; None unless the body is one character, but not any."""
    if len(body) != 1:
        return None
    op, value = body[0]
    if op is _op.ANY and not flags & re.S:
        op, value = _op.LITERAL, ord("\n")
    elif op in (_op.LITERAL, _op.NOT_LITERAL):
        op = _op.NOT_LITERAL if op is _op.LITERAL else _op.LITERAL
    elif op is _op.IN:
        value = value[1:] if value[0][0] is _op.NEGATE else [(_op.NEGATE, None), *value]
    else:
        return None
    scoped = (None, flags, body.state.flags & ~flags, _parser.SubPattern(body.state, [(op, value)]))
    stop = cast("re.Pattern[str]", _compiler.compile(_parser.SubPattern(body.state, [(_op.SUBPATTERN, scoped)])))
    return stop if stop.search(string.printable) else None


def _may_match_newline(node: Node, flags: int) -> bool:
    op, value = node
    if op is _op.LITERAL:
        return bool(value == ord("\n"))
    if op is _op.NOT_LITERAL:
        return bool(value != ord("\n"))
    if op is _op.ANY:
        return bool(flags & re.S)
    return op is _op.IN and _holds_newline(value)


def _holds_newline(items: list[Node]) -> bool:
    """Whether a class such as `[^a-z]` has the newline."""
    spaces = (_op.CATEGORY_SPACE, _op.CATEGORY_NOT_DIGIT, _op.CATEGORY_NOT_WORD)
    holds = any(
        (op is _op.LITERAL and value == ord("\n"))
        or (op is _op.RANGE and value[0] <= ord("\n") <= value[1])
        or (op is _op.CATEGORY and value in spaces)
        for op, value in items
    )
    return holds is not (items[0][0] is _op.NEGATE)


# -- literals ----------------------------------------------------------------------------------------------------------


class _Collector:
    """Walks a sequence of nodes and collects runs of adjacent literal characters."""

    def __init__(self, state: Any, least: int = 0, most: int = 0):
        self._queries: list[Query] = []
        """The literals that were met. A match has all of them."""
        self._state = state
        self._least, self._most = least, most
        """The fewest and the most characters from the start of a match to the next node."""
        self._run: list[str] = []
        """The characters of the current run. They are joined once, since a pattern may have a million."""
        self._run_flags = 0
        self._run_start = (0, 0)
        """The fewest and the most characters from the start of a match to the run."""

    def collect(self, body: Any, flags: int) -> Query | None:
        """The literals that every match of a body has, which begins at the next node; None if there are none."""
        inner = _Collector(self._state, self._least, self._most)
        inner._sequence(body, flags)
        inner._end_run()
        if not inner._queries:
            return None
        return inner._queries[0] if len(inner._queries) == 1 else All(tuple(inner._queries))

    def _sequence(self, nodes: Iterable[Node], flags: int) -> None:
        for op, value in nodes:
            self._node(op, value, flags)

    def _node(self, op: Any, value: Any, flags: int) -> None:
        if op is _op.LITERAL:
            self._character(chr(value), flags & int(re.I | re.A) if flags & re.I else 0)
        elif op in (_op.SUBPATTERN, _op.ATOMIC_GROUP):
            for body in _bodies(op, value):
                self._sequence(body, _inner_flags(op, value, flags))
        elif op is _op.AT:
            pass
        elif op in (_op.ASSERT, _op.ASSERT_NOT):
            if op is _op.ASSERT and value[0] > 0 and (query := self.collect(value[1], flags)):
                self._queries.append(query)
        elif op in _REPEATS and value[0]:
            self._repeat(value, flags)
        else:
            self._end_run()
            if op is _op.BRANCH:
                options = [self.collect(option, flags) for option in value[1]]
                if all(options):
                    self._queries.append(AnyOf(tuple(query for query in options if query is not None)))
            self._move(*_parser.SubPattern(self._state, [(op, value)]).getwidth())

    def _repeat(self, repeat: tuple[int, int, Any], flags: int) -> None:
        low, high, body = repeat
        self._sequence(body, flags)
        if high != 1:
            self._end_run()
            least, most = body.getwidth()
            self._move(least * (low - 1), INFINITE if high == _op.MAXREPEAT and most else most * (high - 1))

    def _character(self, literal: str, flags: int) -> None:
        if self._run and flags != self._run_flags:
            self._end_run()
        if not self._run:
            self._run_flags = flags
            self._run_start = (self._least, self._most)
        self._run.append(literal)
        self._move(1, 1)

    def _end_run(self) -> None:
        if self._run:
            self._queries.append(Literal("".join(self._run), self._run_flags, *self._run_start))
        self._run = []

    def _move(self, least: int, most: int) -> None:
        """Go on to the next node. `re` counts widths up to `MAXREPEAT`, which stands for no limit."""
        self._least += least
        self._most = INFINITE if most >= _op.MAXREPEAT else min(self._most + most, INFINITE)
