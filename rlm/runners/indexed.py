"""Any object that has a length and can be sliced, served to a worker: for lazy contexts that have no `serve()`.

What crosses is `len`, items, slices, `in`, and the search methods of a `str`, each as a call on the host whose result
is plain data; and the same of its `lines`. Nothing else of the object can be reached. Larger kinds of text, views and
patterns take a `serve()` of the context's own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rlm.excerpt import bounded_repr
from rlm.runners.values import packed, unpacked

_METHODS = ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")
_PARTS = ("", "lines")


class BadRequest(ValueError):
    """What no `Indexed` asks."""


def can_serve(context: object) -> bool:
    return hasattr(type(context), "__len__") and hasattr(type(context), "__getitem__")


class IndexedServer:
    """Answers for one object."""

    entry = "rlm.runners.indexed:connect"

    def __init__(self, context: Any) -> None:
        self._context = context

    def answer(self, request: bytes) -> bytes:
        """Raises BadRequest; what the object itself raises is raised in the worker."""
        fields = _parsed(request)
        whole = self._context
        match fields:
            case ["open"]:
                parts = [part for part in _PARTS[1:] if hasattr(whole, part)]
                methods = [name for name in _METHODS if callable(getattr(whole, name, None))]
                return packed((type(whole).__name__, bounded_repr(whole), parts, methods))
            case [str(part), *rest] if part in _PARTS:
                subject = getattr(whole, part) if part else whole
            case _:
                raise BadRequest("no such part")
        match rest:
            case ["len"]:
                return packed(len(subject))
            case ["item", int(at)]:
                return packed(subject[at])
            case ["slice", start, stop, step] if all(bound is None or type(bound) is int for bound in rest[1:]):
                return packed(subject[start:stop:step])
            case ["in", str(needle)]:
                return packed(needle in subject)
            case [str(name), [*args]] if name in _METHODS and all(type(arg) in (str, int) for arg in args):
                return packed(getattr(subject, name)(*args))
        raise BadRequest("no such operation")

    def ready(self, request: bytes) -> bool:
        return False

    def close(self) -> None:
        """Nothing to free."""


def _parsed(request: bytes) -> Any:
    try:
        return json.loads(request)
    except (ValueError, RecursionError) as exc:
        raise BadRequest(f"not JSON: {type(exc).__name__}") from None


def connect(ask: Callable[[bytes], bytes | memoryview]) -> Indexed:
    """In the worker: the object that stands for the host's."""
    name, shown, parts, methods = unpacked(memoryview(ask(json.dumps(["open"]).encode())))
    kind = type(name, (Indexed,), {})
    made: Indexed = kind(ask, "", shown)
    for method in methods:
        setattr(made, method, made._method(method))
    for part in parts:
        setattr(made, part, Indexed(ask, part, f"<{part} of {shown}>"))
    return made


class Indexed(Sequence[Any]):
    """Stands in a worker for a sequence of the host."""

    def __init__(self, ask: Callable[[bytes], bytes | memoryview], part: str, shown: str) -> None:
        self._ask = ask
        self._part = part
        self._shown = shown

    def _call(self, *words: Any) -> Any:
        return unpacked(memoryview(self._ask(json.dumps([self._part, *words]).encode())))

    def _method(self, name: str) -> Callable[..., Any]:
        return lambda *args: self._call(name, list(args))

    def __len__(self) -> int:
        return int(self._call("len"))

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            return self._call("slice", key.start, key.stop, key.step)
        return self._call("item", key.__index__())

    def __contains__(self, value: object) -> bool:
        return bool(self._call("in", value))

    def __str__(self) -> str:
        raise TypeError(f"{self._shown} is too large for one str: use slices such as context[a:b]")

    def __repr__(self) -> str:
        return self._shown
