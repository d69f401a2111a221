"""The state of the abstract interpreter: names and trace, and how to roll back what was only tried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from monocontext.engine.hints.bounded import is_plain
from monocontext.engine.hints.trace import Trace
from monocontext.engine.hints.values import (
    UNKNOWN,
    Items,
    LineList,
    Loaded,
    Pieces,
    Table,
    TextValue,
    UnknownValue,
)

_NAMES_A_NODE = 16
"""Names that are copied in the time in which one node is looked at."""

Names = dict[str, object]
_Saved = tuple[list[object] | dict[object, object] | None, int | None]


class Machine:
    """Names, innermost scope first, the trace, and where in the program the interpreter is."""

    def __init__(self, trace: Trace, names: Names) -> None:
        self.trace = trace
        self.scopes: tuple[Names, ...] = (names,)
        self.touched: set[Items | Table] = set()
        self._undo: dict[Items | Table, _Saved] | None = None
        self.decisions: list[bool] = []
        """How the conditions that are known came out, in the loops around here."""
        self.owed = [0]
        """Doubts that each of the loops and functions around here has brought up; they end with it."""
        self.is_draft = False
        """The program is not complete: all is in doubt."""
        self.results: list[object] = []
        """The values that the followed function has returned so far."""
        self.yields: Items | None = None
        """The values that it has yielded."""

    @property
    def names(self) -> Names:
        """The innermost scope, where names are bound."""
        return self.scopes[0]

    def copy_names(self) -> Names:
        """The innermost scope as it is now."""
        self.trace.spend(1 + len(self.names) // _NAMES_A_NODE)
        return dict(self.names)

    def forget(self, names: Iterable[str]) -> None:
        """These may hold anything, except that a text stays the text."""
        for name in names:
            if not isinstance(self.names.get(name), TextValue):
                self.names[name] = UNKNOWN

    @contextmanager
    def doubt(self) -> Iterator[None]:
        """Inside, the program goes only if a condition holds that is not known."""
        self.trace.doubt += 1
        try:
            yield
        finally:
            self.trace.doubt -= 1

    @contextmanager
    def try_out(self) -> Iterator[None]:
        """Inside, the program is followed for its hints or its outcome; no name and no list is changed by it."""
        scopes, names, doubt, undo = self.scopes, dict(self.names), self.trace.doubt, self._undo
        self._undo = {}
        try:
            yield
        finally:
            for changed, (items, length) in self._undo.items():
                if isinstance(changed, Items):
                    changed.items, changed.length = cast("list[object] | None", items), length
                else:
                    changed.items = cast("dict[object, object] | None", items)
            self._undo = undo
            self.scopes, self.trace.doubt = scopes, doubt
            restore(self.names, names)

    def touch(self, changing: Items | Table) -> None:
        """Call before a list or a dictionary is changed."""
        self.touched.add(changing)
        if self._undo is not None and changing not in self._undo:
            kept = changing.items.copy() if changing.items is not None else None
            self._undo[changing] = (kept, changing.length if isinstance(changing, Items) else None)


def restore(names: Names, saved: Mapping[str, object]) -> None:
    """Make the scope what it was."""
    names.clear()
    names.update(saved)


def join_names(one: Names, other: Names) -> Names:
    """The names after a condition whose outcome is not known."""
    names = dict(one)
    for name, value in other.items():
        mine = names.get(name, value)
        names[name] = mine if mine is value or _same(mine, value) else _likelier(mine, value)
    return names


def _same(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, Items | Table | UnknownValue):
        return one is other
    return bool(one == other) if not isinstance(one, tuple) or (is_plain(one) and is_plain(other)) else False


def _likelier(one: object, other: object) -> object:
    for value in (one, other):
        if isinstance(value, TextValue | LineList | Pieces):
            return value
    return Loaded() if isinstance(one, Loaded | str) and isinstance(other, Loaded | str) else UNKNOWN
