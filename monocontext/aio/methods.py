"""The methods that asynchronous objects have from synchronous ones: one list of names, and how each is called.

`methods.pyi` has their types; `python tests/aio/stub.py` writes it.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

from monocontext.text.documents.by_name import Documents
from monocontext.text.lines import LineView
from monocontext.text.monocontext import Monocontext

AT_ONCE, AWAITED, ONE_BY_ONE, BY_HUNDREDS = 0, -1, 1, 100
"""How a method is called. The last two fetch so many items at a time: a hop to a thread costs as much as ten lines."""


def _method(name: str, mode: int, method: Any) -> Any:
    @wraps(getattr(method, "fget", method))
    def asynchronous(self: Any, /, *args: Any, **options: Any) -> Any:
        def work() -> Any:
            result = getattr(self._text, name)
            return result if isinstance(method, property) else result(*args, **options)

        if mode == AT_ONCE:
            return self._wrap(work())
        return self._call(lambda: self._wrap(work())) if mode == AWAITED else self._each(work, mode)

    return property(asynchronous) if isinstance(method, property) else asynchronous


def _methods(source: type, names: dict[int, str]) -> type:
    """A base class with methods of another class. A name that differs from that of the other one comes before it."""
    methods = {}
    for mode, words in names.items():
        for new, _, old in (word.rpartition("=") for word in words.split()):
            methods[new or old] = _method(old, mode, getattr(source, old))
    return type("Methods", (), {"_names": names} | methods)


TextMethods = _methods(Monocontext, {
    AT_ONCE: "__len__ url generation stats lines documents prefetch hint thinking reads_since handed_since",
    ONE_BY_ONE: "grep chunks",
    AWAITED: """
        contains=__contains__ find rfind index rindex count startswith endswith search outline substring view refresh
        split rsplit splitlines partition rpartition strip lstrip rstrip removeprefix removesuffix lower upper casefold
        capitalize swapcase title replace translate expandtabs encode center ljust rjust zfill format format_map join
        isalnum isalpha isascii isdecimal isdigit isidentifier islower isnumeric isprintable isspace istitle isupper
    """,
})  # fmt: skip
LineMethods = _methods(LineView, {AWAITED: "count=__len__ __getitem__", BY_HUNDREDS: "__aiter__=__iter__"})
DocumentMethods = _methods(Documents, {
    AT_ONCE: "count", AWAITED: "contains=__contains__ record metadata at __getitem__",
    ONE_BY_ONE: "items", BY_HUNDREDS: "__aiter__=__iter__",
})  # fmt: skip
