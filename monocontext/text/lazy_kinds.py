"""Marker base classes for lazy values, and their behaviour where code wants a real value."""

from __future__ import annotations

import sys
from abc import abstractmethod
from opcode import opmap
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar

from monocontext.errors import ContextTooLarge

_COLLECTORS = frozenset({"numpy", "pandas", "polars"})
"""Libraries that keep the items of a list as they are. To them a lazy text is an object without text."""
_ITERATORS: frozenset[type] = frozenset(
    {enumerate, zip, map, filter, reversed, GeneratorType, type({}.items()), type({}.values())}
)
_PRINT = opmap.get("PRINT_EXPR"), opmap.get("CALL_INTRINSIC_1")


class _Guarded:
    """Refuses to become an item of a pandas column."""

    __slots__ = ()

    @property
    def __class__(self) -> Any:
        """The type. pandas asks for it when it stores an object in a column. `.str` would find nothing in a lazy text
        there, so this raises an error instead."""
        caller = sys._getframe(1).f_globals.get("__name__")
        if type(caller) is str and caller.startswith("pandas."):
            raise TypeError(
                f"pandas takes a {type(self).__name__} for an object without text: give it real str, "
                "such as [str(text) for text in context]"
            )
        return type(self)

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("a lazy text keeps its type")


class LazyText(_Guarded):
    """A text that stands for a `str`: the base class of `Monocontext`."""

    __slots__ = ()
    kinds: ClassVar[set[type]] = set()
    """All classes of such texts, for hot loops: a lookup in a set is fast."""
    shapes: ClassVar[set[type]] = set()
    """The classes of lazy lists and dicts that can become real ones."""
    iterators: ClassVar[frozenset[type]] = _ITERATORS
    """The types of iterators that are read once."""
    suspects: ClassVar[set[type]] = {list, tuple, dict, *_ITERATORS}
    """The types of lazy texts, and of containers that may hold some."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        LazyText.kinds.add(cls)
        LazyText.suspects.add(cls)


class LazyContainer:
    """A lazy list or dict, or a view of a dict. Its text is that of the real one, up to the limit."""

    __slots__ = ()

    def _materialize(self) -> Any:
        """The real one if it is known to be small, else None."""
        return None

    @abstractmethod
    def _short_repr(self) -> str:
        """One line of constant size (no GET)."""

    def _real(self, what: str) -> Any:
        """The real one. Above the limit raises `ContextTooLarge`."""
        real = self._materialize()
        if real is None:
            raise self._too_large(what)
        return real

    def _too_large(self, what: str) -> ContextTooLarge:
        return ContextTooLarge(
            f"{what} would take all of {self._short_repr()}, more than the limit (materialize_limit): "
            "go over its items in a loop, or take some of them"
        )

    def __repr__(self) -> str:
        """The `repr` and `str` of the real one, up to the limit; at an interactive prompt one short line."""
        if is_at_prompt(sys._getframe(1)):
            return self._short_repr()
        return repr(self._real("str(...)"))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """For IPython: one short line."""
        printer.text(self._short_repr())


class LazyItems(LazyContainer):
    """A lazy list of strings that stands for a `list`: the result of `split` and `splitlines` for large texts, and the
    documents of a context."""

    __slots__ = ()

    if not TYPE_CHECKING:  # `append` is an error for a type checker too

        def __getattr__(self, name: str) -> Any:
            more = " (for pandas: pd.DataFrame(list(map(str, context))))" if name in ("ndim", "dtype") else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{more}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The array that numpy makes of the real list, up to the limit; for pandas an array of objects."""
        import numpy as np

        if dtype is None and is_collected(sys._getframe(1), "pandas"):
            dtype = object
        return np.array(self._real("an array"), dtype=dtype)


class LazyMapping(LazyContainer):
    """A lazy mapping from strings to strings that stands for a `dict`: the documents of a context."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The array of one object that numpy makes of a dict, up to the limit. pandas recognises a dict only by its
        type: `TypeError`."""
        import numpy as np

        if is_collected(sys._getframe(1), "pandas"):
            raise TypeError(f"pandas takes {self._short_repr()} for no dict: give it a real one, dict(context)")
        return np.array(self._real("an array"), dtype=dtype)


def is_collected(caller: FrameType, *libraries: str) -> bool:
    """Whether a frame that asks for items belongs to a library that keeps them as they are."""
    name = caller.f_globals.get("__name__")
    return type(name) is str and name.partition(".")[0] in (libraries or _COLLECTORS)


def is_at_prompt(frame: FrameType) -> bool:
    """Whether a frame shows the value of a line typed at a prompt."""
    unit, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return unit == _PRINT[0] or (unit == _PRINT[1] and argument == 1)
