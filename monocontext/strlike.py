"""Every method of `str`, over a span of any source.

A result that is provably small is a real `str` or `list`; one that could be as large as the text is lazy and equal to
it; what must be one real `str` is so up to the limit, and `ContextTooLarge` above it.
"""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Self, SupportsIndex, cast

from monocontext import predicates, search
from monocontext.derived import Derivation, Derived, InContext, PerCharacter, Replaced, Tabs
from monocontext.errors import ContextTooLarge, Unhashable
from monocontext.index import ASCII, LOWER_KEEPS_LENGTH
from monocontext.kinds import LazyText
from monocontext.lowered import Lowered
from monocontext.rope import Rope, literal
from monocontext.source import OPEN, Span, Stored
from monocontext.splits import OffsetSplit, cuts_from_right, split_ends, split_on, split_spaces

Bound = SupportsIndex | None


class StrLike(LazyText):
    """The methods; `text.Monocontext` says where the text lies and how long it lives."""

    __slots__ = ()
    _limit: int

    @property
    @abstractmethod
    def span(self) -> Span: ...

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _length_up_to(self, most: int) -> int:
        """The length; of a text whose length is not known, `most` where it has so many, and it is read no further."""

    @abstractmethod
    def _end_after(self, start: int) -> int:
        """The end; OPEN where it is not known, and what follows `start` is more than one `str` may hold."""

    @abstractmethod
    def _part(self, start: int, stop: int) -> str:
        """Characters [start, stop): a `str` up to the limit, a view of this kind above it."""

    @abstractmethod
    def _over(self, span: Span, recipe: tuple[Any, ...]) -> Self:
        """A text of this kind over a derived source; `recipe` is how to derive it again in another process."""

    @property
    @abstractmethod
    def _kept(self) -> Self:
        """This text as one that no `refresh` moves: what is made from it stays what it was made from."""

    def _whole(self, what: str, instead: str) -> str:
        """The text as one `str`, for `what`; above the limit the error says what to write `instead`."""
        if self._length_up_to(self._limit + 1) > self._limit:
            raise self._too_large(what, self._known_length, instead)
        return self.span.read(0, len(self))

    def _too_large(self, what: str, size: int | None, instead: str) -> ContextTooLarge:
        """`size` is None where finding it out would mean to go through the text."""
        characters = f"over {self._limit:,}" if size is None else f"{size:,}"
        return ContextTooLarge(
            f"{what} would make {characters} characters, the limit is {self._limit:,} (materialize_limit): {instead}"
        )

    @property
    def _known_length(self) -> int | None:
        return len(self) if self.span.length_is_known else None

    @property
    def _is_small(self) -> bool:
        """Whether the text fits into one `str`; one that would have to be read to find out counts as large."""
        return self.span.length_is_known and len(self) <= self._limit

    # -- comparison ------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Equal to a `str` or text with the same characters: lengths, then streamed up to the first difference."""
        if other is self:
            return True
        if not isinstance(other, str | StrLike):
            return NotImplemented
        mine, theirs = self.span, _span(other)
        if mine == theirs:
            return True
        if mine.length_is_known and theirs.length_is_known and len(mine) != len(theirs):
            return False
        return self._compare(other) == 0

    def __lt__(self, other: object) -> bool:
        """As `str`; streamed up to the first difference."""
        return self._compare(other) < 0 if isinstance(other, str | StrLike) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0 if isinstance(other, str | StrLike) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0 if isinstance(other, str | StrLike) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0 if isinstance(other, str | StrLike) else NotImplemented

    def _compare(self, other: str | StrLike) -> int:
        """-1, 0 or 1; both sides are streamed side by side."""
        theirs = _Taken(_span(other).texts())
        for mine in self.span.texts():
            head = theirs.take(len(mine))
            if mine != head:
                return -1 if mine < head else 1
        return -1 if theirs.take(1) else 0

    def __hash__(self) -> int:
        """The hash of the equal `str`, up to the limit; reads the whole text."""
        if self._length_up_to(self._limit + 1) > self._limit:
            instead = "use context.url or a slice as the key"
            raise Unhashable(str(self._too_large("hash(context)", self._known_length, instead)))
        return hash(self._whole("hash", ""))

    # -- search ----------------------------------------------------------------------------------------------------

    def __contains__(self, needle: object) -> bool:
        """Whether a `str` occurs; streams until it does."""
        return self._find(self._argument(needle, "'in <string>' requires string as left operand"), None, None) >= 0

    def find(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """First occurrence at or after `start`, or -1; streams until it is found."""
        return self._find(self._argument(sub, "find() argument 1 must be str"), start, end)

    def rfind(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """Last occurrence, or -1; streams from the end until it is found."""
        return self._find(self._argument(sub, "rfind() argument 1 must be str"), start, end, reverse=True)

    def index(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """As `find`, but `ValueError` when there is none."""
        return self._found(self._find(self._argument(sub, "index() argument 1 must be str"), start, end))

    def rindex(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """As `rfind`, but `ValueError` when there is none."""
        return self._found(self._find(self._argument(sub, "rindex() argument 1 must be str"), start, end, reverse=True))

    @staticmethod
    def _found(at: int) -> int:
        if at < 0:
            raise ValueError("substring not found")
        return at

    def _find(self, sub: str, start: Bound, end: Bound, reverse: bool = False) -> int:
        if start is None and end is None and sub and not reverse and not self._is_shorter_than(sub):
            return self.span.find(sub)  # needs no length
        bounds = self._bounds(start, end, len(sub))
        if bounds is None:
            return -1
        low, high = bounds
        if not sub:
            return high if reverse else low
        span = self.span
        if not reverse and isinstance(span.source, Stored):
            at = span.source.find_at_hand(sub, span.start + low, span.start + high)
            if at >= 0:
                return at - span.start
        return span.rfind(sub, low, high) if reverse else span.find(sub, low, high)

    def _is_shorter_than(self, sub: str) -> bool:
        """Whether that is known without going through the text."""
        return self.span.length_is_known and len(sub) > len(self)

    def _bounds(self, start: Bound, end: Bound, size: int) -> tuple[int, int] | None:
        """The range that `start` and `end` mean, or None where no needle of `size` can lie in it."""
        from_start = all(bound is None or operator.index(bound) >= 0 for bound in (start, end))
        length = self._length_up_to(operator.index(end)) if end is not None and from_start else len(self)
        low, high, _ = slice(start, end).indices(length)
        beyond = start is not None and operator.index(start) > length
        return None if beyond or size > high - low else (low, high)

    def count(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        r"""Occurrences that do not overlap; streams everything, except for `"\n"` (4 GETs at most)."""
        sub = self._argument(sub, "count() argument 1 must be str")
        if start is None and end is None and len(sub) > 1 and not self._is_shorter_than(sub):
            return self.span.count(sub)
        bounds = self._bounds(start, end, len(sub))
        if bounds is None:
            return 0
        low, high = bounds
        if not sub:
            return high - low + 1
        span = self.span
        if sub == "\n":
            return span.source.line_of(span.start + high) - span.source.line_of(span.start + low)
        return span.count(sub, low, high)

    def startswith(self, prefix: str | tuple[str, ...], start: Bound = None, end: Bound = None, /) -> bool:
        """As `str.startswith`; reads as many characters as the prefix has."""
        return self._has_affix("startswith", prefix, start, end)

    def endswith(self, suffix: str | tuple[str, ...], start: Bound = None, end: Bound = None, /) -> bool:
        """As `str.endswith`; reads as many characters as the suffix has."""
        return self._has_affix("endswith", suffix, start, end)

    def _has_affix(self, name: str, affix: object, start: Bound, end: Bound) -> bool:
        if isinstance(affix, tuple):
            complaint = f"tuple for {name} must only contain str"
            slice(start, end).indices(0)  # bounds that are no numbers are an error for an empty tuple too
            return any(self._ends_in(name, self._argument(one, complaint), start, end) for one in affix)
        return self._ends_in(name, self._argument(affix, f"{name} first arg must be str or a tuple of str"), start, end)

    def _ends_in(self, name: str, affix: str, start: Bound, end: Bound) -> bool:
        first = 0 if start is None else operator.index(start)
        if name == "startswith" and end is None and first >= 0:
            end = first + len(affix)
        bounds = self._bounds(start, end, len(affix))
        if bounds is None:
            return False
        at = bounds[0] if name == "startswith" else bounds[1] - len(affix)
        return self.span.read(at, at + len(affix)) == affix

    def _argument(self, value: object, complaint: str) -> str:
        """An argument that has to be one `str`."""
        if isinstance(value, str):
            return value
        if isinstance(value, StrLike):
            return value._whole("an argument of a string method", "give a slice of it")
        raise TypeError(f"{complaint}, not {type(value).__name__}")

    # -- case and characters ---------------------------------------------------------------------------------------

    def lower(self) -> str:
        """Lazy above the limit; each read costs what the same range of the text costs."""
        if self._is_small:
            return self._whole("lower", "").lower()
        span = self.span
        derivation = InContext(span, str.lower, self._flags(LOWER_KEEPS_LENGTH))
        if not derivation.keeps_length and isinstance(span.source, Stored):
            longer = span.source.lacking(LOWER_KEEPS_LENGTH, span.start, span.stop)
            if longer is not None:
                return self._lazy(Span(Lowered(derivation, longer), 0, OPEN), ("lower",))
        return self._derive(derivation, "lower")

    def upper(self) -> str:
        """Lazy above the limit; where text is not ASCII, places in it are found by going through what lies before."""
        return self._mapped("upper", str.upper)

    def casefold(self) -> str:
        """As `upper`, lazy above the limit."""
        return self._mapped("casefold", str.casefold)

    def _mapped(self, name: str, mapping: Callable[[str], str]) -> str:
        if self._is_small:
            return mapping(self._whole(name, ""))
        derivation = PerCharacter(self.span, mapping, self._flags(ASCII), keeps_newlines=True, changes_case=True)
        return self._derive(derivation, name)

    def swapcase(self) -> str:
        """As `upper`, lazy above the limit."""
        if self._is_small:
            return self._whole("swapcase", "").swapcase()
        return self._derive(InContext(self.span, str.swapcase, self._flags(ASCII)), "swapcase")

    def title(self) -> str:
        """As `upper`, lazy above the limit."""
        if self._is_small:
            return self._whole("title", "").title()
        return self._derive(InContext(self.span, str.title, self._flags(ASCII)), "title")

    def capitalize(self) -> str:
        """As `upper`, lazy above the limit."""
        if self._is_small:
            return self._whole("capitalize", "").capitalize()
        return self._derive(InContext(self.span, str.lower, self._flags(ASCII), capitalize=True), "capitalize")

    def translate(self, table: Mapping[int, Any] | Sequence[Any], /) -> str:
        """Lazy above the limit. A table that raises does so when its character is read."""
        if self._is_small:
            return self._whole("translate", "").translate(table)
        mapping = PerCharacter(self.span, lambda text: text.translate(table), False, False)
        return self._derive(mapping, "translate", table)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str:
        """Lazy above the limit."""
        size = _number(tabsize, most=(1 << 31) - 1)
        if self._is_small:
            return self._whole("expandtabs", "").expandtabs(size)
        return self._derive(Tabs(self.span, size), "expandtabs", size)

    def replace(self, old: str, new: str, /, count: SupportsIndex = -1) -> str:
        """Lazy above the limit; with `count` one search for the last occurrence that is replaced."""
        old = self._argument(old, "replace() argument 1 must be str")
        new = self._argument(new, "replace() argument 2 must be str")
        most = _number(count)
        if self._is_small:
            return self._whole("replace", "").replace(old, new, most)
        span, call = self.span, ("replace", old, new, most)
        if most < 0 and old:
            return self._derive(Replaced(span, old, new), *call)
        end = self._end_of(old, most) if most >= 0 else len(span)
        head, tail = span.between(0, end), span.between(end, len(span))
        if old:
            changed: Derivation = Replaced(head, old, new)
        else:  # `new` goes before each character, and after the last
            changed = PerCharacter(head, lambda text: "".join([new + c for c in text]), False, False)
            if most < 0 or most > len(span):
                tail = literal(new)
        source = Derived(changed)
        size = source.characters if old else end * (1 + len(new))
        rope = Rope([Span(source, 0, size), tail] if end else [tail])
        return self._lazy(Span(rope, 0, rope.characters), call)

    def _end_of(self, old: str, most: int) -> int:
        """Where the text ends whose occurrences `replace(old, new, most)` replaces."""
        if not old:
            return min(most, len(self))
        end = 0
        for number, at in enumerate(self.span.occurrences(old)):
            if number == most:
                break
            end = at + len(old)
        return end if most else 0

    def _derive(self, derivation: Derivation, name: str, *arguments: Any) -> str:
        stop = len(derivation.base) if derivation.keeps_length else OPEN
        return self._lazy(Span(Derived(derivation), 0, stop), (name, *arguments))

    def _lazy(self, span: Span, call: tuple[Any, ...]) -> str:
        """A lazy result, said to be the `str` that it stands for."""
        return cast(str, self._over(span, (self._kept, *call)))

    def _flags(self, flag: int) -> bool:
        """Whether all frames of this text have a flag (no GET beyond the index pages)."""
        span = self.span
        return isinstance(span.source, Stored) and span.source.all_have(flag, span.start, span.stop)

    # -- ends ------------------------------------------------------------------------------------------------------

    def strip(self, chars: str | None = None, /) -> str:
        """A part of the text; reads its ends."""
        return self._stripped("strip", chars, True, True)

    def lstrip(self, chars: str | None = None, /) -> str:
        """A part of the text; reads its beginning."""
        return self._stripped("lstrip", chars, True, False)

    def rstrip(self, chars: str | None = None, /) -> str:
        """A part of the text; reads its end."""
        return self._stripped("rstrip", chars, False, True)

    def _stripped(self, name: str, chars: object, left: bool, right: bool) -> str:
        given = None if chars is None else self._argument(chars, f"{name} arg must be None or str")
        start = self._first_kept(0, given) if left else 0
        stop = self._last_kept(start, given) if right else self._end_after(start)
        return self._part(start, stop)

    def _first_kept(self, start: int, chars: str | None) -> int:
        """The first character from `start` on that `lstrip(chars)` would keep."""
        for text in self.span.texts(start):
            kept = text.lstrip(chars)
            if kept:
                return start + len(text) - len(kept)
            start += len(text)
        return start

    def _last_kept(self, start: int, chars: str | None) -> int:
        """The end of what `rstrip(chars)` would keep of the text from `start` on."""
        stop = len(self)
        for text in self.span.texts(start, stop, reverse=True):
            kept = text.rstrip(chars)
            if kept:
                return stop - len(text) + len(kept)
            stop -= len(text)
        return start

    def removeprefix(self, prefix: str, /) -> str:
        """A part of the text; reads as many characters as the prefix has."""
        prefix = self._argument(prefix, "removeprefix() argument must be str")
        start = len(prefix) if self.startswith(prefix) else 0
        return self._part(start, self._end_after(start))

    def removesuffix(self, suffix: str, /) -> str:
        """A part of the text; reads as many characters as the suffix has."""
        suffix = self._argument(suffix, "removesuffix() argument must be str")
        return self._part(0, len(self) - len(suffix) if self.endswith(suffix) else len(self))

    # -- pieces ----------------------------------------------------------------------------------------------------

    def partition(self, sep: str, /) -> tuple[str, str, str]:
        """Parts of the text around the first occurrence; streams until it is found."""
        sep = self._separator(sep)
        at = self._find(sep, None, None)
        if at < 0:
            return self._part(0, len(self)), "", ""
        return self._part(0, at), sep, self._part(at + len(sep), self._end_after(at + len(sep)))

    def rpartition(self, sep: str, /) -> tuple[str, str, str]:
        """Parts of the text around the last occurrence; streams from the end until it is found."""
        sep = self._separator(sep)
        at = self._find(sep, None, None, reverse=True)
        if at < 0:
            return "", "", self._part(0, len(self))
        return self._part(0, at), sep, self._part(at + len(sep), len(self))

    def _separator(self, sep: object) -> str:
        given = self._argument(sep, "must be str")
        if not given:
            raise ValueError("empty separator")
        return given

    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        r"""A list; above the limit a lazy one that streams, with `maxsplit` a real one of that many parts.

        Items of `split("\n")` cost 2 GETs at most; of others, what lies before them, once.
        """
        most = _number(maxsplit)
        given = None if sep is None else self._separator(sep)
        if self._is_small:
            return self._whole("split", "").split(given, most)
        if most < 0:
            parts = split_spaces(self.span) if given is None else split_on(self.span, given)
            return parts.made_by(self._kept, "split", given)
        return self._split_words(most) if given is None else self._split_first(given, most)

    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> list[str]:
        """As `split`, from the right."""
        most = _number(maxsplit)
        given = None if sep is None else self._separator(sep)
        if self._is_small:
            return self._whole("rsplit", "").rsplit(given, most)
        if given is None:
            return self.split() if most < 0 else self._rsplit_words(most)
        if most < 0 and not search.has_border(given):
            return self.split(given)
        cuts = cuts_from_right(self.span, given, most)
        if most < 0:
            return OffsetSplit(self.span, cuts, len(given)).made_by(self._kept, "rsplit", given)
        starts = [0, *(cut + len(given) for cut in cuts)]
        return [self._part(low, high) for low, high in zip(starts, [*cuts, len(self)], strict=True)]

    def _split_first(self, sep: str, most: int) -> list[str]:
        parts, start = [], 0
        if most:
            for at in self.span.occurrences(sep):
                parts.append(self._part(start, at))
                start = at + len(sep)
                if len(parts) == most:
                    break
        return [*parts, self._part(start, self._end_after(start))]

    def _split_words(self, most: int) -> list[str]:
        parts: list[str] = []
        start = self._first_kept(0, None)
        while len(parts) < most and self._length_up_to(start + 1) > start:
            stop = start
            for text in self.span.texts(start):
                word = text.split(None, 1)[0] if not text[0].isspace() else ""
                stop += len(word)
                if len(word) < len(text):
                    break
            parts.append(self._part(start, stop))
            start = self._first_kept(stop, None)
        return [*parts, self._part(start, self._end_after(start))] if self._length_up_to(start + 1) > start else parts

    def _rsplit_words(self, most: int) -> list[str]:
        parts: list[str] = []
        stop = self._last_kept(0, None)
        while len(parts) < most and stop > 0:
            start = stop
            for text in self.span.texts(0, stop, reverse=True):
                word = text.rsplit(None, 1)[-1] if not text[-1].isspace() else ""
                start -= len(word)
                if len(word) < len(text):
                    break
            parts.append(self._part(start, stop))
            stop = type(self)._last_kept(self._prefix(start), 0, None)
        return [*([self._part(0, stop)] if stop else []), *reversed(parts)]

    @abstractmethod
    def _prefix(self, stop: int) -> Self:
        """Characters [0, stop) as a text of this kind."""

    def splitlines(self, keepends: bool = False) -> list[str]:
        """A list; above the limit a lazy one that streams."""
        if self._is_small:
            return self._whole("splitlines", "").splitlines(keepends)
        return split_ends(self.span, bool(keepends)).made_by(self._kept, "splitlines", bool(keepends))

    # -- joining ---------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> str:
        """Joined; above the limit a text that holds both without copying them."""
        if not isinstance(other, str | StrLike):
            return NotImplemented
        return self._joined(self, other)

    def __radd__(self, other: object) -> str:
        if not isinstance(other, str):
            return NotImplemented
        return self._joined(other, self)

    def _joined(self, *parts: str | StrLike) -> str:
        if sum(map(len, parts)) <= self._limit:
            return "".join(_span(part).read(0, len(part)) for part in parts)
        rope = Rope(_span(part) for part in parts)
        kept = tuple(part._kept if isinstance(part, StrLike) else part for part in parts)
        return cast(str, self._over(Span(rope, 0, rope.characters), ("", "join", kept)))

    def __mul__(self, times: SupportsIndex) -> str:
        """Repeated, up to the limit."""
        if not hasattr(times, "__index__"):
            return NotImplemented
        number = max(_number(times), 0)
        if number == 1:
            return self._part(0, self._end_after(0))
        if number * self._length_up_to(self._limit + 1) > self._limit:
            size = self._known_length and number * len(self)
            raise self._too_large(f"context * {number}", size, "repeat a slice of it")
        return self._whole("context * n", "") * number if number else ""

    __rmul__ = __mul__

    def join(self, iterable: Iterable[str], /) -> str:
        """As `str.join`, with this text (up to the limit) between."""
        return self._whole("join", 'write "...".join(...) with a separator that is a str').join(iterable)

    def center(self, width: SupportsIndex, fillchar: str = " ", /) -> str:
        """Padded on both sides; a text that is wide enough is returned as it is."""
        left = self._padding(width, fillchar)
        # CPython puts the odd one to the left when the width is odd.
        first = left // 2 + (left & width.__index__() & 1)
        return self._padded(first, left - first, fillchar)

    def ljust(self, width: SupportsIndex, fillchar: str = " ", /) -> str:
        """Padded on the right."""
        return self._padded(0, self._padding(width, fillchar), fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = " ", /) -> str:
        """Padded on the left."""
        return self._padded(self._padding(width, fillchar), 0, fillchar)

    def zfill(self, width: SupportsIndex, /) -> str:
        """Zeros on the left, behind a sign."""
        zeros = self._padding(width, "0")
        sign = self._part(0, 1) if zeros and len(self) and self.span.read(0, 1) in "+-" else ""
        return self._joined(sign + "0" * zeros, self._rest(len(sign))) if zeros else self._part(0, self._end_after(0))

    @abstractmethod
    def _rest(self, start: int) -> Self:
        """Characters from `start` on as a text of this kind."""

    def _padding(self, width: SupportsIndex, fillchar: str) -> int:
        wanted = _number(width)
        if not isinstance(fillchar, str):
            raise TypeError(f"The fill character must be a unicode character, not {type(fillchar).__name__}")
        if len(fillchar) != 1:
            raise TypeError("The fill character must be exactly one character long")
        padding = max(wanted - self._length_up_to(wanted), 0)
        if padding > self._limit:
            raise self._too_large("the padding", padding, "pad a slice")
        return padding

    def _padded(self, left: int, right: int, fillchar: str) -> str:
        if not left and not right:
            return self._part(0, self._end_after(0))
        return self._joined(fillchar * left, self, fillchar * right)

    # -- questions -------------------------------------------------------------------------------------------------

    def isascii(self) -> bool:
        """No GET beyond the index pages where the frames' flags tell; else streamed."""
        return self._flags(ASCII) or all(text.isascii() for text in self.span.texts())

    def isalnum(self) -> bool:
        """Streamed up to the first character that decides, as all the questions below."""
        return predicates.all_of(str.isalnum, self.span.texts())

    def isalpha(self) -> bool:
        return predicates.all_of(str.isalpha, self.span.texts())

    def isdecimal(self) -> bool:
        return predicates.all_of(str.isdecimal, self.span.texts())

    def isdigit(self) -> bool:
        return predicates.all_of(str.isdigit, self.span.texts())

    def isnumeric(self) -> bool:
        return predicates.all_of(str.isnumeric, self.span.texts())

    def isspace(self) -> bool:
        return predicates.all_of(str.isspace, self.span.texts())

    def isidentifier(self) -> bool:
        return predicates.is_identifier(self.span.texts())

    def isprintable(self) -> bool:
        return predicates.is_printable(self.span.texts())

    def islower(self) -> bool:
        return predicates.is_lower(self.span.texts())

    def isupper(self) -> bool:
        return predicates.is_upper(self.span.texts())

    def istitle(self) -> bool:
        return predicates.is_title(self.span.texts())

    # -- one real str ----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The whole text as `str`, up to the limit."""
        return self._whole("str(context)", "it has the methods of str already: use it directly, or slice context[a:b]")

    def __format__(self, spec: str) -> str:
        """The text in an f-string, up to the limit; a precision (`{context:.500}`) reads that many characters."""
        text = self._cut_for(spec)
        if text is None:
            text = self._whole("an f-string of the whole text", 'write llm_query(f"...{context[a:b]}...") with a part')
        return format(text, spec)

    def _cut_for(self, spec: str) -> str | None:
        """As much of the text as a format with a precision shows."""
        _, point, digits = spec.rstrip("s").rpartition(".")
        if not point or not digits.isdecimal() or int(digits) > self._limit:
            return None
        return self.span.read(0, min(int(digits), self._length_up_to(int(digits))))

    def __mod__(self, arguments: Any) -> str:
        """The text as a `%` format, up to the limit."""
        formatted: str = operator.mod(self._whole("context % ...", "use a slice as the format"), arguments)
        return formatted

    def format(self, *arguments: Any, **named: Any) -> str:
        """The text as a format, up to the limit."""
        return self._whole("context.format(...)", "use a slice as the format").format(*arguments, **named)

    def format_map(self, mapping: Mapping[str, Any], /) -> str:
        """The text as a format, up to the limit."""
        return self._whole("context.format_map(...)", "use a slice as the format").format_map(mapping)

    def encode(self, encoding: str = "utf-8", errors: str = "strict") -> bytes:
        """The text as bytes, up to the limit."""
        instead = "encode the pieces: for piece in context.chunks(): ... piece.encode()"
        return self._whole("encode", instead).encode(encoding, errors)

    maketrans = staticmethod(str.maketrans)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A 0-d array of the whole `str`, up to the limit, as numpy makes of a `str`."""
        import numpy as np

        return np.array(self._whole("numpy.array(context)", "make arrays of slices"), dtype=dtype)


def _number(value: SupportsIndex, most: int = sys.maxsize) -> int:
    """A count as C takes it, which is what the methods of `str` are written in."""
    number = operator.index(value)
    if not -most - 1 <= number <= most:
        raise OverflowError("Python int too large to convert to C ssize_t")
    return number


def _span(text: str | StrLike) -> Span:
    return literal(text) if isinstance(text, str) else text.span


class _Taken:
    """Takes so many characters at a time from texts."""

    def __init__(self, texts: Iterator[str]):
        self._texts = texts
        self._text, self._at = "", 0

    def take(self, size: int) -> str:
        """The next `size` characters; fewer at the end."""
        if len(self._text) - self._at < size:
            parts = [self._text[self._at :]]
            missing = size - len(parts[0])
            self._at = 0
            self._text = ""
            for text in self._texts:
                if len(text) >= missing:
                    self._text, self._at = text, missing
                    return "".join([*parts, text[:missing]])
                parts.append(text)
                missing -= len(text)
            return "".join(parts)
        start, self._at = self._at, self._at + size
        return self._text[start : self._at]


def iterate(span: Span, reverse: bool = False) -> Iterator[str]:
    """Characters one by one, streamed."""
    texts = span.texts(reverse=reverse)
    return chain.from_iterable(map(reversed, texts) if reverse else texts)
