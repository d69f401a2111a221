"""Give functions that know no lazy text a real `str` in its place, up to the limit.

    f(x, y)         __monocontext__.call(*__monocontext__.prepare(f, x, y))
    f(x, key=y)     __monocontext__.bind(f, x, key=y)()
    x[key] = y      __monocontext__.at(x)[key] = y

The home of a function (`homes`) decides what its arguments become:

- **cells and ours**: functions and classes of cells, of this package and of the host get their arguments unchanged.
- **carriers**: `list.append`, `dict`, `functools.partial`, `Executor.submit` and others that keep or pass on their
  arguments get them unchanged too, unless one argument is a foreign function, which gets the others in the end.
- **foreign**: all other functions get a real `str` for each lazy text, also inside lists, tuples and dicts. They get
  copies of these containers, and their changes are copied to the originals.

A call without a lazy text stays the same: C code makes it, in the frame that wrote it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from monocontext.errors import ContextTooLarge
from monocontext.text.lazy_kinds import LazyContainer, LazyText
from monocontext.text.namespace.homes import CARRIERS, home_of, home_of_class, is_foreign

if TYPE_CHECKING:
    from monocontext.text.str_methods import StrLike

_SILENT = frozenset({"logging", "pandas", "polars", "pprint"})
"""Packages that take any object, and give other results for it than for a `str` or hide errors. A text above the limit
raises for these."""
_Call = tuple[Any, list[Any], dict[str, Any]]
"""A callee, its arguments and its keywords."""

_TEXTS = LazyText.kinds
_SUSPECTS = LazyText.suspects
_SHAPES = LazyText.shapes
_ITERATORS = LazyText.iterators
_DEPTH = 2
"""The levels of nested containers that are searched: a table is a dict of lists, or a list of dicts."""
_SHOWN_DEPTH = 4
"""The levels that are searched of a value that is shown as text."""
_FEW = 8
"""The most items of a container that are searched for every callee. Larger ones, which may have a million, are searched
only for a foreign callee."""


class Foreign:
    """The object that rewritten code calls to make its calls of functions."""

    call: Any = staticmethod(operator.call)
    """Calls a function. It is written in C, so a traceback has no frame between the cell and its callee."""

    def __init__(self) -> None:
        self.host: dict[int, object] = {}
        """Functions that the host made for this namespace, by `id`. They count as ours."""
        self._targets: dict[type, str] = {}
        """The home of each class whose objects code assigned into; empty for a class that is not foreign."""

    def prepare(self, *call: Any) -> tuple[Any, ...]:
        """The callee and arguments to use in place of these. Reads texts that must become real."""
        for each in call:
            # A call without a lazy text must stay fast, so small lists and tuples are looked into here.
            if (kind := type(each)) in _SUSPECTS and (
                kind in _TEXTS
                or kind is dict
                or kind in _SHAPES
                or kind in _ITERATORS
                or len(each) > _FEW
                or not _SUSPECTS.isdisjoint(map(type, each))
            ):
                callee, args, _ = self._real_call(call, {}, sys._getframe(1).f_globals)
                return callee, *args
        return call

    def bind(self, callee: Any, /, *args: Any, **options: Any) -> Callable[[], Any]:
        """`prepare` for a call with keywords. Returns a callable without arguments."""
        if _SUSPECTS.isdisjoint(map(type, args)) and _SUSPECTS.isdisjoint(map(type, options.values())):
            # A callee that is not callable raises in the call itself, as in plain code.
            return partial(callee, *args, **options) if callable(callee) else partial(operator.call, callee)
        callee, real_args, options = self._real_call((callee, *args), options, sys._getframe(1).f_globals)
        return partial(operator.call, callee, *real_args, **options)

    def at(self, target: Any) -> Any:
        """The object to assign into in place of `target[...]` or `target.name`."""
        kind = type(target)
        if (foreign := self._targets.get(kind)) is None:
            if len(self._targets) > 1000:  # bounded: code may make any number of types
                self._targets.clear()
            home = home_of_class(kind, sys._getframe(1).f_globals)
            self._targets[kind] = foreign = home if is_foreign(home) else ""
        return _AssignmentTarget(target, foreign) if foreign else target

    def _real_call(self, call: tuple[Any, ...], options: dict[str, Any], cell: Mapping[str, Any]) -> _Call:
        """The call with real texts if its callee is foreign. `cell`: the globals of the code that calls."""
        callee, *args = call
        if id(callee) in self.host:
            return callee, args, options
        home = home_of(callee, cell)
        if not is_foreign(home) and not (home in CARRIERS and self._any_foreign((*args, *options.values()), cell)):
            return callee, args, options
        return _ForeignCall(home).real(callee, args, options)

    def _any_foreign(self, values: Iterable[Any], cell: Mapping[str, Any]) -> bool:
        return any(callable(each) and id(each) not in self.host and is_foreign(home_of(each, cell)) for each in values)


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
        """Texts and their real ones, by the `id` of the text."""
        self._large: list[StrLike | LazyContainer] = []
        """Values above the limit, which stay lazy."""
        self._copies: list[tuple[Any, Any]] = []
        """Containers and their copies with real texts."""
        self._joins = False
        """Whether the callee is `str.join`."""

    def real(self, callee: Any, args: list[Any], options: dict[str, Any]) -> _Call:
        """The callee, arguments and keywords to call instead."""
        self._joins = not self._home and getattr(callee, "__name__", "") == "join"
        depth = 0 if callee is exec or callee is eval else _DEPTH  # their dicts are namespaces
        args = [self.make_value_real(each, depth) for each in args]
        options = {name: self.make_value_real(each, depth) for name, each in options.items()}
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

    def make_value_real(self, value: Any, depth: int) -> Any:
        """The value with real texts, down to `depth` levels of containers. For `str.join` and for packages of `_SILENT`
        an iterator becomes a list."""
        kind = type(value)
        if kind not in _SUSPECTS:
            return value
        if kind in _TEXTS:
            return self._real_text(value)
        if self._joins and depth == _DEPTH and (kind in _SHAPES or kind in _ITERATORS):
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
        if not depth or (_SUSPECTS.isdisjoint(map(type, parts)) and _SUSPECTS.isdisjoint(map(type, _keys(value)))):
            return value
        before = _items(value)
        after = [self.make_value_real(each, depth - 1) for each in before]
        if "__builtins__" in _keys(value) or not any(map(operator.is_not, before, after)):
            return value
        copy = kind(zip(after[::2], after[1::2], strict=True)) if kind is dict else kind(after)
        if kind is not tuple:
            self._copies.append((value, copy))
        return copy

    def _real_text(self, text: StrLike) -> Any:
        if (known := self._texts.get(id(text))) is not None:
            return known[1]
        real = text._materialize()
        if real is None:
            self._large.append(text)
            return text
        self._texts[id(text)] = text, real
        return real


def _call_with_copies(
    callee: Any, args: list[Any], options: dict[str, Any], copies: list[tuple[Any, Any]], note: str, /, **more: Any
) -> Any:
    """Make the call, copy changes of the copies to the originals, and add the note to an error."""
    before = [(container, copy, _items(copy), _items(container)) for container, copy in copies]
    try:
        return callee(*args, **options, **more)
    except Exception as error:
        if note and not isinstance(error, ContextTooLarge):
            error.add_note(note)
        raise
    finally:
        for container, copy, real_items, lazy_items in before:
            now = _items(copy)
            if len(now) != len(real_items) or any(map(operator.is_not, now, real_items)):
                _write_back(container, copy, dict(zip(map(id, real_items), lazy_items, strict=True)))


def _items(container: Any) -> list[Any]:
    """The items of a list or tuple, or the keys and values of a dict in turn."""
    return [each for pair in container.items() for each in pair] if type(container) is dict else list(container)


def _write_back(container: Any, copy: Any, lazy: Mapping[int, Any]) -> None:
    """Copy a changed copy to the original. `lazy`: the original items by the `id` of the real ones."""
    if type(container) is dict:
        changed = {lazy.get(id(key), key): lazy.get(id(value), value) for key, value in copy.items()}
        container.clear()
        container.update(changed)
    else:
        container[:] = [lazy.get(id(each), each) for each in copy]


def _keys(container: Any) -> Iterable[Any]:
    return container if type(container) is dict else ()


def real_inside(value: Any) -> Any:
    """A list, tuple or dict with real texts in place of lazy ones, to show it as text. Other values stay unchanged.
    Raises `ContextTooLarge` for a text above the limit, whose `repr` would show no text."""
    if type(value) not in (list, tuple, dict):
        return value
    call = _ForeignCall("")
    real = call.make_value_real(value, _SHOWN_DEPTH)
    call.refuse_large("the text of a container")
    return real


def _note_large(large: list[StrLike | LazyContainer]) -> str:
    """A note for an error of a function that got these values above the limit; empty for none."""
    if not large:
        return ""
    if isinstance(large[0], LazyContainer):
        return str(large[0]._too_large("making a real list or dict for this function"))
    size = large[0]._known_length
    characters = "many" if size is None else f"{size:,}"
    return (
        f"It got a lazy text of {characters} characters, more than the limit of one str ({large[0]._limit:,}): "
        "pass a slice, context[a:b], or parts: for piece in context.chunks(): ..."
    )
