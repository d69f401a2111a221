"""Compute on plain values within bounds of time and memory: what would exceed them is `UNKNOWN`. Never raises."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable
from typing import Any

from monocontext.engine.hints.values import UNKNOWN, Items, Loaded, Table, TextValue

MOST_BITS = 128
"""Largest number computed, in bits: `9**9**9` is not evaluated."""
MOST_CHARACTERS = 1 << 16
"""Longest string computed, in characters: `"a" * 10**9` is not evaluated."""
MOST_ITEMS = 4096
"""Most items of a list, or of all tuples within a tuple."""
MOST_TOTAL = 1 << 20
"""Characters of all strings within a value."""
_MOST_NESTED = 4
_SCALARS = frozenset({type(None), bool, int, float, str})

_NUMBERS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_,
    ast.BitXor: operator.xor,
}
_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
# fmt: off
_TEXT_METHODS = frozenset({
    "lower", "upper", "casefold", "swapcase", "title", "capitalize", "strip", "lstrip", "rstrip", "removeprefix",
    "removesuffix", "split", "rsplit", "splitlines", "partition", "rpartition", "startswith", "endswith", "find",
    "rfind", "count", "isdigit", "isalpha", "isupper", "islower", "isspace",
})
# fmt: on
_FIELD = re.compile(r"[,_]?\d{0,3}[,_]?(?:\.\d{1,2})?[a-zA-Z%]?")
_PLAIN_FORMAT = re.compile(r"(?:[^{}]|\{\w*\}|\{\{|\}\})*")
_PLAIN_PERCENT = re.compile(r"(?:[^%]|%[sdrf%])*")

Number = int | float


def plain(value: object) -> object:
    """The value as far as it is plain and of bounded size; what is not, also within it, is `UNKNOWN`."""
    return _plain(value, _Allowance(), 0)


def is_plain(value: object) -> bool:
    """Whether the value stands for itself, all through, and working with it is cheap."""
    if type(value) in _SCALARS:
        return True
    nodes, allowance = [value], _Allowance()
    while nodes:  # tuples that hold the same tuple twice are small in memory and endless to walk through
        node = nodes.pop()
        if not allowance.takes(node):
            return False
        if type(node) is tuple:
            nodes.extend(node)
        elif type(node) not in _SCALARS:
            return False
    return True


class _Allowance:
    """How much a value may hold altogether."""

    def __init__(self) -> None:
        self.items = MOST_ITEMS + 1
        self.characters = MOST_TOTAL

    def takes(self, value: object) -> bool:
        self.items -= 1
        self.characters -= len(value) if type(value) is str else 0
        return self.items >= 0 and self.characters >= 0


def _plain(value: object, allowance: _Allowance, depth: int) -> object:
    kind = type(value)
    if not allowance.takes(value) or depth > _MOST_NESTED:
        return UNKNOWN
    if isinstance(value, int):
        return value if kind in _SCALARS and value.bit_length() <= MOST_BITS else UNKNOWN
    if isinstance(value, str):
        return value if kind is str and len(value) <= MOST_CHARACTERS else UNKNOWN
    if kind in _SCALARS:
        return value
    if isinstance(value, tuple | list | set | frozenset | dict):
        if kind not in (tuple, list, set, frozenset, dict) or len(value) > MOST_ITEMS:
            return UNKNOWN
        if isinstance(value, dict):
            return Table({key: _plain(item, allowance, depth + 1) for key, item in value.items() if is_plain(key)})
        items = [_plain(item, allowance, depth + 1) for item in value]
        return tuple(items) if kind is tuple else Items(items)
    return UNKNOWN


def attempt(function: Callable[..., Any], *arguments: Any) -> object:
    """The result of the function for plain arguments; `UNKNOWN` where the program would meet an exception."""
    try:
        return plain(function(*arguments))
    except (ArithmeticError, LookupError, TypeError, ValueError, AttributeError):
        return UNKNOWN


def binary(kind: type[ast.operator], left: object, right: object) -> object:
    """`left op right`."""
    if isinstance(left, Number) and isinstance(right, Number):
        if kind is ast.Pow:
            return _power(left, right)
        if kind in (ast.LShift, ast.RShift):
            fits = isinstance(left, int) and isinstance(right, int) and 0 <= right <= MOST_BITS
            return attempt(operator.lshift if kind is ast.LShift else operator.rshift, left, right) if fits else UNKNOWN
        return attempt(_NUMBERS[kind], left, right) if kind in _NUMBERS else UNKNOWN
    if kind is ast.Add:
        return _join(left, right)
    if kind is ast.Mult:
        return _repeat(left, right)
    if kind is ast.Mod and isinstance(left, str) and _PLAIN_PERCENT.fullmatch(left) and is_plain(right):
        return attempt(operator.mod, left, right)
    return UNKNOWN


def _power(base: Number, exponent: Number) -> object:
    whole = isinstance(base, int) and isinstance(exponent, int)
    if whole and not (0 <= exponent <= MOST_BITS and exponent * int(base).bit_length() <= MOST_BITS):
        return UNKNOWN
    return attempt(operator.pow, base, exponent)


def _join(left: object, right: object) -> object:
    match left, right:
        case str(), str():
            return plain(left + right)
        case tuple(), tuple():
            return left + right if len(left) + len(right) <= MOST_ITEMS else UNKNOWN
        case Items(items=list() as a), Items(items=list() as b):
            return Items(a + b) if len(a) + len(b) <= MOST_ITEMS else UNKNOWN
        case (Loaded() | str(), Loaded() | str()):
            lengths = [side.length if isinstance(side, Loaded) else len(side) for side in (left, right)]
            return Loaded(None if None in lengths else sum(filter(None, lengths)))
    return UNKNOWN


def _repeat(left: object, right: object) -> object:
    if isinstance(left, int):
        left, right = right, left
    if not isinstance(right, int):
        return UNKNOWN
    match left:
        case str() | tuple() if len(left) * max(right, 0) <= MOST_ITEMS:
            return left * right
        case Items(items=list() as items) if len(items) * max(right, 0) <= MOST_ITEMS:
            return Items(items * right)
    return UNKNOWN


def compare(kind: type[ast.cmpop], left: object, right: object) -> object:
    """`left op right`, a bool or `UNKNOWN`."""
    if kind in (ast.Is, ast.IsNot):
        if left is UNKNOWN or right is UNKNOWN or (left is not None and right is not None):
            return UNKNOWN
        return (left is right) == (kind is ast.Is)
    if kind in (ast.In, ast.NotIn):
        match right:
            case Items(items=list() as items):
                found = contains(tuple(items), left)
            case tuple() | str():
                found = contains(right, left)
            case _:
                found = UNKNOWN
        return found if found is UNKNOWN else found == (kind is ast.In)
    if is_plain(left) and is_plain(right):
        return attempt(_COMPARISONS[kind], left, right)
    return UNKNOWN


def contains(items: tuple[object, ...] | str, wanted: object) -> object:
    if isinstance(items, tuple):
        if not all(map(is_plain, items)) or not is_plain(wanted):
            return UNKNOWN
    elif not isinstance(wanted, str):
        return UNKNOWN
    return attempt(operator.contains, items, wanted)


def truth(value: object) -> bool | None:
    """`bool(value)`; None if it is not known."""
    match value:
        case Loaded(length=int() as length):
            return length > 0
        case Items():
            known = value.known_length
            return None if known is None else known > 0
        case TextValue():
            return value.stop > value.start
        case None | bool() | int() | float() | str() | tuple() | range():
            return bool(value)
    return None


def format_value(value: object, conversion: int, spec: object) -> object:
    """A field of an f-string."""
    if not is_plain(value) or not isinstance(spec, str) or not _FIELD.fullmatch(spec):
        return UNKNOWN
    if conversion in (ord("r"), ord("a")):
        value = repr(value)
    return attempt(format, str(value) if isinstance(value, tuple) else value, spec)


def text_method(text: str, name: str, arguments: list[object]) -> object:
    """A method of a string that is known."""
    match name, arguments:
        case "join", [Items(items=list() as parts)]:
            return text_method(text, "join", [tuple(parts)])
        case "join", [tuple() as parts]:
            size = sum(len(part) + len(text) for part in parts if isinstance(part, str))
            fits = all(isinstance(part, str) for part in parts) and size <= MOST_CHARACTERS
            return attempt(text.join, parts) if fits else UNKNOWN
        case "replace", [str() as old, str() as new, *_]:
            return attempt(text.replace, old, new) if (len(text) + 1) * (len(new) + 1) <= 1 << 20 else UNKNOWN
        case "format", _ if _PLAIN_FORMAT.fullmatch(text) and all(map(is_plain, arguments)):
            size = sum(len(a) if isinstance(a, str) else 200 for a in arguments) * (text.count("{") + 1)
            return attempt(text.format, *arguments) if size <= 1 << 20 else UNKNOWN
    if name in _TEXT_METHODS and all(map(is_plain, arguments)):
        return attempt(getattr(text, name), *arguments)
    return UNKNOWN
