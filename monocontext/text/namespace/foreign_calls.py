"""Give functions that know no lazy text a real `str` in its place, up to the limit.

    f(x, y)         __monocontext__.call(*__monocontext__.prepare(f, x, y))
    f(x, key=y)     __monocontext__.bind(f, x, key=y)()
    x[key] = y      __monocontext__.at(x)[key] = y

The home of a function decides:

- **cells and ours**: functions and classes of cells, of this package and of the host. Their arguments stay unchanged.
- **carriers**: `list.append`, `dict`, `functools.partial`, `Executor.submit` and others that keep or pass on their
  arguments. Their arguments stay unchanged too, unless a foreign function is among them, which gets the others in the
  end.
- **foreign**: all others. Texts among the arguments become real, also inside lists, tuples and dicts, at several
  levels. The function gets a copy of the container, and its changes are copied to the original.

Without a lazy text nothing changes: C code makes the call, in the frame that wrote it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import _lru_cache_wrapper, partial
from types import (
    BuiltinFunctionType,
    ClassMethodDescriptorType,
    FunctionType,
    MethodDescriptorType,
    MethodType,
    MethodWrapperType,
    ModuleType,
    WrapperDescriptorType,
)
from typing import TYPE_CHECKING, Any

from monocontext.errors import ContextTooLarge
from monocontext.text.lazy_kinds import LazyContainer, LazyText

if TYPE_CHECKING:
    from monocontext.text.str_methods import StrLike

REAL_BUILTINS: tuple[Any, ...] = (int, float, complex, ord, bytes, bytearray, eval, exec, compile)
"""Builtins that need a real `str`. The others carry, or take lazy texts."""
CALLING_BUILTINS: tuple[Any, ...] = (map, filter, sorted, min, max, iter)
"""Builtins that may receive a function to call."""
_TEXTUAL = (str, bytes, bytearray, int, float, complex)
"""Builtin types whose methods are foreign."""
_CARRIERS = frozenset({
    "abc", "asyncio", "bisect", "builtins", "collections", "concurrent", "contextlib", "contextvars", "copy", "copyreg",
    "dataclasses", "enum", "functools", "heapq", "itertools", "multiprocessing", "operator", "pickle", "queue",
    "random", "thread", "threading", "tqdm", "types", "typing",
})  # fmt: skip
"""Modules whose functions keep or pass on their arguments; `_bisect` counts as `bisect`."""
_SILENT = frozenset({"logging", "pandas", "polars", "pprint"})
"""Packages that silently take any object and then give other results than for a `str`, or that hide errors."""
_CELLS, _OURS = "<cells>", "monocontext"

_Made = tuple[Any, list[Any], dict[str, Any]]

_TEXTS = LazyText.kinds
_SUSPECTS = LazyText.suspects
_SHAPES = LazyText.shapes
_ITERATORS = LazyText.iterators
_DEEP = 2
"""Levels of nested containers to search: a table is a dict of lists, or a list of dicts."""
_SHOWN_DEEP = 4
"""The levels to search of a value that is shown as text."""
_FEW = 8
"""Larger containers are searched only for a foreign callee: a list may have a million items."""


class Foreign:
    """The helper of rewritten code. `host`: functions that the host made for this namespace, which count as ours."""

    call: Any = staticmethod(operator.call)
    """In C, so that a traceback has no frame between the cell and its callee."""

    def __init__(self) -> None:
        self.host: dict[int, object] = {}
        self._targets: dict[type, str] = {}

    def prepare(self, *made: Any) -> tuple[Any, ...]:
        """The callee and arguments to call instead; reads texts that must become real."""
        for each in made:
            if (kind := type(each)) in _SUSPECTS and (
                kind in _TEXTS
                or kind is dict
                or kind in _SHAPES
                or kind in _ITERATORS
                or len(each) > _FEW
                or not _SUSPECTS.isdisjoint(map(type, each))
            ):
                callee, args, _ = self._real(made, {}, sys._getframe(1).f_globals)
                return callee, *args
        return made

    def bind(self, callee: Any, /, *args: Any, **options: Any) -> Callable[[], Any]:
        """Like `prepare`, for a call with keywords: a callable without arguments."""
        for each in args:
            if type(each) in _SUSPECTS:
                break
        else:
            for each in options.values():
                if type(each) in _SUSPECTS:
                    break
            else:  # the call itself refuses what cannot be called, as it would in plain code
                return partial(callee, *args, **options) if callable(callee) else partial(operator.call, callee)
        callee, given, options = self._real((callee, *args), options, sys._getframe(1).f_globals)
        return partial(operator.call, callee, *given, **options)

    def at(self, target: Any) -> Any:
        """The object to assign into in place of `target[...]` or `target.name`."""
        kind = type(target)
        if (foreign := self._targets.get(kind)) is None:
            if len(self._targets) > 1000:  # bounded: code may make any number of types
                self._targets.clear()
            home = _home_of_class(kind, sys._getframe(1).f_globals)
            self._targets[kind] = foreign = home if _is_foreign(home) else ""
        return _AssignmentTarget(target, foreign) if foreign else target

    def _real(self, made: tuple[Any, ...], options: dict[str, Any], cell: Mapping[str, Any]) -> _Made:
        callee, *args = made
        if id(callee) in self.host:
            return callee, args, options
        home = _home(callee, cell)
        if not _is_foreign(home) and not (home in _CARRIERS and self._any_foreign((*args, *options.values()), cell)):
            return callee, args, options
        return _ForeignCall(home).real(callee, args, options)

    def _any_foreign(self, values: Iterable[Any], cell: Mapping[str, Any]) -> bool:
        return any(callable(each) and id(each) not in self.host and _is_foreign(_home(each, cell)) for each in values)


class _AssignmentTarget:
    """A foreign object, as the target of an assignment."""

    __slots__ = ("_target_and_home",)

    _target_and_home: tuple[Any, str]

    def __init__(self, target: Any, home: str):
        object.__setattr__(self, "_target_and_home", (target, home))

    def __setitem__(self, key: Any, value: Any) -> None:
        target, home = self._target_and_home
        callee, args, _ = _ForeignCall(home).real(operator.setitem, [target, key, value], {})
        callee(*args)

    def __setattr__(self, name: str, value: Any) -> None:
        target, home = self._target_and_home
        callee, args, _ = _ForeignCall(home).real(setattr, [target, name, value], {})
        callee(*args)


class _ForeignCall:
    """One call of a foreign function, whose package is `home`."""

    def __init__(self, home: str):
        self._home = home
        self._texts: dict[int, tuple[StrLike, str]] = {}
        self._large: list[StrLike | LazyContainer] = []
        self._copies: list[tuple[Any, Any]] = []
        self._joins = False

    def real(self, callee: Any, args: list[Any], options: dict[str, Any]) -> _Made:
        """The callee, arguments and keywords to call instead."""
        self._joins = not self._home and getattr(callee, "__name__", "") == "join"
        deep = 0 if callee is exec or callee is eval else _DEEP  # their dicts are namespaces
        args = [self.make_value_real(each, deep) for each in args]
        options = {name: self.make_value_real(each, deep) for name, each in options.items()}
        if self._large and (self._home in _SILENT or getattr(callee, "__name__", "") == "format"):
            self.refuse_large(self._home or "format")
        if self._large or self._copies:
            return _call_with_copies, [callee, args, options, self._copies, _note_large(self._large)], {}
        return callee, args, options

    def refuse_large(self, what: str) -> None:
        """Raise `ContextTooLarge` where a value that must become real is above the limit."""
        for large in self._large:
            if isinstance(large, LazyContainer):
                raise large._too_large(what)
            raise large._too_large(what, large._known_length, "give it a slice, context[a:b], or parts in a loop")

    def make_value_real(self, value: Any, deep: int) -> Any:
        """A value with real texts in it, down to `depth` levels of containers; iterators are used up for functions that
        keep items."""
        kind = type(value)
        if kind not in _SUSPECTS:
            return value
        if kind in _TEXTS:
            return self._real(value)
        if self._joins and deep == _DEEP and (kind in _SHAPES or kind in _ITERATORS):
            value, kind = list(value), list
        elif kind in _SHAPES:
            real = value._materialize()
            if real is None:
                self._large.append(value)
                return value
            return real
        elif kind in _ITERATORS:
            if self._home not in _SILENT:
                return value
            value, kind = list(value), list
        parts = value.values() if kind is dict else value
        if not deep or (_SUSPECTS.isdisjoint(map(type, parts)) and _SUSPECTS.isdisjoint(map(type, _keys(value)))):
            return value
        before = _items(value)
        after = [self.make_value_real(each, deep - 1) for each in before]
        if "__builtins__" in _keys(value) or not any(map(operator.is_not, before, after)):
            return value
        copy = kind(zip(after[::2], after[1::2], strict=True)) if kind is dict else kind(after)
        if kind is not tuple:
            self._copies.append((value, copy))
        return copy

    def _real(self, text: StrLike) -> Any:
        if (made := self._texts.get(id(text))) is not None:
            return made[1]
        real = text._materialize()
        if real is None:
            self._large.append(text)
            return text
        self._texts[id(text)] = text, real
        return real


def _call_with_copies(
    callee: Any, args: list[Any], options: dict[str, Any], copies: list[tuple[Any, Any]], note: str, /, **more: Any
) -> Any:
    before = [(container, copy, _items(copy), _items(container)) for container, copy in copies]
    try:
        return callee(*args, **options, **more)
    except Exception as error:
        if note and not isinstance(error, ContextTooLarge):
            error.add_note(note)
        raise
    finally:
        for container, copy, made, kept in before:
            now = _items(copy)
            if len(now) != len(made) or any(map(operator.is_not, now, made)):
                _write_back(container, copy, dict(zip(map(id, made), kept, strict=True)))


def _items(container: Any) -> list[Any]:
    return [each for pair in container.items() for each in pair] if type(container) is dict else list(container)


def _write_back(container: Any, copy: Any, lazy: Mapping[int, Any]) -> None:
    """Copy the changes of a copy to the original, with the lazy texts in place of their real ones."""
    if type(container) is dict:
        changed = {lazy.get(id(key), key): lazy.get(id(value), value) for key, value in copy.items()}
        container.clear()
        container.update(changed)
    else:
        container[:] = [lazy.get(id(each), each) for each in copy]


def _keys(container: Any) -> Iterable[Any]:
    return container if type(container) is dict else ()


def real_inside(value: Any) -> Any:
    """A value to show as text: a list, tuple or dict with lazy texts in it becomes one with real texts. Raises
    `ContextTooLarge` for a text above the limit, whose `repr` would show no text."""
    if type(value) not in (list, tuple, dict):
        return value
    made = _ForeignCall("")
    real = made.make_value_real(value, _SHOWN_DEEP)
    made.refuse_large("the text of a container")
    return real


def is_foreign_object(value: Any) -> bool:
    """Whether a value is one of a library's own classes."""
    return _is_foreign(_home_of_owner(type(value), {}))


