"""`isinstance`, `issubclass`, `type` and `str` for a namespace: a lazy text passes for a `str`, a lazy list or dict for
a real one. For any other value they are the builtins."""

from __future__ import annotations

import builtins
from typing import Any

from monocontext.text.lazy_kinds import LazyItems, LazyMapping, LazyText

_STAND_INS: tuple[tuple[type, object], ...] = ((LazyText, ""), (LazyItems, []), (LazyMapping, {}))
# Reads neither `x.__class__`, which may run code of `x`, nor the hooks of an ABC, which cost four times as much.
_is_subclass = type.__subclasscheck__


def stand_in(value: object) -> object:
    """An empty value of the type that a lazy value stands for (`str`, `list` or `dict`); any other value unchanged."""
    kind = type(value)
    return next((real for lazy, real in _STAND_INS if _is_subclass(lazy, kind)), value)


def passes_isinstance(value: object, kind: Any, /) -> bool:
    """`isinstance` for which a lazy value is also an instance of the type that it stands for."""
    if isinstance(value, _ClassName):
        value = value.real
    real = stand_in(value)
    return isinstance(value, kind) or (real is not value and isinstance(real, kind))


def passes_issubclass(kind: Any, others: Any, /) -> bool:
    """`issubclass`, which also takes the `str` and `type` of this module as classes."""
    return issubclass(kind.real if isinstance(kind, _ClassName) else kind, others)


class _ClassName:
    """Stands for a builtin class under its name. As a base (`class C(str, Enum)`) it gives the real one."""

    real: type

    def __init__(self, real: type):
        self.real = real

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        return (self.real,)

    def __instancecheck__(self, value: object) -> bool:
        return isinstance(value, self.real) or isinstance(stand_in(value), self.real)

    def __subclasscheck__(self, kind: type) -> bool:
        return issubclass(kind, self.real)

    def __eq__(self, other: object) -> bool:
        return other is self.real or other is self

    def __hash__(self) -> int:
        return hash(self.real)

    def __or__(self, other: Any) -> Any:
        return self.real | other

    def __ror__(self, other: Any) -> Any:
        return other | self.real

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)

    def __dir__(self) -> list[str]:
        return dir(self.real)

    def __repr__(self) -> str:
        return repr(self.real)

    def __reduce__(self) -> tuple[Any, ...]:
        return _builtin, (self.real.__name__,)


def _builtin(name: str) -> object:
    """A builtin by its name; pickles call it."""
    return getattr(builtins, name)


class _StrName(_ClassName):
    """`str`. For a lazy text above its limit, `str(text)` returns the text itself, which has the methods of a `str`."""

    def __call__(self, *values: Any, **options: Any) -> Any:
        if len(values) == 1 and not options and isinstance(text := values[0], LazyText) and text.is_large:
            return text
        return str(*values, **options)

    @property
    def dtype(self) -> Any:
        """For numpy, which accepts `str` as the type of an array."""
        import numpy as np

        return np.dtype(str)


class _TypeName(_ClassName):
    """`type`. For a text it returns the `str` of this module, so that `type(x) is str` holds."""

    def __call__(self, *values: Any, **options: Any) -> Any:
        if len(values) != 1 or options:
            return type(*values, **options)
        kind = type(stand_in(values[0]))
        if kind is str:
            return STR
        return TYPE if kind in (type, _StrName, _TypeName) else kind

    def __getitem__(self, kind: Any) -> Any:
        return type[kind]


STR, TYPE = _StrName(str), _TypeName(type)
