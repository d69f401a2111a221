"""Predict the reads of a model's code while it streams in, from what each finished line says by itself.

A line is parsed as soon as it ends, by itself. Nothing is run: an expression is folded from literals, `len(context)`,
and names that were set to such values; a read inside a loop for the first rounds and the last one: if these are evenly
spaced, so are the others. Prose that parses as code costs bytes, never more.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import add, floordiv, mod, mul, or_, sub, truediv
from typing import Any, Literal

MOST_HINTS = 256  # the most hints of one reply, and the most values of a list that are known
_MOST_LINE = 4_000  # characters of a line that are read
_MOST_NAMES, _MOST_NUMBER = 500, 1 << 62
"""The most names that are known, and the largest number: `9 ** 9 ** 9` takes no time."""

Reach = Literal["all", "first", "unplaced"]
"""The matches that a search looks for: all (`count`, `findall`), the first (`find`, `in`, `search`), or those from a
place that depends on the text: `context.find(word, end)`."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """Slices of equal width at equal distances, in the order of reading: `count` of `width` characters, the first at
    character `start`, each `step` characters after the one before it."""

    start: int
    width: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Search:
    """A text, or a regular expression with its flags, that is looked for in characters [start, stop)."""

    needle: str
    start: int
    stop: int
    reach: Reach
    ignore_case: bool = False
    """Whether the context was lowered or raised before."""
    backward: bool = False
    flags: int | None = None
    """Flags of a regular expression; None for a plain text."""


Hint = Ranges | Search
_Names = dict[str, Any]  # known values of names: a number, a text, a `range`, a tuple, the context

_SEARCHES: dict[str, tuple[Reach, bool]] = {
    "find": ("first", False), "index": ("first", False), "count": ("all", False),
    "rfind": ("first", True), "rindex": ("first", True),
}  # fmt: skip
"""Methods of a text that look for another: what they look for, and whether from the end."""
_MATCHES: dict[str, Reach] = {"search": "first", "findall": "all", "finditer": "first", "split": "all"}
"""The functions of `re` that are followed."""
_FLAGS = {*"IMSXAU", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII"}
_FUNCTIONS: dict[str, Any] = {
    "int": int, "min": min, "max": max, "abs": abs, "range": range, "round": lambda number: round(number),
}  # fmt: skip  # no digits: `round(5, -10 ** 9)` takes minutes
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv, ast.Div: truediv, ast.Mod: mod, ast.BitOr: or_
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Text:
    """The value of the context, or of a text of the same length made from it."""

    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class _Scope:
    """The names that lines see: of a reply, or of a loop in its first rounds and its last one."""

    indent: int
    """The margin of the loop's head; -1 outside of loops."""
    rounds: list[_Names]
    count: int
    """The number of rounds that the loop has."""


