"""The methods of `str` over a span of any source.

Those of the first sections stay lazy at any size: searches stream, and a result that could be as large as the text is a
view above the limit. Every other method is the `str`'s own, on the real text, and raises `ContextTooLarge` above it.
"""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Self, SupportsIndex, cast, overload

from monocontext.errors import ContextTooLarge, Unhashable
from monocontext.format.index import ASCII, LOWER_KEEPS_LENGTH
from monocontext.text.derived import CaseChanged, Derived, Replaced
from monocontext.text.lazy_kinds import LazyText
from monocontext.text.lazy_lists import LazyList, LazyListOfLines, LazyListOfParts
from monocontext.text.source import Span, StoredSource
from monocontext.text.splitting import split_lines, split_words

Bound = SupportsIndex | None

_INSTEAD = "take a part, context[a:b], or go over context.chunks()"


def _on_str(name: str) -> Any:
    """Make a method that calls the method `name` of `str` on the real text."""

    def method(self: StrLike, *arguments: Any, **options: Any) -> Any:
        return getattr(self._whole(f"context.{name}(...)"), name)(*map(materialize, arguments), **options)

    method.__name__ = name
    method.__doc__ = f"As `str.{name}`, on the real text; `ContextTooLarge` above the limit."
    return method


def _ordering(compare: Callable[[int, int], bool]) -> Any:
    """A comparison method such as `__lt__`, given `operator.lt`. It streams up to the first difference."""
    return lambda self, other: compare(self._compare(other), 0) if isinstance(other, str | StrLike) else NotImplemented


