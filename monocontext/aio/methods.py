"""The methods that an asynchronous text has from the synchronous one: one list of names, and how each is called.

`methods.pyi` has their types; `python tests/aio/stub.py` writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from monocontext.text.documents.by_name import Documents
from monocontext.text.monocontext import Monocontext


class TextMethods:
    """The methods of an asynchronous text."""


class DocumentMethods:
    """The methods of its documents."""


METHODS: list[tuple[type, type, str, tuple[str, ...]]] = [
    (TextMethods, Monocontext, "at once", (
        "url", "generation", "stats", "prefetch", "hint", "thinking", "reads_since", "handed_since",
    )),
    (TextMethods, Monocontext, "iterated", ("grep", "chunks")),
    (TextMethods, Monocontext, "awaited", (
        "find", "rfind", "index", "rindex", "count", "startswith", "endswith", "search", "outline",
        "substring", "view", "refresh", "split", "rsplit", "splitlines", "partition", "rpartition", "strip", "lstrip",
        "rstrip", "removeprefix", "removesuffix", "lower", "upper", "casefold", "capitalize", "swapcase", "title",
        "replace", "translate", "expandtabs", "encode", "center", "ljust", "rjust", "zfill", "format", "format_map",
        "join", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric",
        "isprintable", "isspace", "istitle", "isupper",
    )),
    (DocumentMethods, Documents, "at once", ("count",)),
    (DocumentMethods, Documents, "awaited", ("record", "metadata", "at")),
]  # fmt: skip


def _make(method: Callable[..., Any], how: str) -> Any:
    @wraps(method)
    def asynchronous(self: Any, /, *args: Any, **options: Any) -> Any:
        def work() -> Any:
            return method(self._text, *args, **options)

        if how == "at once":
            return work()
        return self._await(work) if how == "awaited" else self._each(work, 1)

    return asynchronous


for _owner, _source, _how, _names in METHODS:
    for _name in _names:
        _method: Any = getattr(_source, _name)
        _getter = getattr(_method, "fget", None)  # of a property
        setattr(_owner, _name, property(_make(_getter, _how)) if _getter else _make(_method, _how))
