"""The host's side of the `dspy` sandbox: operations on a text, with requests and replies as JSON.

A request names a value by *steps*: a list of [operation, arguments] that lead to it from the text.
A reply is `{"value": v}`, `{"tuple": [...]}`, `{"text": length or None}` or `{"list": True}` (which become proxies),
or `{"error": type, "message": text}`.
"""

from __future__ import annotations

import builtins
import itertools
import json
import re
import threading
from collections.abc import Iterator
from typing import Any

from monocontext.text import regex
from monocontext.text.lazy_kinds import LazyItems, LazyText
from monocontext.text.str_methods import StrLike

_OPERATORS = ("__add__", "__radd__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__len__")
_PUBLIC = frozenset(name for name in dir(str) if not name.startswith("_"))
_RE = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn")
_MAX_REMEMBERED = 64
"""The most derived texts and lists, and the most iterators, that are kept. A dropped one is made again when needed."""


class Remote:
    """The host's end for one text, for the sandboxes of a `dspy.RLM`. Safe for use by many threads.

    `most_characters`: the most that one reply may have.
    """

    def __init__(self, context: Any, most_characters: int):
        self._context = context
        self._most = most_characters
        self._results: dict[str, Any] = {}
        """Derived values by their steps as JSON, the oldest first."""
        self._passes: dict[tuple[str, int], Iterator[Any]] = {}
        """Iterators over lists, by the steps of the list and the number of the next item."""
        self._lock = threading.Lock()

    def call(self, steps: list[Any], name: str, arguments: list[Any]) -> dict[str, Any]:
        """Run the operation `name` on the value of `steps`. An `Exception` is not raised: it is a reply."""
        try:
            if name == "batch":
                return {"value": self._batch(steps, *arguments)}
            return self._pack(self._operate(self._value(steps), name, arguments))
        except Exception as error:
            # The sandbox knows only builtin errors: send the nearest builtin base.
            kinds = (kind.__name__ for kind in type(error).__mro__ if getattr(builtins, kind.__name__, None) is kind)
            return {"error": "re.error" if isinstance(error, re.error) else next(kinds), "message": str(error)}

    def _value(self, steps: list[Any]) -> Any:
        """The value of the steps; made again if it was dropped."""
        if not steps:
            return self._context
        key = json.dumps(steps)
        value = self._results.get(key)
        if value is None:
            value = self._operate(self._value(steps[:-1]), *steps[-1])
            self._remember(self._results, key, value)
        return value

    def _operate(self, value: Any, name: str, arguments: list[Any]) -> Any:
        """The result of one operation on a value. Raises `AttributeError` for one that is not allowed."""
        decoded = [self._decode(item) for item in arguments]
        if name == "item":
            return value[decoded[0]]
        if name == "slice":
            return self._part(value[decoded[0] : decoded[1]])
        if name == "translate":
            return value.translate(dict(decoded[0]))
        if name.startswith("re.") and name[3:] in _RE:
            return self._search(value, name[3:], *decoded)
        if name not in _PUBLIC and name not in _OPERATORS:
            raise AttributeError(name)
        return getattr(value, name)(*decoded)

    def _decode(self, value: Any) -> Any:
        """An argument from JSON, the reverse of `ContextProxy._encode`."""
        if type(value) is dict and "steps" in value:
            return self._value(value["steps"])
        if type(value) is dict and "tuple" in value:
            return tuple(self._decode(item) for item in value["tuple"])
        return value

    def _part(self, part: Any) -> str:
        """All of a slice as a `str`. Raises `ValueError` if it is too long for one reply."""
        if len(part) > self._most:
            raise ValueError(f"a slice must have at most {self._most:,} characters here, not {len(part):,}")
        return part if isinstance(part, str) else "".join(part.chunks())

    def _search(self, text: Any, name: str, pattern: str, rest: list[Any], options: dict[str, int]) -> Any:
        """A function of `re` on a text.

        `rest`: arguments by position, for `sub` the replacement first; `options`: by name.
        """
        before = rest[:1] if name in ("sub", "subn") else []
        found = getattr(regex, name)(pattern, *before, text, *rest[len(before) :], **options)
        if name == "finditer":
            return (_pack_match(match) for match in found)
        return _pack_match(found) if found is not None and name in ("search", "match", "fullmatch") else found

    def _batch(self, steps: list[Any], start: int, most: int) -> list[Any]:
        """Up to `most` packed items of a list from `start` on; continues a pass that is there already.

        Raises `MemoryError` above the limit of characters.
        """
        key = json.dumps(steps)
        with self._lock:  # remove it: no other thread may continue it
            items = self._passes.pop((key, start), None)
        if items is None:
            # Not `self._value(steps)`, since an iterator of matches can be read only once.
            items = itertools.islice(self._operate(self._value(steps[:-1]), *steps[-1]), start, None)
        taken, characters = [], 0
        for item in itertools.islice(items, most):
            size = len(item) if isinstance(item, str) else 0
            characters += size if size <= self._most else 0  # a longer one is sent as a proxy
            if characters > self._most:
                raise MemoryError(f"items {start:,} and following have more than {self._most:,} characters: take fewer")
            taken.append(self._pack(item))
        if len(taken) == most:
            self._remember(self._passes, (key, start + most), items)
        return taken

    def _pack(self, value: Any) -> dict[str, Any]:
        """The reply for a result: the value itself, or what proxy the sandbox makes."""
        if isinstance(value, StrLike):
            return {"text": len(value)}
        if isinstance(value, str) and len(value) > self._most:
            return {"text": len(value)}
        if isinstance(value, tuple):
            return {"tuple": [self._pack(item) for item in value]}
        if isinstance(value, LazyItems):
            return {"list": True}
        if type(value) is list and (
            any(isinstance(item, LazyText) for item in value)
            or sum(len(item) for item in value if isinstance(item, str)) > self._most
        ):
            return {"list": True}
        return {"value": value}

    def _remember(self, table: dict[Any, Any], key: Any, value: Any) -> None:
        """Keep a value; above `_MAX_REMEMBERED` the oldest is dropped."""
        with self._lock:
            table[key] = value
            if len(table) > _MAX_REMEMBERED:
                del table[next(iter(table))]


def _pack_match(match: Any) -> list[Any]:
    """The spans, groups and group names of a match, the arguments of `MatchProxy`."""
    return [[*match.regs], [match[number] for number in range(match.re.groups + 1)], dict(match.re.groupindex)]