def _note_large(large: list[StrLike | LazyContainer]) -> str:
    if not large:
        return ""
    if isinstance(large[0], LazyContainer):
        return str(large[0]._too_large("a real one for it"))
    size = large[0]._known_length
    characters = "many" if size is None else f"{size:,}"
    return (
        f"It got a lazy text of {characters} characters, more than the limit of one str ({large[0]._limit:,}): "
        "pass a slice, context[a:b], or parts: for piece in context.chunks(): ..."
    )


# -- the home of a function ------------------------------------------------------------------------------------------


def _is_foreign(home: str) -> bool:
    return home not in _CARRIERS and home not in (_CELLS, _OURS)


def _home(callee: Any, cell: Mapping[str, Any]) -> str:
    """The top package of a callable; `_CELLS` for code of cells, "" for a function that only reads a `str`."""
    where = _HOMES.get(type(callee))
    if where is not None:
        return where(callee, cell)
    if isinstance(callee, type):
        return _home_of_class(callee, cell)
    called = getattr(type(callee), "__call__", None)  # noqa: B004 - reads the attribute, does not test for it
    return (
        _CELLS
        if isinstance(called, FunctionType) and called.__globals__ is cell
        else _home_of_owner(type(callee), cell)
    )


def _home_of_function(callee: Any, cell: Mapping[str, Any]) -> str:
    if callee.__globals__ is cell:
        return _CELLS
    wrapped = callee.__dict__.get("__wrapped__")
    return _top_package(callee.__module__) if wrapped is None else _home(wrapped, cell)