class StrLike(LazyText):
    """The methods of `str`, over abstract methods that give a length, a part and the source of the characters."""

    __slots__ = ()
    _limit: int

    @property
    @abstractmethod
    def span(self) -> Span: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _str_or_view(self, start: int, stop: int) -> str | Self:
        """Characters [start, stop): a `str` up to the limit, above it a view of this kind."""

    @abstractmethod
    def _derived_text(self, source: Derived, recipe: tuple[Any, ...]) -> Self:
        """A text of this kind over a derived source. Another process derives it again from `recipe`."""

    @property
    @abstractmethod
    def _snapshot(self) -> Self:
        """This text, but unaffected by `refresh`, so that texts derived from it never change."""

    @property
    def is_large(self) -> bool:
        """Whether the text is above the limit of one `str` (no GET)."""
        return len(self) > self._limit

    def _whole(self, what: str, instead: str = _INSTEAD) -> str:
        """The text as one `str`, for the operation `what`. Above the limit, the error says what to write `instead`."""
        if self.is_large:
            raise self._too_large(what, len(self), instead)
        self.span.log_received(0, len(self))
        return self.span.read(0, len(self))

    def _too_large(self, what: str, size: int, instead: str = _INSTEAD) -> ContextTooLarge:
        """The error for a result of `size` characters."""
        return ContextTooLarge(
            f"{what} would make {size:,} characters, more than the limit of {self._limit:,} (materialize_limit): "
            f"{instead}"
        )

    # -- comparison ------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether a `str` or text has the same characters: compares lengths, then streams to the first difference."""
        if other is self:
            return True
        if not isinstance(other, str | StrLike):
            return NotImplemented
        if isinstance(other, StrLike) and other.span == self.span:
            return True
        return len(self) == len(other) and self._compare(other) == 0

    __lt__, __le__, __gt__, __ge__ = map(_ordering, (operator.lt, operator.le, operator.gt, operator.ge))

    def _compare(self, other: str | StrLike) -> int:
        """-1 if this text sorts first, 0 if both are equal, else 1; streams up to the first difference."""
        offset = 0
        for text in self.span.texts():
            stop = min(offset + len(text), len(other))
            other_text = other[offset:stop] if isinstance(other, str) else other.span.read(min(offset, stop), stop)
            if text != other_text:
                return -1 if text < other_text else 1
            offset = stop
        return -1 if offset < len(other) else 0

    def __hash__(self) -> int:
        """The hash of the equal `str`, up to the limit; reads the whole text."""
        if self.is_large:
            raise Unhashable(str(self._too_large("hash(context)", len(self), "use context.url or a slice as the key")))
        return hash(self._whole("hash"))

    # -- search ----------------------------------------------------------------------------------------------------

    def __contains__(self, needle: object) -> bool:
        """Whether a `str` occurs (GETs: as `find`)."""
        return self._find(_argument("__contains__", needle), None, None) >= 0

    def find(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """The first occurrence in [start, end), or -1.

        GETs: search filters first, then frames that may hold it, up to the first that does; without filters, the text
        up to it (1 for about 8 MiB stored).
        """
        return self._find(_argument("find", sub), start, end)

    def rfind(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """The last occurrence in [start, end), or -1 (GETs: as `find`, from the end)."""
        return self._find(_argument("rfind", sub), start, end, reverse=True)

    def index(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """Like `find`, but raises `ValueError` if there is no occurrence."""
        return _check_found(self._find(_argument("index", sub), start, end))

    def rindex(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """Like `rfind`, but raises `ValueError` if there is no occurrence."""
        return _check_found(self._find(_argument("rindex", sub), start, end, reverse=True))

    def _find(self, sub: str, start: Bound, end: Bound, reverse: bool = False) -> int:
        bounds = self._bounds(start, end, len(sub))
        if bounds is None:
            return -1
        low, high = bounds
        if not sub:
            return high if reverse else low
        span = self.span
        if reverse:
            return span.rfind(sub, low, high)
        if isinstance(span.source, StoredSource):
            offset = span.source.find_cached(sub, span.start + low, span.start + high)
            if offset >= 0:
                return offset - span.start
        return span.find(sub, low, high)

    def _bounds(self, start: Bound, end: Bound, size: int) -> tuple[int, int] | None:
        """The range that `start` and `end` select; None if `size` characters do not fit into it."""
        length = len(self)
        low, high, _ = slice(start, end).indices(length)
        beyond = start is not None and operator.index(start) > length
        return None if beyond or size > high - low else (low, high)

    def count(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        r"""The number of occurrences that do not overlap; streams everything, except for `"\n"` (at most 4 GETs)."""
        sub = _argument("count", sub)
        bounds = self._bounds(start, end, len(sub))
        if bounds is None:
            return 0
        low, high = bounds
        if not sub:
            return high - low + 1
        return self.span.line_of(high) - self.span.line_of(low) if sub == "\n" else self.span.count(sub, low, high)

    def startswith(self, prefix: str | tuple[str, ...], start: Bound = None, end: Bound = None, /) -> bool:
        """Like `str.startswith`; reads as many characters as the prefix has."""
        return self._has_affix("startswith", prefix, start, end)

    def endswith(self, suffix: str | tuple[str, ...], start: Bound = None, end: Bound = None, /) -> bool:
        """Like `str.endswith`; reads as many characters as the suffix has."""
        return self._has_affix("endswith", suffix, start, end)

    def _has_affix(self, name: str, affix: object, start: Bound, end: Bound) -> bool:
        slice(start, end).indices(0)  # raises for bounds that are not numbers, also with an empty tuple
        for item in affix if isinstance(affix, tuple) else (affix,):
            text = _argument(name, item, (item,) if isinstance(affix, tuple) else item)
            if bounds := self._bounds(start, end, len(text)):
                offset = bounds[0] if name == "startswith" else bounds[1] - len(text)
                if self.span.read(offset, offset + len(text)) == text:
                    return True
        return False

    # -- case and words --------------------------------------------------------------------------------------------

    def lower(self) -> str | Self:
        """The text in lower case. Above the limit a view, which searches and reads as the text itself does; making it
        reads the frames with a U+0130, whose lower case is longer."""
        return self._change_case("lower", LOWER_KEEPS_LENGTH)

    def upper(self) -> str | Self:
        """The text in upper case. Above the limit a view; making it reads the frames that are not ASCII."""
        return self._change_case("upper", ASCII)

    def casefold(self) -> str | Self:
        """The text folded for comparison without case. Above the limit a view, made as that of `upper`."""
        return self._change_case("casefold", ASCII)

    def _change_case(self, method: str, keeps_length: int) -> str | Self:
        if not self.is_large:
            return getattr(self._whole(method), method)()  # type: ignore[no-any-return]
        return self._derived_text(CaseChanged(self.span, method, keeps_length), (self._snapshot, method))

    def replace(self, old: str, new: str, /, count: SupportsIndex = -1) -> str | Self:
        """The text with `old` replaced by `new`. Above the limit a view; making it reads where `old` may occur, unless
        both are one character. There `count` and an empty `old` raise `ContextTooLarge`."""
        old, new = _argument("replace", old, old, ""), _argument("replace", new, "", new)
        "".replace(old, new, count)  # raises the errors of `str`
        if not self.is_large or not old or operator.index(count) >= 0:
            return self._whole("context.replace(...)").replace(old, new, count)
        return self._derived_text(Replaced(self.span, old, new), (self._snapshot, "replace", old, new))

    # -- ends ------------------------------------------------------------------------------------------------------

    def strip(self, chars: str | None = None, /) -> str | Self:
        """The text without `chars`, by default whitespace, at both ends; reads the ends."""
        return self._strip("strip", chars, True, True)

    def lstrip(self, chars: str | None = None, /) -> str | Self:
        """The text without `chars`, by default whitespace, at its beginning; reads the beginning."""
        return self._strip("lstrip", chars, True, False)

    def rstrip(self, chars: str | None = None, /) -> str | Self:
        """The text without `chars`, by default whitespace, at its end; reads the end."""
        return self._strip("rstrip", chars, False, True)

    def _strip(self, name: str, chars: object, left: bool, right: bool) -> str | Self:
        value = None if chars is None else _argument(name, chars)
        start, stop = 0, len(self)
        if left:
            start += _count_stripped(self.span.texts(), lambda text: text.lstrip(value))
        if right:
            stop -= _count_stripped(self.span.texts(start, stop, reverse=True), lambda text: text.rstrip(value))
        return self._str_or_view(start, stop)

    def removeprefix(self, prefix: str, /) -> str | Self:
        """The text without `prefix`, if it begins with it; reads as many characters as the prefix has."""
        prefix = _argument("removeprefix", prefix)
        return self._str_or_view(len(prefix) if self.startswith(prefix) else 0, len(self))

    def removesuffix(self, suffix: str, /) -> str | Self:
        """The text without `suffix`, if it ends with it; reads as many characters as the suffix has."""
        suffix = _argument("removesuffix", suffix)
        return self._str_or_view(0, len(self) - len(suffix) if self.endswith(suffix) else len(self))

    # -- pieces ----------------------------------------------------------------------------------------------------

    def partition(self, sep: str, /) -> tuple[str | Self, str, str | Self]:
        """The text before the first occurrence, the separator, and the text after it; streams up to the occurrence."""
        offset = self._find(sep := _separator("partition", sep), None, None)
        if offset < 0:
            return self._str_or_view(0, len(self)), "", ""
        return self._str_or_view(0, offset), sep, self._str_or_view(offset + len(sep), len(self))

    def rpartition(self, sep: str, /) -> tuple[str | Self, str, str | Self]:
        """The text before the last occurrence, the separator, and the text after it; streams from the end."""
        offset = self._find(sep := _separator("rpartition", sep), None, None, reverse=True)
        if offset < 0:
            return "", "", self._str_or_view(0, len(self))
        return self._str_or_view(0, offset), sep, self._str_or_view(offset + len(sep), len(self))

    @overload
    def split(self, sep: str | None = None) -> list[str] | LazyList: ...
    @overload
    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]: ...
    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]:
        r"""The parts between separators, as a list. Above the limit the list is lazy and streams; with a separator and
        `maxsplit` it is real, and its parts may be views.

        Items of `split("\n")` cost at most 2 GETs, and 2 for index pages; others a read of the text before them, once.
        """
        "".split(None, maxsplit)  # raises the errors of `str` for a `maxsplit` that is no integer, or too large
        value = None if sep is None else _separator("split", sep)
        if not self.is_large or (value is None and operator.index(maxsplit) >= 0):
            return self._whole("context.split(...)").split(value, maxsplit)
        span, recipe = self.span, (self._snapshot, "split", value)
        if value is None:
            return LazyList(span, lambda begin: split_words(span.texts(begin)), self._limit, recipe)
        most_splits = operator.index(maxsplit)
        if most_splits < 0:
            if value == "\n" and span.source.knows_lines:
                return LazyListOfLines(span, value, self._limit, recipe)
            return LazyListOfParts(span, value, self._limit, recipe)
        parts: list[str | Self] = []
        start = 0
        for occurrence in span.occurrences(value) if most_splits else ():
            parts.append(self._str_or_view(start, occurrence))
            start = occurrence + len(value)
            if len(parts) == most_splits:
                break
        return [*parts, self._str_or_view(start, len(self))]

    def splitlines(self, keepends: bool = False) -> list[str] | LazyList:
        """The lines as a list; above the limit a lazy one that streams."""
        keepends = "\n".splitlines(keepends) == ["\n"]  # takes the arguments of `str.splitlines`, and raises its errors
        if not self.is_large:
            return self._whole("context.splitlines()").splitlines(keepends)
        span, recipe = self.span, (self._snapshot, "splitlines", keepends)
        return LazyList(span, lambda begin: split_lines(span.texts(begin), keepends), self._limit, recipe)

    # -- the real text ---------------------------------------------------------------------------------------------

    rsplit, swapcase, title, capitalize = map(_on_str, ("rsplit", "swapcase", "title", "capitalize"))
    translate, expandtabs, join = map(_on_str, ("translate", "expandtabs", "join"))
    center, ljust, rjust, zfill = map(_on_str, ("center", "ljust", "rjust", "zfill"))
    format, format_map, encode = map(_on_str, ("format", "format_map", "encode"))
    isascii, isalnum, isalpha, isdecimal = map(_on_str, ("isascii", "isalnum", "isalpha", "isdecimal"))
    isdigit, isnumeric, isspace, istitle = map(_on_str, ("isdigit", "isnumeric", "isspace", "istitle"))
    isidentifier, isprintable, islower, isupper = map(_on_str, ("isidentifier", "isprintable", "islower", "isupper"))
    maketrans = staticmethod(str.maketrans)

    def __add__(self, other: object) -> str:
        """Both texts joined, up to the limit."""
        return self._joined(self, other) if isinstance(other, str | StrLike) else NotImplemented

    def __radd__(self, other: object) -> str:
        return self._joined(other, self) if isinstance(other, str) else NotImplemented

    def _joined(self, *parts: str | StrLike) -> str:
        size = sum(map(len, parts))
        if size > self._limit:
            raise self._too_large("context + ...", size, "add to a slice, or write out both texts in turn")
        return "".join(map(str, parts))

    def __mul__(self, times: SupportsIndex) -> str:
        """The text repeated, up to the limit."""
        if not hasattr(times, "__index__"):
            return NotImplemented
        _ = "" * times  # raises the errors of `str`
        size = len(self) * operator.index(times)
        if size > self._limit:
            raise self._too_large(f"context * {operator.index(times)}", size, "repeat a slice of it")
        return self._whole("context * n") * times if size > 0 else ""

    __rmul__ = __mul__

    def __mod__(self, arguments: Any) -> str:
        """`self % arguments`, up to the limit."""
        return cast(str, operator.mod(self._whole("context % ...", "use a slice as the format"), arguments))

    def __str__(self) -> str:
        """The whole text as `str`, up to the limit."""
        real = self._whole("str(context)", "it has the methods of str already: use it directly, or slice context[a:b]")
        self.span.count_real(real)
        return real

    def __format__(self, spec: str) -> str:
        """The text in an f-string, up to the limit. A precision (`{context:.500}`) reads that many characters."""
        _, point, digits = spec.rstrip("s").rpartition(".")
        if point and digits.isdecimal() and int(digits) <= self._limit:
            return format(self.span.read(0, min(int(digits), len(self))), spec)
        text = self._whole("formatting the whole text (an f-string, format)", "format a part, context[a:b]")
        return format(text, spec)

    def __bytes__(self) -> bytes:
        """Raises `TypeError`, as `bytes` of a `str` without an encoding."""
        raise TypeError("string argument without an encoding")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A 0-d array of the whole text as a `str`, up to the limit, as numpy makes of a `str`."""
        import numpy as np

        return np.array(self._whole("numpy.array(context)", "make arrays of slices"), dtype=dtype)


def _argument(method: str, value: object, *arguments: object) -> str:
    """An argument of a `str` method as a real `str`; a lazy text is read, up to its limit. Any other value raises the
    error of `str`: the method is called with the value, or with `arguments` if it takes several."""
    if isinstance(value, StrLike):
        return value._whole("passing a lazy text as an argument", "pass a slice of it")
    if not isinstance(value, str):
        getattr("", method)(*(arguments or [value]))
    return cast(str, value)


def materialize(value: Any) -> Any:
    """A lazy text as a real `str`; any other value unchanged. Raises `ContextTooLarge` for a text above its limit."""
    return _argument("", value) if isinstance(value, StrLike) else value


def _separator(method: str, sep: object) -> str:
    """A separator as a real `str`. Raises the errors of `str.split` and the like, also for an empty separator."""
    value = _argument(method, sep)
    getattr("", method)(value)
    return value


def _count_stripped(texts: Iterable[str], strip: Callable[[str], str]) -> int:
    """How many characters `strip` removes at one end of a text. `texts` are its pieces, from that end on."""
    total = 0
    for text in texts:
        rest = strip(text)
        total += len(text) - len(rest)
        if rest:
            break
    return total


def _check_found(offset: int) -> int:
    if offset < 0:
        raise ValueError("substring not found")
    return offset


def iterate(span: Span, reverse: bool = False) -> Iterator[str]:
    """Stream the characters of a span one by one."""
    texts: Iterable[str] = span.texts(reverse=reverse)
    return chain.from_iterable(map(reversed, texts) if reverse else texts)
