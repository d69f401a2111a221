"""Predict the reads of a model's code while it streams in, line by line.

    print(context[:2000])                          Ranges(start=0, width=2000, step=2000, count=1)
    for i in range(0, len(context), 5000):         no read by itself
        parts.append(context[i : i + 5000])        Ranges(start=0, width=5000, step=5000, count=...)
    where = context.lower().find("error")          Search("error", reach="first", ignore_case=True)

Each line is parsed by itself as soon as it ends. Nothing is run: an expression is evaluated only if it consists of
literals, `len(context)`, and names that were set to such values. The reads in a loop are computed for its first rounds
and its last one: if these are evenly spaced, so are the others. Prose that parses as code only costs needless reads.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from operator import add, floordiv, mod, mul, or_, sub, truediv
from typing import Any, Literal, NamedTuple

MOST_HINTS = 256  # the most hints of one reply
_MOST_ITEMS = 256  # the longest list whose values are remembered
_MOST_LINE_CHARACTERS = 4_000  # the rest of a longer line is ignored
_MOST_NAMES = 500  # the most names whose values are remembered
_MOST_NUMBER = 1 << 62  # larger numbers are unknown, so that a chain of products takes no time

Reach = Literal["all", "first", "unplaced"]
"""The matches that a search looks for: all (`count`, `findall`); the first (`find`, `in`, `search`); or "unplaced",
those after an offset that depends on the text (`context.find(word, end)`)."""


@dataclass(frozen=True, slots=True)
class Ranges:
    """`count` slices of `width` characters: the first begins at `start`, each other one `step` after the one before."""

    start: int
    width: int
    step: int
    count: int


@dataclass(frozen=True, slots=True)
class Search:
    """A search in characters [start, stop)."""

    needle: str  # the text to find, or a regular expression
    start: int
    stop: int
    reach: Reach
    ignore_case: bool = False  # whether the search is in `context.lower()`, `.upper()` or `.casefold()`
    backward: bool = False
    flags: int | None = None  # the flags of a regular expression; None for a plain text


Hint = Ranges | Search
_Names = dict[str, Any]  # the known values of names: a number, a text, a `range`, a tuple, or `_Text` for the context


class _Method(NamedTuple):
    """How a method or function searches."""

    reach: Reach
    backward: bool = False
    flags: int | None = None  # of a regular expression; None for a plain text


_SEARCHES = {
    "find": _Method("first"), "index": _Method("first"), "count": _Method("all"),
    "rfind": _Method("first", backward=True), "rindex": _Method("first", backward=True),
}  # fmt: skip
"""The methods of `str` that search."""
_REGEX_SEARCHES: dict[str, Reach] = {"search": "first", "findall": "all", "finditer": "first", "split": "all"}
"""The functions of `re` that search."""
_FLAGS = {*"IMSXAU", "IGNORECASE", "MULTILINE", "DOTALL", "VERBOSE", "ASCII"}  # attributes of `re`
_FUNCTIONS: dict[str, Any] = {
    "int": int, "min": min, "max": max, "abs": abs, "range": range, "round": lambda number: round(number),
}  # fmt: skip
"""The functions that are called with known numbers. `round` takes no digits: `round(5, -10 ** 9)` takes minutes."""
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: add, ast.Sub: sub, ast.Mult: mul, ast.FloorDiv: floordiv, ast.Div: truediv, ast.Mod: mod, ast.BitOr: or_
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Text:
    """The context, or a copy of it in another case, which is taken to have the same length."""

    ignore_case: bool = False  # whether it is such a copy


@dataclass(frozen=True, slots=True)
class _Scope:
    """The known names in a block of code: those of a reply, or those of a loop in some of its rounds."""

    indent: int  # the indentation of the line that begins the loop; -1 outside of loops
    rounds: list[_Names]
    """The names in each round that is followed: the first three and the last one, or all if they are few."""
    count: int  # the number of all rounds


class CodeHints:
    """Predicts what code reads of one text, which is its variable `context`. Never raises. Not thread-safe."""

    def __init__(self, characters: int) -> None:
        """`characters`: the length of the text."""
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
        """Take the next piece of a reply. Returns the hints of the lines that it completes, none twice in a reply."""
        *lines, rest = (self._rest + delta).split("\n")
        self._rest = rest[:_MOST_LINE_CHARACTERS]
        hints: list[Hint] = []
        for line in lines:
            with suppress(RecursionError):  # a statement that is nested too deeply
                for hint in self._read_line(line[:_MOST_LINE_CHARACTERS].rstrip("\r")):
                    if hint not in self._seen and len(self._seen) < MOST_HINTS:
                        self._seen.add(hint)
                        hints.append(hint)
        return hints

    def _read_line(self, line: str) -> Iterator[Hint]:
        """The reads of a line of code; none for prose and for the fences of a block."""
        tree = _parse(line) if line.strip() and "```" not in line and "~~~" not in line else None
        if tree is None:
            return
        indent = len(line) - len(line.lstrip())
        while self._scopes[-1].indent >= indent:
            self._scopes.pop()
        for statement in tree.body:
            yield from self._statement(statement, indent)

    def _statement(self, node: ast.stmt, indent: int) -> Iterator[Hint]:
        """The reads of a statement, and of a body on its line. Remembers what it assigns, and the scope of a loop."""
        scope = self._scopes[-1]
        loop: _Scope | None = None
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from self._reads(part, scope)
        assigned, values = "", list[Any]()  # found before the old values are forgotten: `x = x + 1`
        match node:
            case ast.Assign(targets=[ast.Name(id=assigned)], value=expression):
                values = [self._value(expression, names) for names in scope.rounds]
            case ast.For(target=target, iter=items):
                loop = self._loop(target, items, scope, indent)
        for stored in _stored_in(node):
            for names in [names for outer in self._scopes for names in outer.rounds]:
                names.pop(stored, None)
        for names, value in zip(scope.rounds, values, strict=False):
            if value is not None and len(names) < _MOST_NAMES:
                names[assigned] = value
        if loop:
            self._scopes.append(loop)
        for body in getattr(node, "body", ()):
            yield from self._statement(body, indent)

    def _loop(self, target: ast.expr, source: ast.expr, scope: _Scope, indent: int) -> _Scope:
        """The scope of the body of a loop `for target in source`. Loops around it stay in their first round."""
        items = self._value(source, scope.rounds[0])
        if not isinstance(items, range | tuple) or not items or not isinstance(target, ast.Name):
            unknown = dict.fromkeys(_stored_in(target))
            return _Scope(indent, [names | unknown for names in scope.rounds], scope.count)
        # `_even_ranges` tells from the first three rounds and the last one where those between them read.
        followed = items if isinstance(items, tuple) or len(items) <= 4 else (*items[:3], items[-1])
        return _Scope(indent, [scope.rounds[0] | {target.id: item} for item in followed], len(items))

    def _reads(self, node: ast.expr, scope: _Scope, is_drained: bool = False) -> Iterator[Hint]:
        """The reads of an expression and of its parts. `is_drained`: a comprehension takes all items of its result."""
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                yield from self._reads(generator.iter, scope, not isinstance(node, ast.GeneratorExp))
                scope = self._loop(generator.target, generator.iter, scope, scope.indent)
        match node:
            case ast.Subscript(value=text, slice=index):
                yield from self._subscript(text, index, scope)
            case ast.Compare(left=needle, ops=[ast.In() | ast.NotIn()], comparators=[text]):
                yield from self._search(text, [needle], scope, _Method("first"))
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=name), args=[pattern, text, *arguments]):
                if name in _REGEX_SEARCHES:
                    arguments += [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
                    flags = self._value(arguments[0], scope.rounds[0]) if arguments else 0
                    if isinstance(flags, int):
                        reach = "all" if is_drained else _REGEX_SEARCHES[name]
                        yield from self._search(text, [pattern], scope, _Method(reach, flags=int(flags)))
            case ast.Call(func=ast.Attribute(value=text, attr=name), args=arguments) if name in _SEARCHES:
                yield from self._search(text, arguments, scope, _SEARCHES[name])
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr | ast.keyword):
                yield from self._reads(part.value if isinstance(part, ast.keyword) else part, scope)

    def _subscript(self, text: ast.expr, index: ast.expr, scope: _Scope) -> Iterator[Hint]:
        """The slices `text[index]` in all rounds of a loop; none if any followed round has an unknown index."""
        spans = [span for names in scope.rounds if (span := self._span(index, names))]
        if not isinstance(self._value(text, scope.rounds[0]), _Text) or len(spans) < len(scope.rounds):
            return
        if len(set(spans)) == 1:
            spans = spans[:1]
        elif len(spans) < scope.count and (ranges := _even_ranges(spans, scope.count)):
            yield from ranges
            return
        for start, stop in spans:
            if start < stop:
                yield Ranges(start, stop - start, stop - start, 1)

    def _search(self, searched: ast.expr, arguments: list[ast.expr], scope: _Scope, method: _Method) -> Iterator[Hint]:
        """The search of a call `searched.find(needle, start, stop)` or the like, in each followed round of a loop."""
        reach, backward, flags = method
        text = self._value(searched, scope.rounds[0])
        if not isinstance(text, _Text) or not arguments:
            return
        if flags is not None and text.ignore_case:
            flags |= re.IGNORECASE
        bounds = [self._value(argument, scope.rounds[0]) for argument in arguments[1:3]]
        if not all(isinstance(bound, int) for bound in bounds):
            reach, bounds = "unplaced", []
        start, stop, _ = slice(*[*bounds, None, None][:2]).indices(self._characters)
        for names in scope.rounds:
            needle = self._value(arguments[0], names)
            if isinstance(needle, str) and needle and start < stop:
                yield Search(needle, start, stop, reach, text.ignore_case and flags is None, backward, flags)

    def _span(self, index: ast.expr, names: _Names) -> tuple[int, int] | None:
        """The characters [start, stop) that an index reads; None if they are unknown."""
        if isinstance(index, ast.Slice) and index.step is None:
            start = self._value(index.lower, names) if index.lower else 0
            stop = self._value(index.upper, names) if index.upper else self._characters
        else:
            start = self._value(index, names)
            stop = start + 1 if isinstance(start, int) and start != -1 else self._characters
        is_known = isinstance(start, int) and isinstance(stop, int)
        return slice(start, stop).indices(self._characters)[:2] if is_known else None

    def _value(self, node: ast.expr, names: _Names) -> Any:
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
                case ast.Tuple(elts=items) | ast.List(elts=items) if 0 < len(items) <= _MOST_ITEMS:
                    values = tuple([self._value(item, names) for item in items])
                    value = None if None in values else values
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    value = -self._value(operand, names)
                case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                    sides = self._value(left, names), self._value(right, names)
                    if not any(isinstance(side, str | tuple) for side in sides):  # not "-" * 10 ** 12
                        value = _OPERATIONS[type(op)](*sides)
                case ast.Call(func=ast.Name("len"), args=[text]) if isinstance(self._value(text, names), _Text):
                    value = self._characters
                case ast.Call(func=ast.Name(name), args=arguments) if name in _FUNCTIONS:
                    numbers = [self._value(argument, names) for argument in arguments]
                    if all(isinstance(number, int | float) for number in numbers):  # not max(range(10 ** 10))
                        value = _FUNCTIONS[name](*numbers)
                case ast.Call(func=ast.Attribute(value=text, attr="lower" | "upper" | "casefold"), args=[]):
                    value = _Text(ignore_case=True) if isinstance(self._value(text, names), _Text) else None
        except (ArithmeticError, TypeError, ValueError, AttributeError):
            return None
        return None if isinstance(value, int | float) and not abs(value) < _MOST_NUMBER else value


def _even_ranges(spans: list[tuple[int, int]], count: int) -> list[Ranges]:
    """The slices in all rounds of a loop, from those in its first three and its last one; empty if they are not evenly
    spaced. The first may differ from the others: `max(0, i - 500)`."""
    (first, first_stop), (second, second_stop), (third, _), (last, _) = spans
    step, width = third - second, second_stop - second
    if width <= 0 or last - second != step * (count - 2):
        return []
    if (first, first_stop) == (second - step, second_stop - step):
        return [Ranges(first, width, step, count)]
    first_width = first_stop - first
    return [Ranges(first, first_width, first_width, 1), Ranges(second, width, step, count - 1)]


def _stored_in(node: ast.AST) -> set[str]:
    """The names that a statement or a target sets."""
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}


def _parse(source: str) -> ast.Module | None:
    """The tree of a line without its indentation; None if that is no code. The head of a block gets the body `pass`."""
    source = re.sub(r"^\s*(?:el(?=if\b))?", "", source)  # `elif x:` becomes `if x:`
    if source.rstrip().endswith(":"):
        source += " pass"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