def _home_of_method(callee: Any, cell: Mapping[str, Any]) -> str:
    home = _home(callee.__func__, cell)
    if home == "collections" and not isinstance(callee.__self__, type):  # `os.environ.get` is that of any mapping
        return _home_of_owner(type(callee.__self__), cell)
    return home


def _home_of_builtin(callee: Any, cell: Mapping[str, Any]) -> str:
    owner = callee.__self__
    if owner is None or type(owner) is ModuleType:
        return "" if callee in _REAL_FUNCTIONS else _top_package(callee.__module__)
    return _home_of_owner(owner if isinstance(owner, type) else type(owner), cell)


_REAL_FUNCTIONS = frozenset(each for each in REAL_BUILTINS if type(each) is BuiltinFunctionType)
_HOMES: dict[type, Callable[[Any, Mapping[str, Any]], str]] = {
    FunctionType: _home_of_function,
    MethodType: _home_of_method,
    partial: lambda callee, cell: _home(callee.func, cell),
    _lru_cache_wrapper: lambda callee, cell: _home(callee.__wrapped__, cell),
    BuiltinFunctionType: _home_of_builtin,
    MethodWrapperType: _home_of_builtin,
    **dict.fromkeys(
        (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
        lambda callee, cell: _home_of_owner(callee.__objclass__, cell),
    ),
    type: lambda callee, cell: _home_of_owner(callee, cell),
}


def _home_of_owner(kind: type, cell: Mapping[str, Any]) -> str:
    return "" if kind in _TEXTUAL else _home_of_class(kind, cell)


def _home_of_class(kind: type, cell: Mapping[str, Any]) -> str:
    """The home of a class; for a class of a cell, the home of the base that takes its arguments."""
    if not kind.__flags__ & 1 << 9 or kind.__module__ != cell.get("__name__", "builtins"):  # Py_TPFLAGS_HEAPTYPE
        return _top_package(kind.__module__)
    if isinstance(init := kind.__init__, FunctionType) and init.__globals__ is cell:  # type: ignore[misc]
        return _CELLS
    bases = [_top_package(base.__module__) for base in kind.__mro__ if base.__module__ != kind.__module__]
    return next(filter(_is_foreign, bases), _CELLS)


def _top_package(module: object) -> str:
    return module.partition(".")[0].lstrip("_") if isinstance(module, str) else ""
