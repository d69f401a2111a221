"""Base classes of lazy texts, lists and dicts: what they do where code wants a real `str`, `list` or `dict`."""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import Iterator
from itertools import zip_longest
from opcode import opmap
from types import FrameType, GeneratorType
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, SupportsIndex

from monocontext.errors import ContextTooLarge

_COLLECTORS = frozenset({"numpy", "pandas", "polars"})
"""Libraries that would store lazy texts as objects, in which their operations on text find nothing."""
_ITERATORS: frozenset[type] = frozenset(
    {enumerate, zip, map, filter, reversed, GeneratorType, type({}.items()), type({}.values())}
)
_PRINT = opmap.get("PRINT_EXPR"), opmap.get("CALL_INTRINSIC_1")
"""The instruction that shows a value at a prompt, in Python 3.11 and from 3.12 on."""


class _Guarded:
    """A base class whose instances cannot become items of a pandas column."""

    __slots__ = ()

    @property
    def __class__(self) -> Any:
        """The type. Raises `TypeError` for pandas, which asks when it stores an object in a column, where its `.str`
        would find no text."""
        caller = sys._getframe(1).f_globals.get("__name__")
        if type(caller) is str and caller.startswith("pandas."):
            raise TypeError(
                f"pandas finds no text in a {type(self).__name__}: give it real str, "
                "such as [str(text) for text in context]"
            )
        return type(self)

    @__class__.setter
    def __class__(self, kind: Any) -> None:
        raise TypeError("the type of a lazy text cannot be changed")


class LazyText(_Guarded):
    """A lazy text in place of a `str`: the base class of `Monocontext`."""

    __slots__ = ()
    kinds: ClassVar[set[type]] = set()
    """All classes of lazy texts. A lookup in a set is faster than `isinstance`."""
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
    """A lazy list or dict, or a view of a dict. Its `str` is that of the real one, up to the limit."""

    __slots__ = ()
    _refusal: ClassVar[str]
    """The message for code that changes a list or dict."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError(self._refusal)

    def _materialize(self) -> Any:
        """The real list, dict or view if it is known to be small, else None."""
        return None

    @abstractmethod
    def _short_repr(self) -> str:
        """One line of constant size (no GET)."""

    def _real(self, what: str) -> Any:
        """The real list, dict or view, for the operation `what`. Raises `ContextTooLarge` above the limit."""
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
    """A lazy list in place of a `list` of strings: the result of `split` and `splitlines` for large texts, or the
    documents of a context."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    @abstractmethod
    def __iter__(self) -> Iterator[Any]: ...

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, list | LazyItems):
            return NotImplemented
        nothing = object()  # an item may be None: a group of `re.split` that did not match
        return all(mine == theirs for mine, theirs in zip_longest(self, other, fillvalue=nothing))

    def __lt__(self, other: object) -> bool:
        return list(self) < other if isinstance(other, list) else NotImplemented

    def __le__(self, other: object) -> bool:
        return list(self) <= other if isinstance(other, list) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return list(self) > other if isinstance(other, list) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return list(self) >= other if isinstance(other, list) else NotImplemented

    def __add__(self, other: object) -> list[Any]:
        """A real list; its items may be lazy."""
        return [*self, *other] if isinstance(other, list | LazyItems) else NotImplemented

    def __radd__(self, other: object) -> list[Any]:
        return [*other, *self] if isinstance(other, list) else NotImplemented

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * operator.index(times)

    __rmul__ = __mul__

    def copy(self) -> list[Any]:
        """A real list; its items may be lazy."""
        return list(self)

    if not TYPE_CHECKING:  # a call of one of these is an error for a type checker too
        append = extend = insert = pop = remove = clear = sort = reverse = LazyContainer._refuse
        __setitem__ = __delitem__ = __iadd__ = __imul__ = LazyContainer._refuse

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
    """A lazy mapping in place of a `dict` from strings to strings: the documents of a context."""

    __slots__ = ()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The array of one object that numpy makes of a dict, up to the limit. Raises `TypeError` for pandas, which
        would not take it for a dict."""
        import numpy as np

        if is_collected(sys._getframe(1), "pandas"):
            raise TypeError(f"pandas does not take {self._short_repr()} for a dict: give it dict(context)")
        return np.array(self._real("an array"), dtype=dtype)


def is_collected(caller: FrameType, *libraries: str) -> bool:
    """Whether the code of a frame belongs to one of the libraries, by default those that would store lazy texts."""
    name = caller.f_globals.get("__name__")
    return type(name) is str and name.partition(".")[0] in (libraries or _COLLECTORS)


def is_at_prompt(frame: FrameType) -> bool:
    """Whether a frame is about to show the value of a line typed at a prompt."""
    unit, argument = frame.f_code.co_code[frame.f_lasti : frame.f_lasti + 2]
    return unit == _PRINT[0] or (unit == _PRINT[1] and argument == 1)
