"""Serve any object with a length and slices to a worker: a lazy context that has no `serve()`.

The worker may use `len`, items, slices, `in`, and the search methods of a `str`, on the object and on its `lines`. Each
use is a request to the host, which returns plain data. Nothing else of the object can be reached.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from rlm.context.excerpt import bounded_repr
from rlm.errors import ChannelAbuse
from rlm.runners.values import pack_for_worker, unpack_from_host

_METHODS = ("find", "rfind", "index", "rindex", "count", "startswith", "endswith")
_PARTS = ("", "lines")


def can_serve(context: object) -> bool:
    """Whether an object has a length and items."""
    return hasattr(type(context), "__len__") and hasattr(type(context), "__getitem__")


class IndexedServer:
    """Reads one object for a worker."""

    entry = "rlm.runners.indexed:connect"
    bad_request = ChannelAbuse

    def __init__(self, context: Any) -> None:
        self._context = context

    def answer(self, request: bytes) -> bytes:
        """The packed result of a request. Raises ChannelAbuse for a bad one, and any exception of the object."""
        fields = _parse(request)
        whole = self._context
        match fields:
            case ["open"]:
                parts = [part for part in _PARTS[1:] if hasattr(whole, part)]
                methods = [name for name in _METHODS if callable(getattr(whole, name, None))]
                return pack_for_worker((type(whole).__name__, bounded_repr(whole), parts, methods))
            case [str(part), *rest] if part in _PARTS:
                subject = getattr(whole, part) if part else whole
            case _:
                raise ChannelAbuse("no such part")
        match rest:
            case ["len"]:
                return pack_for_worker(len(subject))
            case ["item", int(at)]:
                return pack_for_worker(subject[at])
            case ["slice", start, stop, step] if all(bound is None or type(bound) is int for bound in rest[1:]):
                return pack_for_worker(subject[start:stop:step])
            case ["in", str(needle)]:
                return pack_for_worker(needle in subject)
            case [str(name), [*args]] if name in _METHODS and all(type(arg) in (str, int) for arg in args):
                return pack_for_worker(getattr(subject, name)(*args))
        raise ChannelAbuse("no such operation")

    def ready(self, request: bytes) -> bool:
        return False

    def close(self) -> None:
        """Nothing to free."""


def _parse(request: bytes) -> Any:
    try:
        return json.loads(request)
    except (ValueError, RecursionError) as exc:
        raise ChannelAbuse(f"not JSON: {type(exc).__name__}") from None


def connect(ask: Callable[[bytes], bytes | memoryview]) -> Indexed:
    """The context of a worker, which reads the host's object. For the worker."""
    name, shown, parts, methods = unpack_from_host(memoryview(ask(json.dumps(["open"]).encode())))
    kind = type(name, (Indexed,), {})
    made: Indexed = kind(ask, "", shown)
    for method in methods:
        setattr(made, method, made._method(method))
    for part in parts:
        setattr(made, part, Indexed(ask, part, f"<{part} of {shown}>"))
    return made


class Indexed(Sequence[Any]):
    """A sequence on the host, as a worker sees it."""

    def __init__(self, ask: Callable[[bytes], bytes | memoryview], part: str, shown: str) -> None:
        self._ask = ask
        self._part = part
        self._shown = shown

    def _call(self, *words: Any) -> Any:
        return unpack_from_host(memoryview(self._ask(json.dumps([self._part, *words]).encode())))

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
