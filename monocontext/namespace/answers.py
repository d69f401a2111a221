"""What rewritten code asks while it runs: what a lazy value should pass for. See `rewrite` for the forms.

Whatever is not ours, and whatever is called by a name that is not the builtin any more, comes back as it was given.
"""

from __future__ import annotations

import builtins
import operator
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from monocontext.namespace.lazies import is_list, is_text


class Answers:
    """The helper object of a namespace."""

    call: Any = staticmethod(operator.call)
    """C, so that a traceback has no frame between the cell and what it called."""

    @staticmethod
    def ask(callee: Any, *args: Any) -> tuple[Any, ...]:
        """The call to make in place of `callee(*args)`: a callable and its arguments. Reads nothing."""
        value = args[0]
        passes_for: object
        if is_text(value):
            passes_for = ""
        elif is_list(value):
            passes_for = []
        else:
            return callee, *args
        if callee is type:
            return type, passes_for
        if callee is isinstance:
            return isinstance, passes_for if _fits(passes_for, args[1]) else value, args[1]
        if callee is str and passes_for == "":
            return _itself, value
        return callee, *args

    @staticmethod
    def mapped(callee: object, function: Any) -> Any:
        """The function that `map` is to call in place of `str`."""
        return _text_of if callee is map and function is str else function

    @staticmethod
    def joined(items: Any) -> Any:
        """What a `str` is to join: lazy texts in a list or tuple become real, each up to its limit."""
        if type(items) not in (list, tuple) or not any(is_text(item) for item in items):
            return items
        return [str(item) if is_text(item) else item for item in items]

    # -- classes for patterns --------------------------------------------------------------------------------------

    @property
    def Text(self) -> type:
        """A class whose instances are the lazy texts, where `str` means the builtin; else it has none."""
        return _Text if _means(sys._getframe(1), "str") else _Nothing

    @property
    def List(self) -> type:
        """A class whose instances are the lazy lists, where `list` means the builtin; else it has none."""
        return _List if _means(sys._getframe(1), "list") else _Nothing

    @property
    def Items(self) -> type:
        """A class whose instances are all values but lazy texts, which `[a, *b]` would take for sequences."""
        return _Items


def _fits(value: object, kind: Any) -> bool:
    try:
        return isinstance(value, kind)
    except Exception:  # raised again, in place, by the call itself
        return False


def _itself(value: object) -> object:
    return value


def _text_of(value: Any) -> Any:
    return value if is_text(value) else str(value)


def _means(frame: FrameType, name: str) -> bool:
    """Whether a name seen from a frame is the builtin."""
    for scope in (frame.f_locals, frame.f_globals):
        if name in scope:
            return scope[name] is getattr(builtins, name)
    return frame.f_builtins.get(name) is getattr(builtins, name)


class _Pattern(type):
    """A class of whatever `accepts` says. As a subclass of `str` it takes one positional sub-pattern: the subject."""

    accepts: Callable[[object], bool]

    def __instancecheck__(cls, value: object) -> bool:
        return cls.accepts(value)


class _Text(str, metaclass=_Pattern):
    accepts = staticmethod(is_text)


class _List(str, metaclass=_Pattern):
    accepts = staticmethod(is_list)


class _Items(str, metaclass=_Pattern):
    @staticmethod
    def accepts(value: object) -> bool:
        return not is_text(value)


class _Nothing(str, metaclass=_Pattern):
    @staticmethod
    def accepts(value: object) -> bool:
        return False
