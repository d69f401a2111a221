"""Answer the type checks of rewritten code: a lazy text passes for a `str`, a lazy list or dict for a real one.

Checks of other values stay unchanged, and so do calls by a name that is no longer the builtin.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable
from functools import partial
from types import FrameType
from typing import Any

from monocontext.text.lazy_kinds import LazyText
from monocontext.text.namespace.foreign_calls import Foreign, real_inside
from monocontext.text.namespace.homes import is_foreign_object
from monocontext.text.namespace.lazy_values import is_list, is_mapping, is_small, is_text
from monocontext.text.str_methods import AT_ONCE, StrLike


class TypeChecks(Foreign):
    """The object of a namespace that rewritten code calls. Values that are not lazy stay unchanged in all methods."""

    @staticmethod
    def ask(callee: Any, *args: Any) -> tuple[Any, ...]:
        """The call to make in place of `callee(*args)`: a callable and its arguments (no GET)."""
        value = args[0]
        passes_for: object
        if is_text(value):
            passes_for = ""
        elif is_list(value):
            passes_for = []
        elif is_mapping(value):
            passes_for = {}
        else:
            return (callee, real_inside(value)) if callee is str or callee is repr else (callee, *args)
        if callee is type:
            return type, passes_for
        if callee is isinstance:
            return isinstance, passes_for if _passes_isinstance(passes_for, args[1]) else value, args[1]
        if callee is str and is_text(value) and not is_small(value):
            return _identity, value
        return callee, *args

    @staticmethod
    def sought(item: Any, where: Any) -> tuple[Any, ...]:
        """The call for `item in where`. A `str` needs a real `item`, but no more of it than one character beyond its
        own length, since it cannot contain a longer one."""
        if isinstance(where, str) and is_text(item):
            text: Any = item
            item = str(text[: len(where) + 1])
        elif is_text(item) and is_foreign_object(where):
            item = _real_unless_large(item)
        return operator.contains, where, item

    @staticmethod
    def searched(value: Any) -> Any:
        """The text in `x in text.lower()`, whose result is only searched, so it stays lazy (at most the GET of a
        length)."""
        return _Searched(value) if is_text(value) and value._is_small and len(value) > AT_ONCE else value

    @staticmethod
    def map_function(callee: object, function: Any) -> Any:
        """The function for `map` to call instead of `str`."""
        return _str_unless_large if callee is map and function is str else function

    shown: Callable[[Any], Any] = staticmethod(real_inside)
    """The value to show in an f-string, or by `%`."""

    @staticmethod
    def whole(value: Any) -> Any:
        """The result of a method that must return a `str`. Raises `ContextTooLarge` above the limit of a lazy text."""
        return str(value) if is_text(value) else value

    @staticmethod
    def join_items(items: Any) -> Any:
        """The items for a `str` to join; lazy texts become real, each up to its limit."""
        if is_list(items) or type(items) in LazyText.iterators or type(items) in LazyText.shapes:
            items = list(items)
        if type(items) not in (list, tuple) or not any(is_text(item) for item in items):
            return items
        return [str(item) if is_text(item) else item for item in items]

    # -- classes for patterns --------------------------------------------------------------------------------------

    @property
    def Text(self) -> type:
        """A class whose instances are the lazy texts, if `str` is the builtin; else it has none."""
        return _TEXT if _is_builtin(sys._getframe(1), "str") else _NOTHING

    @property
    def List(self) -> type:
        """A class whose instances are the lazy lists, if `list` is the builtin; else it has none."""
        return _LIST if _is_builtin(sys._getframe(1), "list") else _NOTHING

    @property
    def Dict(self) -> type:
        """A class whose instances are the lazy dicts, if `dict` is the builtin; else it has none."""
        return _DICT if _is_builtin(sys._getframe(1), "dict") else _NOTHING

    @property
    def Items(self) -> type:
        """A class whose instances are all values except lazy texts, which `[a, *b]` would take for sequences."""
        return _ITEMS


class _Searched:
    """A lazy text whose `lower()`, `upper()` and `casefold()` are lazy, too."""

    __slots__ = ("_text",)

    def __init__(self, text: StrLike):
        self._text = text

    def __getattr__(self, method: str) -> Callable[[], object]:
        return partial(self._text._change_case, method, None)


def _passes_isinstance(value: object, kind: Any) -> bool:
    try:
        return isinstance(value, kind)
    except Exception:  # the call itself raises it again
        return False


def _identity(value: object) -> object:
    return value


def _str_unless_large(value: Any) -> Any:
    return value if is_text(value) and not is_small(value) else str(value)


def _real_unless_large(text: StrLike) -> Any:
    real = text._materialize()
    return text if real is None else real


def _is_builtin(frame: FrameType, name: str) -> bool:
    """Whether a name means the builtin in the code of a frame."""
    for scope in (frame.f_locals, frame.f_globals):
        if name in scope:
            return scope[name] is getattr(builtins, name)
    return frame.f_builtins.get(name) is getattr(builtins, name)


class _Pattern(type):
    """The type of classes whose instances are the values that `accepts` takes. They are subclasses of `str`, since
    `match` then allows one positional sub-pattern, for the value itself."""

    accepts: Callable[[object], bool]

    def __instancecheck__(cls, value: object) -> bool:
        return cls.accepts(value)


def _class_of(accepts: Callable[[object], bool]) -> type:
    return _Pattern(accepts.__name__, (str,), {"accepts": staticmethod(accepts)})


_TEXT, _LIST, _DICT = _class_of(is_text), _class_of(is_list), _class_of(is_mapping)
_ITEMS = _class_of(lambda value: not is_text(value))
_NOTHING = _class_of(lambda value: False)
