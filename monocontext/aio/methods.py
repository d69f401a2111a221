"""Derive asynchronous methods from synchronous ones: tables list which, and how each is called.

A class with these methods also has `_text`, `_wrap`, `_call` and `_each`, as `text._Awaiting` does. The types are in
`methods.pyi`, which `python tests/aio/stub.py` writes.
"""

from __future__ import annotations

from enum import Enum
from functools import wraps
from typing import Any

from monocontext.text.documents.by_name import Documents
from monocontext.text.lines import LineView
from monocontext.text.monocontext import Monocontext


class Mode(Enum):
    """How an asynchronous method runs the synchronous one."""

    AT_ONCE = "in the caller's thread, since it never waits for data"
    AWAITED = "in another thread; its result is awaited"
    STREAMED = "in another thread; an `async for` loop takes its items"


_ITEMS_AT_ONCE = {"__iter__": 100}
"""How many items one call in a thread fetches, by method; 1 for others. A call takes as long as ten lines."""


def _asynchronous(name: str, mode: Mode, method: Any) -> Any:
    """The asynchronous form of a synchronous method or property with this name."""

    @wraps(getattr(method, "fget", method))
    def asynchronous(self: Any, /, *args: Any, **options: Any) -> Any:
        def work() -> Any:
            attribute = getattr(self._text, name)
            return attribute if isinstance(method, property) else attribute(*args, **options)

        if mode is Mode.AT_ONCE:
            return self._wrap(work())
        if mode is Mode.AWAITED:
            return self._call(lambda: self._wrap(work()))
        return self._each(work, _ITEMS_AT_ONCE.get(name, 1))

    return property(asynchronous) if isinstance(method, property) else asynchronous


def _methods(class_name: str, source: type, names: dict[Mode, str], renamed: dict[str, str]) -> type:
    """A base class with the asynchronous forms of methods of `source`. `renamed`: their names there, if different."""
    methods = {}
    for mode, words in names.items():
        for name in words.split():
            source_name = renamed.get(name, name)
            methods[name] = _asynchronous(source_name, mode, getattr(source, source_name))
    return type(class_name, (), {"_names": names} | methods)


TextMethods = _methods("TextMethods", Monocontext, {
    Mode.AT_ONCE: "__len__ url generation stats lines documents prefetch hint thinking reads_since handed_since",
    Mode.STREAMED: "grep chunks",
    Mode.AWAITED: """
        contains find rfind index rindex count startswith endswith search outline substring view refresh
        split rsplit splitlines partition rpartition strip lstrip rstrip removeprefix removesuffix lower upper casefold
        capitalize swapcase title replace translate expandtabs encode center ljust rjust zfill format format_map join
        isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    """,
}, renamed={"contains": "__contains__"})  # fmt: skip
LineMethods = _methods("LineMethods", LineView, {
    Mode.AWAITED: "count __getitem__", Mode.STREAMED: "__aiter__",
}, renamed={"count": "__len__", "__aiter__": "__iter__"})  # fmt: skip
DocumentMethods = _methods("DocumentMethods", Documents, {
    Mode.AT_ONCE: "count", Mode.AWAITED: "contains record metadata at __getitem__", Mode.STREAMED: "items __aiter__",
}, renamed={"contains": "__contains__", "__aiter__": "__iter__"})  # fmt: skip
