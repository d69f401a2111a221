"""The methods that asynchronous objects have from synchronous ones: one list of names, and how each is called.

`methods.pyi` has their types; `python tests/aio/stub.py` writes it.
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


_BATCHES = {"__iter__": 100}
"""The items that a hop to a thread fetches, if more than 1: a hop costs as much as ten lines or names."""


def _method(name: str, mode: Mode, method: Any) -> Any:
    """The asynchronous form of a synchronous method or property of this name."""

    @wraps(getattr(method, "fget", method))
    def asynchronous(self: Any, /, *args: Any, **options: Any) -> Any:
        def work() -> Any:
            attribute = getattr(self._text, name)
            return attribute if isinstance(method, property) else attribute(*args, **options)

        if mode is Mode.AT_ONCE:
            return self._wrap(work())
        if mode is Mode.AWAITED:
            return self._call(lambda: self._wrap(work()))
        return self._each(work, _BATCHES.get(name, 1))

    return property(asynchronous) if isinstance(method, property) else asynchronous


def _methods(source: type, names: dict[Mode, str]) -> type:
    """A base class with asynchronous methods of `source`. `names`: by mode, each as `name` or `new=old`."""
    methods = {}
    for mode, words in names.items():
        for new, _, old in (word.rpartition("=") for word in words.split()):
            methods[new or old] = _method(old, mode, getattr(source, old))
    return type("Methods", (), {"_names": names} | methods)


TextMethods = _methods(Monocontext, {
    Mode.AT_ONCE: "__len__ url generation stats lines documents prefetch hint thinking reads_since handed_since",
    Mode.STREAMED: "grep chunks",
    Mode.AWAITED: """
        contains=__contains__ find rfind index rindex count startswith endswith search outline substring view refresh
        split rsplit splitlines partition rpartition strip lstrip rstrip removeprefix removesuffix lower upper casefold
        capitalize swapcase title replace translate expandtabs encode center ljust rjust zfill format format_map join
        isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    """,
})  # fmt: skip
LineMethods = _methods(LineView, {Mode.AWAITED: "count=__len__ __getitem__", Mode.STREAMED: "__aiter__=__iter__"})
DocumentMethods = _methods(Documents, {
    Mode.AT_ONCE: "count", Mode.AWAITED: "contains=__contains__ record metadata at __getitem__",
    Mode.STREAMED: "items __aiter__=__iter__",
})  # fmt: skip
