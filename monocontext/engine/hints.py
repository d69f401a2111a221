"""Predict the reads of a model's code while it streams in, from what each finished line says by itself.

A line is parsed as soon as it ends, together with the lines before it if a bracket is still open. Nothing is run: an
expression is folded from literals, `len(context)`, and names that earlier lines set to such values. A read inside a
loop over a `range` or over literals is folded for its first rounds and its last one; if these are evenly spaced, so are
the others. Prose that happens to parse as code costs bytes, never correctness.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

MOST_HINTS = 256
"""The most hints of one reply."""
MOST_LINE = 4_000
"""Characters of a line that are read, and of lines that are read together."""
_MOST_LINES = 20
"""The most lines that are read together."""
_MOST_NAMES = 500
_MOST_NUMBER = 1 << 62
"""The largest number that is folded: `9 ** 9 ** 9` takes no time."""

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
    is_literal: bool
    """Whether it is one slice outside of loops and conditions, so that the code certainly reads it."""


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

_SEARCHES: dict[str, tuple[Reach, bool]] = {
    "find": ("first", False), "index": ("first", False), "count": ("all", False),
    "rfind": ("first", True), "rindex": ("first", True),
}  # fmt: skip
"""Methods of a text that look for another: what they look for, and whether from the end."""
_MATCHES: dict[str, Reach] = {"search": "first", "findall": "all", "finditer": "first", "split": "all"}
"""The functions of `re` that are followed."""
_FOLDED: dict[str, Callable[..., Any]] = {"int": int, "round": round, "min": min, "max": max, "abs": abs}
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: lambda a, b: a + b, ast.Sub: lambda a, b: a - b, ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b, ast.Div: lambda a, b: a / b, ast.Mod: lambda a, b: a % b,
    ast.BitOr: lambda a, b: a | b,
}  # fmt: skip
_FENCE = re.compile(r"\s*(?:[-*+]\s+|\d+[.)]\s+)?(?:`{3,}|~{3,})")


class _Unknown(Exception):
    """An expression cannot be folded."""


@dataclass(frozen=True, slots=True)
class _Text:
    """The value of the context, or of a text of the same length made from it."""

    ignore_case: bool = False


@dataclass(frozen=True, slots=True)
class _Literals:
    """The value of a list or tuple of values that are known."""

    items: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class _Derived:
    """The values of a name that depends on a loop, by the number of the round."""

    loop: str
    values: dict[int, Any]


class CodeHints:
    """Predicts the reads of the code in a conversation about one text. Never raises. Not thread-safe.

    `characters`: the length of the text, which code calls `context`.
    """

    def __init__(self, characters: int) -> None:
        self._characters = characters
        self._values: dict[str, Any] = {}
        """What names are known to be: a number, a text, a `range` or tuple that a loop goes through, the context."""
        self.begin()

    def begin(self) -> None:
        """Begin a new reply. Names that earlier replies defined are still known."""
        self._values["context"] = _Text()
        self._rest: list[str] = []
        self._rest_characters = 0
        self._open: list[str] = []
        """Earlier lines of a statement that has not ended."""
        self._seen: set[Hint] = set()

    def feed(self, delta: str) -> list[Hint]:
        """The new hints of the lines that this piece of the reply ends, each once a reply."""
        *ended, rest = delta.split("\n")
        hints: list[Hint] = []
        for part in ended:
            line = ("".join(self._rest) + part)[:MOST_LINE]
            self._rest, self._rest_characters = [], 0
            hints += self._read_line(line.rstrip("\r"))
        if self._rest_characters < MOST_LINE:
            self._rest.append(rest)
            self._rest_characters += len(rest)
        return hints

    def end(self) -> list[Hint]:
        """End the reply. Returns the hints of a last line without an end."""
        return self.feed("\n")

    def _read_line(self, line: str) -> list[Hint]:
        if not line.strip() or _FENCE.match(line):
            self._open = []
            return []
        tree = None
        if self._open:
            self._open.append(line)
            tree = _parse("\n".join(self._open))
            if tree is not None or len(self._open) > _MOST_LINES:
                self._open = []
        if tree is None:
            tree = _parse(line)
            if tree is None and not self._open and line.count("(") + line.count("[") + line.count("{"):
                self._open = [line]
        if tree is None:
            return []
        return [hint for statement in tree.body for hint in self._new(self._statement(statement, line[:1].isspace()))]

    def _new(self, hints: Iterator[Hint]) -> Iterator[Hint]:
        """The hints that this reply has not given before. A statement that is too deep or odd has no more of them."""
        try:
            for hint in hints:
                if hint not in self._seen and len(self._seen) < MOST_HINTS:
                    self._seen.add(hint)
                    yield hint
        except RecursionError:
            return

    # -- statements --------------------------------------------------------------------------------------------------

    def _statement(self, node: ast.stmt, is_inner: bool) -> Iterator[Hint]:
        """The reads of a statement, and of its body on the same line; then what it assigns is known."""
        is_inner = is_inner or isinstance(node, ast.If | ast.For | ast.While | ast.FunctionDef | ast.Try | ast.With)
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from self._reads(part, is_inner)
        for part in ast.walk(node):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                self._values.pop(part.id, None)
        match node:
            case ast.For(target=ast.Name(name), iter=source):
                self._set(name, source, is_loop=True)
            case ast.Assign(targets=[ast.Name(name)], value=value):
                self._set(name, value)
            case _:
                pass
        for body in getattr(node, "body", ()):
            if isinstance(body, ast.stmt):
                yield from self._statement(body, is_inner=True)

    def _set(self, name: str, value: ast.expr, *, is_loop: bool = False) -> None:
        """Know a name's value, or that it is unknown."""
        self._values.pop(name, None)
        if len(self._values) >= _MOST_NAMES:
            return
        try:
            created = self._rounds(value) if is_loop else self._fold(value)
            if not is_loop and (loop := self._loop(value)):
                created = _Derived(loop, {number: self._fold(value, (loop, number)) for number in self._numbers(loop)})
        except _Unknown:
            return
        self._values[name] = created

    # -- reads -------------------------------------------------------------------------------------------------------

    def _reads(self, node: ast.expr, is_inner: bool, is_drained: bool = False) -> Iterator[Hint]:
        """The reads of an expression and of its parts. `is_drained`: a list is made of all its items."""
        if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
            for generator in node.generators:
                yield from self._reads(generator.iter, is_inner, not isinstance(node, ast.GeneratorExp))
                if isinstance(generator.target, ast.Name):
                    self._set(generator.target.id, generator.iter, is_loop=True)
            is_inner = True
        match node:
            case ast.Subscript(value=text, slice=index):
                yield from self._subscript(text, index, is_inner)
            case ast.Compare(left=needle, ops=[ast.In() | ast.NotIn()], comparators=[text]):
                yield from self._search(text, [needle], "first", backward=False)
            case ast.Call(func=ast.Attribute(value=ast.Name("re"), attr=name), args=[pattern, text, *flags]):
                if name in _MATCHES:
                    flags += [keyword.value for keyword in node.keywords if keyword.arg == "flags"]
                    yield from self._match(text, pattern, flags, "all" if is_drained else _MATCHES[name])
            case ast.Call(func=ast.Attribute(value=text, attr=name), args=arguments) if name in _SEARCHES:
                yield from self._search(text, arguments, *_SEARCHES[name])
            case _:
                pass
        for part in ast.iter_child_nodes(node):
            if isinstance(part, ast.expr):
                yield from self._reads(part, is_inner)
            elif isinstance(part, ast.keyword):
                yield from self._reads(part.value, is_inner)

    def _subscript(self, node: ast.expr, index: ast.expr, is_inner: bool) -> Iterator[Hint]:
        try:
            if not isinstance(self._fold(node), _Text):
                return
            loop = self._loop(index)
            spans = [self._span(index, (loop, number)) for number in self._numbers(loop)]
        except _Unknown:
            return
        count = len(self._values[loop]) if loop else 1
        if len(spans) < count:
            first, (start, stop), (second, _), (last, _) = spans
            step = second - start
            if start < stop and last - start == step * (count - 2):
                if first != (start - step, stop - step):  # `max(0, i - 500)`: even from the second round on
                    yield Ranges(first[0], first[1] - first[0], first[1] - first[0], 1, is_literal=False)
                    start, stop, count = start + step, stop + step, count - 1
                yield Ranges(start - step, stop - start, step, count, is_literal=False)
                return
        for start, stop in spans:
            if start < stop:
                yield Ranges(start, stop - start, stop - start, 1, is_literal=not loop and not is_inner)

    def _search(self, node: ast.expr, arguments: list[ast.expr], reach: Reach, backward: bool) -> Iterator[Hint]:
        try:
            text = self._fold(node)
            loop = self._loop(arguments[0])
            needles = [self._fold(arguments[0], (loop, number)) for number in self._numbers(loop)]
        except (_Unknown, IndexError):
            return
        if not isinstance(text, _Text):
            return
        start, stop = 0, self._characters
        try:
            bounds = [self._fold(argument) for argument in arguments[1:3]]
            start, stop, _ = slice(*(*bounds, None, None)[:2]).indices(self._characters)
        except (_Unknown, TypeError):
            reach = "unplaced"
        for needle in needles:
            if isinstance(needle, str) and needle and start < stop:
                yield Search(needle, start, stop, reach, text.ignore_case, backward)

    def _match(self, node: ast.expr, pattern: ast.expr, flags: list[ast.expr], reach: Reach) -> Iterator[Hint]:
        try:
            text, source = self._fold(node), self._fold(pattern)
            folded = self._fold(flags[0]) if flags else 0
        except _Unknown:
            return
        if isinstance(text, _Text) and isinstance(source, str) and isinstance(folded, int):
            folded |= re.IGNORECASE if text.ignore_case else 0
            yield Search(source, 0, self._characters, reach, flags=int(folded))

    # -- values ------------------------------------------------------------------------------------------------------

    def _loop(self, node: ast.expr) -> str:
        """The innermost loop that an expression depends on; "" for none. Loops around it stay in their first round."""
        loops = set()
        for part in ast.walk(node):
            if isinstance(part, ast.Name):
                value = self._values.get(part.id)
                loops.add(value.loop if isinstance(value, _Derived) else part.id)
        known = [name for name, value in self._values.items() if name in loops and isinstance(value, range | tuple)]
        return known[-1] if known else ""

    def _numbers(self, loop: str) -> list[int]:
        """The rounds of a loop that are folded: all of a short one, else the first three and the last."""
        rounds = self._values[loop] if loop else ((),)
        if isinstance(rounds, tuple) or len(rounds) <= 4:
            return list(range(len(rounds)))
        return [0, 1, 2, len(rounds) - 1]

    def _rounds(self, node: ast.expr) -> range | tuple[Any, ...]:
        """What a loop goes through: a range, or a few known values."""
        match node:
            case ast.Call(func=ast.Name("range"), args=arguments):
                try:
                    rounds = range(*(self._fold(argument) for argument in arguments))
                    if len(rounds):
                        return rounds
                except (TypeError, ValueError, OverflowError):
                    pass
            case _:
                folded = self._fold(node)
                if isinstance(folded, _Literals):
                    return folded.items
        raise _Unknown

    def _span(self, index: ast.expr, round_: tuple[str, int]) -> tuple[int, int]:
        """The characters [start, stop) that an index reads, in one round of a loop."""
        if not isinstance(index, ast.Slice):
            number = self._fold(index, round_)
            if not isinstance(number, int):
                raise _Unknown
            bounds = [number, number + 1 or None]
        elif index.step is not None:
            raise _Unknown
        else:
            bounds = [None if part is None else self._fold(part, round_) for part in (index.lower, index.upper)]
        try:
            start, stop, _ = slice(*bounds).indices(self._characters)
        except TypeError:
            raise _Unknown from None
        return start, stop

    def _fold(self, node: ast.expr, round_: tuple[str, int] = ("", 0)) -> Any:
        """The value of an expression, in one round of a loop (its name and the number). Raises `_Unknown`."""
        value: Any = None
        try:
            match node:
                case ast.Constant(value=int() | float() | str()):
                    value = node.value
                case ast.Name(id=name):
                    value = self._values.get(name)
                    if isinstance(value, range | tuple):
                        value = value[round_[1] if name == round_[0] else 0]
                    elif isinstance(value, _Derived):
                        value = value.values.get(round_[1] if value.loop == round_[0] else 0)
                case ast.Attribute(value=ast.Name("re"), attr=("I" | "M" | "S" | "X" | "A" | "U"
                                   | "IGNORECASE" | "MULTILINE" | "DOTALL" | "VERBOSE" | "ASCII") as name):  # fmt: skip
                    value = int(getattr(re, name))
                case ast.Tuple(elts=items) | ast.List(elts=items) if 0 < len(items) <= MOST_HINTS:
                    value = _Literals(tuple(self._fold(item) for item in items))
                case ast.UnaryOp(op=ast.USub(), operand=operand):
                    value = -self._fold(operand, round_)
                case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
                    sides = self._fold(left, round_), self._fold(right, round_)
                    if not any(isinstance(side, str) for side in sides):
                        value = _OPERATIONS[type(op)](*sides)
                case ast.Call(func=ast.Name("len"), args=[text]) if isinstance(self._fold(text), _Text):
                    value = self._characters
                case ast.Call(func=ast.Name(name), args=arguments) if name in _FOLDED:
                    value = _FOLDED[name](*(self._fold(argument, round_) for argument in arguments))
                case ast.Call(func=ast.Attribute(value=text, attr="lower" | "upper" | "casefold"), args=[]):
                    value = _Text(ignore_case=True) if isinstance(self._fold(text), _Text) else None
                case _:
                    pass
        except (ArithmeticError, TypeError, ValueError, AttributeError):
            raise _Unknown from None
        if value is None or (isinstance(value, int | float) and not abs(value) < _MOST_NUMBER):
            raise _Unknown
        return value


def _parse(source: str) -> ast.Module | None:
    """The tree of a statement without its margin; the head of a loop or of a condition gets an empty body."""
    if len(source) > MOST_LINE:
        return None
    source = source.lstrip()
    if source.startswith("elif "):
        source = source[2:]
    if source.rstrip().endswith(":"):
        source += " pass"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
