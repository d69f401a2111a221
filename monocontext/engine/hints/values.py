"""Represent what is known about a value without running the code that makes it.

Plain `int`, `float`, `str`, `bool`, `None`, `tuple` and `range` stand for themselves; the classes here for the rest.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass


class UnknownValue:
    """Depends on data, or on what is not followed. There is one, `UNKNOWN`."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = UnknownValue()


@dataclass(frozen=True, slots=True)
class TextValue:
    """The context, an unread part of it, or a conversion of it as long as itself."""

    start: int
    """Where it begins in the context."""
    stop: int
    """Where it ends there."""
    folded: bool = False
    """Went through `lower`, `upper` or `casefold`."""
    is_exact: bool = True
    """False after `strip` or `replace`: places may be a little off."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A real string, read from the context: what is done with it reads nothing more."""

    length: int | None = None
    """Its characters, where they are known."""


@dataclass(frozen=True, slots=True)
class LineList:
    """The lines of a text: `text.lines`, `text.splitlines()`, `text.split("\\n")`, `io.StringIO(text)`."""

    text: TextValue
    counted: bool
    """The index says how many there are: `text.lines`."""


@dataclass(frozen=True, slots=True)
class Pieces:
    """The pieces of a text between separators other than a line end."""

    text: TextValue


@dataclass(eq=False, slots=True)
class Items:
    """A list or set of the program, which may change."""

    items: list[object] | None
    """Its items; None if they are not known."""
    length: int | None = None
    """How many there are, where only that is known."""

    def __len__(self) -> int:
        return len(self.items) if self.items is not None else self.length or 0

    @property
    def known_length(self) -> int | None:
        return len(self.items) if self.items is not None else self.length


@dataclass(eq=False, slots=True)
class Table:
    """A dictionary of the program."""

    items: dict[object, object] | None
    """Keys that are known, and their values; None if even the keys are not."""


@dataclass(frozen=True, slots=True)
class Progression:
    """Tuples of numbers that grow evenly: `[(i, i + 500) for i in range(0, n, 500)]`, too many to be listed."""

    first: tuple[int, ...]
    delta: tuple[int, ...]
    count: int

    def item(self, k: int) -> tuple[int, ...]:
        return tuple(first + k * delta for first, delta in zip(self.first, self.delta, strict=True))


@dataclass(frozen=True, slots=True)
class PatternValue:
    """`re.compile(pattern, flags)`."""

    pattern: str
    flags: int


@dataclass(frozen=True, slots=True)
class Module:
    """An imported module, or something in it: `re`, `re.findall`, `math.ceil`."""

    path: str


@dataclass(frozen=True, slots=True, eq=False)
class Function:
    """Defined by the program; followed when it is called."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    scopes: tuple[dict[str, object], ...]
    """Names that it sees, innermost first, without its own."""


@dataclass(frozen=True, slots=True)
class Iteration:
    """Something to iterate over: how many items, and each by its number."""

    count: int
    item: Callable[[int], object]


def run_of(value: object) -> Iteration | None:
    """The items of a value, if it has items and one knows how many."""
    match value:
        case tuple() | range() | str():
            return Iteration(len(value), value.__getitem__)
        case Items(items=list() as items):
            return Iteration(len(items), items[:].__getitem__)
        case Items(length=int() as length):
            return Iteration(length, lambda k: UNKNOWN)
        case Progression():
            return Iteration(value.count, value.item)
        case Table(items=dict() as table):
            return Iteration(len(table), list(table).__getitem__)
    return None


def progression(items: list[object], count: int) -> range | Progression | None:
    """The evenly growing sequence of `count` items that begins with these, at least three of them."""
    rows = [item if isinstance(item, tuple) else (item,) for item in items]
    if len(rows) < 3 or len({len(row) for row in rows}) != 1 or not rows[0]:
        return None
    if not all(type(number) is int for row in rows for number in row):
        return None
    first: tuple[int, ...] = rows[0]
    delta = tuple(b - a for a, b in zip(first, rows[1], strict=True))
    even = Progression(first, delta, count)
    if any(even.item(k) != row for k, row in enumerate(rows)):
        return None
    if isinstance(items[0], tuple):
        return even
    return range(first[0], first[0] + count * delta[0], delta[0]) if delta[0] else None
