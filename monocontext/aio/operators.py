"""Operators that asynchronous texts do not support. Each raises `TypeError`, which says what to await instead."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from monocontext.text.lazy_kinds import LazyText

PART = "read a part first, await text[a:b], or all of it, await text.read()"
EACH = "async for piece in text.chunks(), or async for line in text.lines"


def make_refusal(what: str, instead: str) -> Callable[..., NoReturn]:
    """Make a method that raises `TypeError` and says what to write instead."""

    def refuse(*_: object) -> NoReturn:
        raise TypeError(f"{what} cannot await a read: {instead}")

    return refuse


class RefusedOperators:
    """The operators of a `str`.

    Without these methods, `in` and `for` would iterate over coroutines for ever, `==` would compare identities, and an
    f-string would show the `repr`.
    """

    __contains__ = make_refusal("`x in text`", "await text.contains(x)")
    __iter__ = make_refusal("a loop over a text", EACH)
    __reversed__ = make_refusal("reversed(text)", "await text.read() gives a str to go through")
    __lt__ = __le__ = __gt__ = __ge__ = make_refusal("a comparison of texts", PART)
    __add__ = __radd__ = make_refusal("`text + x`", PART)
    __mul__ = __rmul__ = make_refusal("`text * n`", PART)
    __mod__ = __rmod__ = make_refusal("`text % x`", PART)
    __str__ = make_refusal("str(text)", PART)
    __format__ = make_refusal("an f-string or format() of a text", PART)
    __bytes__ = make_refusal("bytes(text)", PART)
    __hash__ = make_refusal("hash(text)", "use text.url as the key")

    def __eq__(self, other: object) -> Any:
        if other is self:
            return True
        if isinstance(other, str | LazyText | RefusedOperators):
            raise TypeError("`text == x` cannot await a read: await text.equals(x), which takes a str")
        return NotImplemented


class RefusedLineOperators:
    """The operators of a sequence of lines."""

    __contains__ = make_refusal("`x in lines`", "async for line in lines, or text.grep(x, fixed=True)")
    __iter__ = make_refusal("a loop over lines", "async for line in lines")
    __reversed__ = make_refusal("reversed(lines)", "await lines[a:b] gives a str to go through")


class RefusedMappingOperators:
    """The operators of a mapping of documents."""

    __contains__ = make_refusal("`name in documents`", "await documents.contains(name)")
    __iter__ = make_refusal("a loop over documents", "async for name in documents, or name, text in documents.items()")
    __len__ = make_refusal("len(documents)", "documents.count counts all")
    __bool__ = make_refusal("bool(documents)", "documents.count counts all")