class CodeHints:
    """Predicts the reads of code about one text of so many characters, `context`. Never raises. Not thread-safe."""

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._names: _Names = {}
        self.begin()

    def begin(self) -> None:
        """Begin a new reply. Names that earlier replies defined are still known."""
        self._names["context"] = _Text()
        self._scopes = [_Scope(-1, [self._names], 1)]  # the loops around the last line, the innermost last
        self._rest = ""
        self._seen: set[Hint] = set()

    def feed(self, delta: str) -> list[Hint]:
        """Take the next piece of a reply; returns the hints of the lines that it completes, each hint once a reply."""
        *ended, rest = (self._rest + delta).split("\n")
        self._rest = rest[:_MOST_LINE]
        hints: list[Hint] = []
        for line in ended:
            with suppress(RecursionError):  # a statement that is too deep
                for hint in self._read_line(line[:_MOST_LINE].rstrip("\r")):
                    if hint not in self._seen and len(self._seen) < MOST_HINTS:
                        self._seen.add(hint)
                        hints.append(hint)
        return hints

    def _read_line(self, line: str) -> Iterator[Hint]:
        tree = _parse(line) if line.strip() and "```" not in line and "~~~" not in line else None
        if tree is None:
            return
        indent = len(line) - len(line.lstrip())
        while self._scopes[-1].indent >= indent:
            self._scopes.pop()
        for statement in tree.body:
            yield from self._statement(statement, indent)

    def _statement(self, node: ast.stmt, indent: int) -> Iterator[Hint]:
        """The reads of a statement, and of its body on the same line; then what it assigns is known."""
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from self._reads(part, self._scopes[-1])
        rounds = self._scopes[-1].rounds
        values = [self._fold(node.value, names) if isinstance(node, ast.Assign) else None for names in rounds]
        loop = self._loop(node.target, node.iter, self._scopes[-1], indent) if isinstance(node, ast.For) else None
        for stored in _stored_in(node):
            for names in [names for scope in self._scopes for names in scope.rounds]:
                names.pop(stored, None)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            for names, value in zip(rounds, values, strict=True):
                if value is not None and len(names) < _MOST_NAMES:
                    names[node.targets[0].id] = value
        if loop:
            self._scopes.append(loop)
        for body in getattr(node, "body", ()):
            yield from self._statement(body, indent)

    def _loop(self, target: ast.expr, source: ast.expr, scope: _Scope, indent: int) -> _Scope:
        """The scope of a loop's body. Loops around it stay in their first round."""
        rounds = self._fold(source, scope.rounds[0])
        if not isinstance(rounds, range | tuple) or not rounds or not isinstance(target, ast.Name):
            unknown = dict.fromkeys(_stored_in(target))
            return _Scope(indent, [names | unknown for names in scope.rounds], scope.count)
        # `_even_ranges` tells from the first three rounds and the last one where those between them read.
        chosen = rounds if isinstance(rounds, tuple) or len(rounds) <= 4 else (*rounds[:3], rounds[-1])
        return _Scope(indent, [scope.rounds[0] | {target.id: value} for value in chosen], len(rounds))

    def _reads(self, node: ast.expr, scope: _Scope, is_drained: bool = False) -> Iterator[Hint]:
        """The reads of an expression and of its parts. `is_drained`: a list is made of all its items."""
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                yield from self._reads(generator.iter, scope, not isinstance(node, ast.GeneratorExp))
                scope = self._loop(generator.target, generator.iter, scope, scope.indent)
        match node:
            case ast.Subscript(value=text, slice=index):
                yield from self._subscript(text, index, scope)
            case ast.Compare(left=needle, ops=[ast.In() | ast.NotIn()], comparators=[text]):
                yield from self._search(text, [needle], scope, "first", False, None)
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=name), args=[pattern, text, *flags]):
                if name in _MATCHES:
                    flags += [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
                    folded = self._fold(flags[0], scope.rounds[0]) if flags else 0
                    if isinstance(folded, int):
                        reach: Reach = "all" if is_drained else _MATCHES[name]
                        yield from self._search(text, [pattern], scope, reach, False, int(folded))
            case ast.Call(func=ast.Attribute(value=text, attr=name), args=arguments) if name in _SEARCHES:
                yield from self._search(text, arguments, scope, *_SEARCHES[name], None)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr | ast.keyword):
                yield from self._reads(part.value if isinstance(part, ast.keyword) else part, scope)

    def _subscript(self, text: ast.expr, index: ast.expr, scope: _Scope) -> Iterator[Hint]:
        """The slices `text[index]` in all rounds of a loop; none if a known round reads an unknown one."""
        spans = [span for names in scope.rounds if (span := self._span(index, names))]
        if not isinstance(self._fold(text, scope.rounds[0]), _Text) or len(spans) < len(scope.rounds):
            return
        if len(set(spans)) == 1:
            spans = spans[:1]
        elif len(spans) < scope.count and (ranges := _even_ranges(spans, scope.count)):
            yield from ranges
            return
        for start, stop in spans:
            if start < stop:
                yield Ranges(start, stop - start, stop - start, 1)

    def _search(
        self, node: ast.expr, arguments: list[ast.expr], scope: _Scope, reach: Reach, backward: bool, flags: int | None
    ) -> Iterator[Hint]:
        """The search of a call `text.find(needle, start, stop)` or the like, in each known round of a loop."""
        text = self._fold(node, scope.rounds[0])
        if not isinstance(text, _Text) or not arguments:
            return
        flags = flags | re.IGNORECASE if flags is not None and text.ignore_case else flags
        bounds = [self._fold(argument, scope.rounds[0]) for argument in arguments[1:3]]
        if not all(isinstance(bound, int) for bound in bounds):
            reach, bounds = "unplaced", []
        start, stop, _ = slice(*[*bounds, None, None][:2]).indices(self._characters)
        for names in scope.rounds:
            needle = self._fold(arguments[0], names)
            if isinstance(needle, str) and needle and start < stop:
                yield Search(needle, start, stop, reach, text.ignore_case and flags is None, backward, flags)

    def _span(self, index: ast.expr, names: _Names) -> tuple[int, int] | None:
        """The characters [start, stop) that an index reads; None if they are unknown."""
        if isinstance(index, ast.Slice) and index.step is None:
            start = self._fold(index.lower, names) if index.lower else 0
            stop = self._fold(index.upper, names) if index.upper else self._characters
        else:
            start = self._fold(index, names)
            stop = start + 1 if isinstance(start, int) and start != -1 else self._characters
        is_known = isinstance(start, int) and isinstance(stop, int)
        return slice(start, stop).indices(self._characters)[:2] if is_known else None

    def _fold(self, node: ast.expr, names: _Names) -> Any:
        """The value of an expression; None if it is unknown."""
        value: Any = None
        try:
            match node:
                case ast.Constant(value=int() | float() | str()):
                    value = node.value
                case ast.Name(id=name):
                    value = names.get(name)
                case ast.Attribute(value=ast.Name("re"), attr=name) if name in _FLAGS:
                    value = int(getattr(re, name))
                case ast.Tuple(elts=items) | ast.List(elts=items) if 0 < len(items) <= MOST_HINTS:
                    folded = tuple([self._fold(item, names) for item in items])
                    value = None if None in folded else folded
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    value = -self._fold(operand, names)
                case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                    sides = self._fold(left, names), self._fold(right, names)
                    if not any(isinstance(side, str | tuple) for side in sides):
                        value = _OPERATIONS[type(op)](*sides)
                case ast.Call(func=ast.Name("len"), args=[text]) if isinstance(self._fold(text, names), _Text):
                    value = self._characters
                case ast.Call(func=ast.Name(name), args=arguments) if name in _FUNCTIONS:
                    numbers = [self._fold(argument, names) for argument in arguments]
                    if all(isinstance(number, int | float) for number in numbers):  # not max(range(10**10))
                        value = _FUNCTIONS[name](*numbers)
                case ast.Call(func=ast.Attribute(value=text, attr="lower" | "upper" | "casefold"), args=[]):
                    value = _Text(ignore_case=True) if isinstance(self._fold(text, names), _Text) else None
        except (ArithmeticError, TypeError, ValueError, AttributeError):
            return None
        return None if isinstance(value, int | float) and not abs(value) < _MOST_NUMBER else value


def _even_ranges(spans: list[tuple[int, int]], count: int) -> list[Ranges]:
    """The slices in all rounds of a loop, from those in its first three and its last one; empty if they are not evenly
    spaced. The first may differ from the others: `max(0, i - 500)`."""
    first, (start, stop), (third, _), (last, _) = spans
    step, width = third - start, stop - start
    if width <= 0 or last - start != step * (count - 2):
        return []
    if first == (start - step, stop - step):
        return [Ranges(start - step, width, step, count)]
    first_width = first[1] - first[0]
    return [Ranges(first[0], first_width, first_width, 1), Ranges(start, width, step, count - 1)]


def _stored_in(node: ast.AST) -> set[str]:
    """The names that a statement or a target sets."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _parse(source: str) -> ast.Module | None:
    """The tree of a statement without its margin; the head of a loop or of a condition gets an empty body."""
    source = re.sub(r"^\s*(?:el(?=if\b))?", "", source)  # an elif as an if
    if source.rstrip().endswith(":"):
        source += " pass"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
