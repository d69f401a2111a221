"""Find the home of a function: the top package that defines it. It tells whether the function takes lazy texts.

In all functions `cell` is the globals of the code that makes a call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
from typing import Any

REAL_BUILTINS: tuple[Any, ...] = (int, float, complex, ord, bytes, bytearray, eval, exec, compile)
"""Builtins that need a real `str`. The other builtins are carriers or take lazy texts."""
CALLING_BUILTINS: tuple[Any, ...] = (map, filter, sorted, min, max, iter)
"""Builtins that may receive a function to call."""
CARRIERS = frozenset({
    "abc", "asyncio", "bisect", "builtins", "collections", "concurrent", "contextlib", "contextvars", "copy", "copyreg",
    "dataclasses", "enum", "functools", "heapq", "itertools", "multiprocessing", "operator", "pickle", "queue",
    "random", "thread", "threading", "tqdm", "types", "typing",
})  # fmt: skip
"""Modules whose functions keep or pass on their arguments; `_bisect` counts as `bisect`."""
_TEXTUAL = (str, bytes, bytearray, int, float, complex)
"""Builtin types whose methods need a real `str`."""
_CELLS, _OURS = "<cells>", "monocontext"
_HEAP_TYPE = 1 << 9
"""`Py_TPFLAGS_HEAPTYPE`: the class is defined in Python, or by a C extension at run time."""


def is_foreign(home: str) -> bool:
    """Whether functions of this home need real texts."""
    return home not in CARRIERS and home not in (_CELLS, _OURS)


def is_foreign_object(value: Any) -> bool:
    """Whether a value is an object of a foreign class."""
    return is_foreign(_home_of_owner(type(value), {}))


def home_of(callee: Any, cell: Mapping[str, Any]) -> str:
    """The top package of a callable; `_CELLS` for code of cells, "" for a builtin that needs a real `str`."""
    home_of_kind = _HOMES.get(type(callee))
    if home_of_kind is not None:
        return home_of_kind(callee, cell)
    if isinstance(callee, type):
        return home_of_class(callee, cell)
    method = getattr(type(callee), "__call__", None)  # noqa: B004 - reads the attribute, does not test for it
    if isinstance(method, FunctionType) and method.__globals__ is cell:
        return _CELLS
    return _home_of_owner(type(callee), cell)


def _home_of_function(callee: Any, cell: Mapping[str, Any]) -> str:
    if callee.__globals__ is cell:
        return _CELLS
    wrapped = callee.__dict__.get("__wrapped__")
    return _top_package(callee.__module__) if wrapped is None else home_of(wrapped, cell)


def _home_of_method(callee: Any, cell: Mapping[str, Any]) -> str:
    home = home_of(callee.__func__, cell)
    if home == "collections" and not isinstance(
        callee.__self__, type
    ):  # such as `os.environ.get`, which `Mapping` defines
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
    partial: lambda callee, cell: home_of(callee.func, cell),
    _lru_cache_wrapper: lambda callee, cell: home_of(callee.__wrapped__, cell),
    BuiltinFunctionType: _home_of_builtin,
    MethodWrapperType: _home_of_builtin,
    **dict.fromkeys(
        (MethodDescriptorType, WrapperDescriptorType, ClassMethodDescriptorType),
        lambda callee, cell: _home_of_owner(callee.__objclass__, cell),
    ),
    type: lambda callee, cell: _home_of_owner(callee, cell),
}


def _home_of_owner(kind: type, cell: Mapping[str, Any]) -> str:
    """The home of the methods of a class."""
    return "" if kind in _TEXTUAL else home_of_class(kind, cell)


def home_of_class(kind: type, cell: Mapping[str, Any]) -> str:
    """The home of a class; for a class of a cell, the home of the base that takes its arguments."""
    if not kind.__flags__ & _HEAP_TYPE or kind.__module__ != cell.get("__name__", "builtins"):
        return _top_package(kind.__module__)
    if isinstance(init := kind.__init__, FunctionType) and init.__globals__ is cell:  # type: ignore[misc]
        return _CELLS
    bases = [_top_package(base.__module__) for base in kind.__mro__ if base.__module__ != kind.__module__]
    return next(filter(is_foreign, bases), _CELLS)


def _top_package(module: object) -> str:
    """The first part of a module's name, without underscores before it; empty without a name."""
    return module.partition(".")[0].lstrip("_") if isinstance(module, str) else ""
