"""Represent values of a program that is not run, as far as they are known, and compute with them within bounds.

Plain `int`, `float`, `str`, `bool`, `None`, `tuple` and `range` represent themselves; a `tuple` represents a list or a
set as well. A list that code changes is `UNKNOWN` from then on, as is a value beyond the bounds. Nothing raises.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

MOST_BITS = 128
"""Largest number computed, in bits: `9**9**9` is not evaluated."""
MOST_CHARACTERS = 1 << 16
"""Longest string computed, in characters: `"a" * 10**9` is not evaluated."""
MOST_ITEMS = 4096
"""Most items of a list, or of all tuples within a tuple."""
_MOST_TOTAL = 1 << 20
"""Most characters of all strings within a value."""
_MOST_NESTED = 4
"""Deepest nesting of lists."""
_SCALARS = frozenset({type(None), bool, int, float, str})


class UnknownValue:
    """A value that depends on data, or on code that is not followed. The only instance is `UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = UnknownValue()


@dataclass(frozen=True, slots=True)
class TextValue:
    """The context, an unread part of it, or a conversion of it as long as itself."""

    start: int
    """The offset at which it begins in the context."""
    stop: int
    """The offset at which it ends there."""
    folded: bool = False
    """Whether it was converted by `lower`, `upper` or `casefold`."""
    is_exact: bool = True
    """False after `strip` or `replace`, which move offsets a little."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A real string, read from the context: operations on it read nothing more."""

    length: int | None = None
    """Its number of characters, if known."""


@dataclass(frozen=True, slots=True)
class LineList:
    """The lines of a text: `text.lines`, `text.splitlines()`, `text.split("\\n")`."""

    text: TextValue
    counted: bool
    """Whether the index has the number of lines, as for `text.lines`."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a text between separators other than a line end."""

    text: TextValue


@dataclass(frozen=True, slots=True)
class PatternValue:
    """`re.compile(pattern, flags)`."""

    pattern: str
    flags: int


@dataclass(frozen=True, slots=True)
class Module:
    """A module, a name in it, or a builtin: `re`, `re.findall`, `len`."""

    path: str


def run_of(value: object) -> Sequence[object] | None:
    """The items to iterate over, if they are known."""
    return value if isinstance(value, tuple | range | str) else None


def plain(value: object) -> object:
    """A value of the program's namespace; its parts that are not plain, or beyond the bounds, become `UNKNOWN`."""
    return _plain(value, [MOST_ITEMS, _MOST_TOTAL], 0)


def _plain(value: object, left: list[int], depth: int) -> object:
    kind = type(value)
    left[0] -= 1
    left[1] -= len(value) if isinstance(value, str) else 0
    if min(left) < -1 or depth > _MOST_NESTED:
        return UNKNOWN
    if isinstance(value, int | str):
        size, most = (len(value), MOST_CHARACTERS) if isinstance(value, str) else (value.bit_length(), MOST_BITS)
        return value if kind in _SCALARS and size <= most else UNKNOWN
    if kind in _SCALARS:
        return value
    if kind not in (tuple, list, set, frozenset) or len(value) > MOST_ITEMS:  # type: ignore[arg-type]
        return UNKNOWN
    return tuple(_plain(item, left, depth + 1) for item in value)  # type: ignore[attr-defined]


def is_plain(value: object) -> bool:
    """Whether the value is completely known, and operations on it are cheap."""
    nodes, items, characters = [value], MOST_ITEMS + 1, _MOST_TOTAL
    while nodes:  # tuples that hold the same tuple twice are small in memory and endless to walk through
        node = nodes.pop()
        items -= 1
        characters -= len(node) if type(node) is str else 0
        if items < 0 or characters < 0 or (type(node) is not tuple and type(node) not in _SCALARS):
            return False
        if type(node) is tuple:
            nodes.extend(node)
    return True


def attempt(function: Callable[..., Any], *arguments: Any) -> object:
    """The result of a function for plain arguments; `UNKNOWN` if it raises."""
    try:
        return plain(function(*arguments))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return UNKNOWN


def truth(value: object) -> bool | None:
    """`bool(value)`; None if that is unknown."""
    match value:
        case TextValue():
            return value.stop > value.start
        case Loaded(length=int() as length):
            return length > 0
        case None | bool() | int() | float() | str() | tuple() | range():
            return bool(value)
    return None


# -- operators

_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.Pow: operator.pow,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda one, other: operator.contains(other, one),
    ast.NotIn: lambda one, other: not operator.contains(other, one),
}


def binary(kind: type[ast.operator], left: object, right: object) -> object:
    """The value of `left op right`, an arithmetic operation."""
    match left, right:
        case ((int() | float()), (int() | float())):
            bits = int(left).bit_length() if isinstance(left, int) else 0
            if kind is ast.Pow and isinstance(right, int) and (right < 0 or bits * right > MOST_BITS):
                return UNKNOWN
            return attempt(_NUMBERS[kind], left, right) if kind in _NUMBERS else UNKNOWN
    return UNKNOWN


def compare(kind: type[ast.cmpop], left: object, right: object) -> object:
    """The value of `left op right`, a comparison: a bool or `UNKNOWN`."""
    if kind in (ast.Is, ast.IsNot):
        known = left is not UNKNOWN and right is not UNKNOWN and (left is None or right is None)
        return (left is right) == (kind is ast.Is) if known else UNKNOWN
    return attempt(_COMPARISONS[kind], left, right) if is_plain(left) and is_plain(right) else UNKNOWN


# -- builtins and methods

_FUNCTIONS: dict[str, Callable[..., Any]] = {"int": int, "max": max, "min": min, "math.ceil": math.ceil}
BUILTINS = frozenset({"int", "isinstance", "len", "list", "max", "min", "range", "str"})
KEEPING = frozenset({"index", "count", "copy"})
"""Methods that do not change a list."""


def call(name: str, arguments: Sequence[object]) -> object:
    """The result of a builtin; `UNKNOWN` if that depends on data."""
    match name, arguments:
        case "len", [TextValue() as text]:
            return text.stop - text.start
        case "len", [Loaded(length=int() as length)]:
            return length
        case "len", [(tuple() | range() | str()) as run]:
            return len(run)
        case "list", [(tuple() | range()) as run]:
            return run
        case "isinstance", [value, Module(path="str")] if value is not UNKNOWN:
            return isinstance(value, TextValue | Loaded | str)
        case "range", [_, *_] if all(type(bound) is int for bound in arguments):
            try:
                made = range(*arguments)  # type: ignore[call-overload]
                return made if len(made) else ()
            except (ValueError, OverflowError, TypeError):
                return UNKNOWN
    known = name in _FUNCTIONS and all(map(is_plain, arguments))
    return attempt(_FUNCTIONS[name], *arguments) if known else UNKNOWN


def method(value: object, name: str, arguments: Sequence[object]) -> object:
    """The result of a method of a known string; `UNKNOWN` for other values."""
    known = isinstance(value, str) and name in ("lower", "upper", "strip") and not arguments
    return attempt(getattr(value, name)) if known else UNKNOWN
