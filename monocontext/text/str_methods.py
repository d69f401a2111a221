"""Implement every method of `str` over a span of any source.

A small result is a real `str` or `list`. A result that could be as large as the text is lazy, and equal to the result
of `str`. Where a lazy result cannot do, as in `str(text)`, the method raises `ContextTooLarge` above the limit.
"""

from __future__ import annotations

import operator
import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import FrameType
from typing import TYPE_CHECKING, Any, Self, SupportsIndex, overload

from monocontext.errors import ContextTooLarge, Unhashable
from monocontext.format.filters.query import Query
from monocontext.format.index import ASCII, LOWER_KEEPS_LENGTH
from monocontext.text import predicates
from monocontext.text.derived import Derivation, Derived, InContext, PerCharacter, Replaced, Tabs
from monocontext.text.lazy_kinds import LazyText
from monocontext.text.lazy_lists import (
    LazyList,
    LineSplit,
    OffsetSplit,
    SeparatorSplit,
    StreamSplit,
    cuts_from_right,
)
from monocontext.text.source import OPEN, Span, StoredSource
from monocontext.text.splitting import split_lines, split_words
from monocontext.text.windows import has_border

if TYPE_CHECKING:
    from monocontext.text.next_use import Use

Bound = SupportsIndex | None

AT_ONCE = 1 << 20
"""Up to this many characters, a change of case always makes one `str`: a request or two fetch the text."""


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
    def _length_up_to(self, most: int) -> int:
        """The length. Where it is unknown, `most` if the text has that many characters; this reads no further."""

    @abstractmethod
    def _end_after(self, start: int) -> int:
        """The end. OPEN where it is unknown and the text after `start` is above the limit of one `str`."""

    @abstractmethod
    def _part(self, start: int, stop: int) -> str | Self:
        """Characters [start, stop): a `str` up to the limit, above it a view of this kind."""

    @abstractmethod
    def _view(self, start: int, stop: int) -> Self:
        """Characters [start, stop) as a text of this kind, also below the limit."""

    @abstractmethod
    def _over(self, span: Span, recipe: tuple[Any, ...]) -> Self:
        """A text of this kind over a derived source. Another process derives it again from `recipe`."""

    @property
    @abstractmethod
    def _snapshot(self) -> Self:
        """This text, but unaffected by `refresh`, so that texts derived from it never change."""

    def _whole(self, what: str, instead: str) -> str:
        """The text as one `str`, for the operation `what`. Above the limit, the error says what to write `instead`."""
        if self._is_over_limit:
            raise self._too_large(what, self._known_length, instead)
        self.span.log_received(0, len(self))
        return self.span.read(0, len(self))

    def _materialize(self) -> str | None:
        """The text as one `str` for a function that is not ours, counted in `stats.real`; None above the limit."""
        if self._is_over_limit:
            return None
        real = self._whole("", "")
        self._count_real(len(real) if real.isascii() else len(real.encode("utf-8", "surrogatepass")))
        return real

    @abstractmethod
    def _count_real(self, size_bytes: int) -> None:
        """Count the UTF-8 bytes that became a `str` for a function that takes no lazy text."""

    def _too_large(self, what: str, size: int | None, instead: str) -> ContextTooLarge:
        """The error for a result of `size` characters; a `size` of None is known only after a pass over the text."""
        characters = "more characters than" if size is None else f"{size:,} characters, more than"
        return ContextTooLarge(
            f"{what} would make {characters} the limit of {self._limit:,} (materialize_limit): {instead}"
        )

    def _holds_none(self, query: Query, within_line: bool) -> bool:
        """Whether search filters already in memory rule out that a match begins in the text (no GET)."""
        return False

    @property
    def _known_length(self) -> int | None:
        return len(self) if self.span.length_is_known else None

    @property
    def _is_over_limit(self) -> bool:
        """Whether the text does not fit into one `str`; reads up to the limit where the length is unknown."""
        return self._length_up_to(self._limit + 1) > self._limit

    @property
    def _is_small(self) -> bool:
        """Whether the text is known to fit into one `str`."""
        return self.span.length_is_known and len(self) <= self._limit

    def _use_of_result(self, method: str, arguments: int) -> Use:
        """The use of the result in the code that calls a method; "unknown" for a text that a request or two fetch."""
        if len(self) <= AT_ONCE:
            return "unknown"
        from monocontext.text.next_use import use_of_result

        return use_of_result(sys._getframe(2), method, arguments)

    def __copy__(self) -> Self:
        """The text itself: it never changes."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    # -- comparison ------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        """Whether a `str` or text has the same characters: compares lengths, then streams up to the first
        difference."""
        if other is self:
            return True
        if not isinstance(other, str | StrLike):
            return NotImplemented
        mine, theirs = self.span, _span_of(other)
        if mine == theirs:
            return True
        if mine.length_is_known and theirs.length_is_known and len(mine) != len(theirs):
            return False
        return self._compare(other) == 0

    def __lt__(self, other: object) -> bool:
        """Like `str`; streamed up to the first difference."""
        return self._compare(other) < 0 if isinstance(other, str | StrLike) else NotImplemented

    def __le__(self, other: object) -> bool:
        return self._compare(other) <= 0 if isinstance(other, str | StrLike) else NotImplemented

    def __gt__(self, other: object) -> bool:
        return self._compare(other) > 0 if isinstance(other, str | StrLike) else NotImplemented

    def __ge__(self, other: object) -> bool:
        return self._compare(other) >= 0 if isinstance(other, str | StrLike) else NotImplemented

    def _compare(self, other: str | StrLike) -> int:
        """-1 if this text sorts first, 0 if both are equal, else 1; streams up to the first difference."""
        theirs = _CharacterTaker(_span_of(other).texts())
        for mine in self.span.texts():
            head = theirs.take(len(mine))
            if mine != head:
                return -1 if mine < head else 1
        return -1 if theirs.take(1) else 0

    def __hash__(self) -> int:
        """The hash of the equal `str`, up to the limit; reads the whole text."""
        if self._is_over_limit:
            instead = "use context.url or a slice as the key"
            raise Unhashable(str(self._too_large("hash(context)", self._known_length, instead)))
        return hash(self._whole("hash", ""))

    # -- search ----------------------------------------------------------------------------------------------------

    def __contains__(self, needle: object) -> bool:
        """Whether a `str` occurs; streams up to the first occurrence."""
        return self._find(self._argument(needle, "'in <string>' requires string as left operand"), None, None) >= 0

    def find(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """The first occurrence at or after `start`, or -1; streams up to it."""
        return self._find(self._argument(sub, "find() argument 1 must be str"), start, end)

    def rfind(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """The last occurrence, or -1; streams from the end down to it."""
        return self._find(self._argument(sub, "rfind() argument 1 must be str"), start, end, reverse=True)

    def index(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """Like `find`, but `ValueError` if there is none."""
        return self._check_found(self._find(self._argument(sub, "index() argument 1 must be str"), start, end))

    def rindex(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        """Like `rfind`, but `ValueError` if there is none."""
        return self._check_found(
            self._find(self._argument(sub, "rindex() argument 1 must be str"), start, end, reverse=True)
        )

    @staticmethod
    def _check_found(at: int) -> int:
        if at < 0:
            raise ValueError("substring not found")
        return at

    def _find(self, sub: str, start: Bound, end: Bound, reverse: bool = False) -> int:
        span = self.span
        if start is None and end is None and sub and not reverse and not span.is_shorter_than(sub):
            return span.find(sub)  # needs no length
        bounds = self._bounds(start, end, len(sub))
        if bounds is None:
            return -1
        low, high = bounds
        if not sub:
            return high if reverse else low
        if not reverse and isinstance(span.source, StoredSource):
            at = span.source.find_cached(sub, span.start + low, span.start + high)
            if at >= 0:
                return at - span.start
        return span.rfind(sub, low, high) if reverse else span.find(sub, low, high)

    def _bounds(self, start: Bound, end: Bound, size: int) -> tuple[int, int] | None:
        """The range of `start` and `end`, or None where no needle of `size` fits in it."""
        from_start = all(bound is None or operator.index(bound) >= 0 for bound in (start, end))
        length = self._length_up_to(operator.index(end)) if end is not None and from_start else len(self)
        low, high, _ = slice(start, end).indices(length)
        beyond = start is not None and operator.index(start) > length
        return None if beyond or size > high - low else (low, high)

    def count(self, sub: str, start: Bound = None, end: Bound = None, /) -> int:
        r"""The number of occurrences that do not overlap; streams everything, except for `"\n"` (at most 4 GETs)."""
        sub = self._argument(sub, "count() argument 1 must be str")
        if start is None and end is None and len(sub) > 1 and not self.span.is_shorter_than(sub):
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
        """Like `str.startswith`; reads as many characters as the prefix has."""
        return self._has_affix("startswith", prefix, start, end)

    def endswith(self, suffix: str | tuple[str, ...], start: Bound = None, end: Bound = None, /) -> bool:
        """Like `str.endswith`; reads as many characters as the suffix has."""
        return self._has_affix("endswith", suffix, start, end)

    def _has_affix(self, name: str, affix: object, start: Bound, end: Bound) -> bool:
        if isinstance(affix, tuple):
            complaint = f"tuple for {name} must only contain str"
            slice(start, end).indices(0)  # raises for bounds that are not numbers, also with an empty tuple
            return any(self._has_one_affix(name, self._argument(one, complaint), start, end) for one in affix)
        return self._has_one_affix(
            name, self._argument(affix, f"{name} first arg must be str or a tuple of str"), start, end
        )

    def _has_one_affix(self, name: str, affix: str, start: Bound, end: Bound) -> bool:
        first = 0 if start is None else operator.index(start)
        if name == "startswith" and end is None and first >= 0:
            end = first + len(affix)
        bounds = self._bounds(start, end, len(affix))
        if bounds is None:
            return False
        at = bounds[0] if name == "startswith" else bounds[1] - len(affix)
        return self.span.read(at, at + len(affix)) == affix

    def _argument(self, value: object, complaint: str) -> str:
        """An argument as a real `str`. Raises `TypeError` for other types, `ContextTooLarge` for a text above the
        limit."""
        if isinstance(value, str):
            return value
        if isinstance(value, StrLike):
            return value._whole("an argument of a string method", "give a slice of it")
        raise TypeError(f"{complaint}, not {type(value).__name__}")

    # -- case and characters ---------------------------------------------------------------------------------------

    def lower(self) -> str | Self:
        """The text in lower case, lazy above the limit and where code only searches it. A read costs the same as a read
        of that range of the text."""
        return self._change_case("lower", sys._getframe(1))

    def upper(self) -> str | Self:
        """The text in upper case, lazy like `lower`. Unless the text is ASCII, the first read at an offset costs a pass
        over the text before it."""
        return self._change_case("upper", sys._getframe(1))

    def casefold(self) -> str | Self:
        """The text folded for comparison without case, lazy like `upper`."""
        return self._change_case("casefold", sys._getframe(1))

    def _change_case(self, method: str, caller: FrameType | None) -> str | Self:
        """`lower()`, `upper()` or `casefold()`. `caller` is the frame of the code that calls it; None means that this
        code only searches the result."""
        from monocontext.text.next_use import use_of_result

        if self._is_small and (
            len(self) <= AT_ONCE
            or not (caller is None or use_of_result(caller, method, 0) in ("search", "iter", "front"))
        ):
            return getattr(self._whole(method, ""), method)()  # type: ignore[no-any-return]
        span = self.span
        if method != "lower":
            mapping = getattr(str, method)
            return self._derive(PerCharacter(span, mapping, is_case=True, keeps_length=self._all_have(ASCII)), method)
        derivation = InContext(span, str.lower, self._all_have(LOWER_KEEPS_LENGTH))
        if not derivation.keeps_length and isinstance(span.source, StoredSource):
            longer = span.source.reader.frames_without(LOWER_KEEPS_LENGTH, span.start, span.stop)
            if longer is not None:
                from monocontext.text.lowercase import Lowered  # rare

                return self._lazy_result(Span(Lowered(derivation, longer), 0, OPEN), ("lower",))
        return self._derive(derivation, "lower")

    def swapcase(self) -> str | Self:
        """The text with upper and lower case swapped, lazy above the limit. Costs the same as `upper`."""
        if self._is_small:
            return self._whole("swapcase", "").swapcase()
        return self._derive(InContext(self.span, str.swapcase, self._all_have(ASCII)), "swapcase")

    def title(self) -> str | Self:
        """The text in title case, lazy above the limit. Costs the same as `upper`."""
        if self._is_small:
            return self._whole("title", "").title()
        return self._derive(InContext(self.span, str.title, self._all_have(ASCII)), "title")

    def capitalize(self) -> str | Self:
        """The text with a capital first and lower case after it, lazy above the limit. Costs the same as `upper`."""
        if self._is_small:
            return self._whole("capitalize", "").capitalize()
        return self._derive(InContext(self.span, str.lower, self._all_have(ASCII), capitalize=True), "capitalize")

    def translate(self, table: Mapping[int, Any] | Sequence[Any], /) -> str | Self:
        """The text with each character mapped by a table, lazy above the limit. An error of the table is raised when
        the character is read."""
        if self._is_small:
            return self._whole("translate", "").translate(table)
        return self._derive(PerCharacter(self.span, lambda text: text.translate(table)), "translate", table)

    def expandtabs(self, tabsize: SupportsIndex = 8) -> str | Self:
        """The text with tabs expanded, lazy above the limit."""
        size = _c_integer(tabsize, most=(1 << 31) - 1)
        if self._is_small:
            return self._whole("expandtabs", "").expandtabs(size)
        return self._derive(Tabs(self.span, size), "expandtabs", size)

    def replace(self, old: str, new: str, /, count: SupportsIndex = -1) -> str | Self:
        """The text with `old` replaced by `new`, lazy above the limit. With `count`, one search finds the last
        occurrence to replace."""
        old = self._argument(old, "replace() argument 1 must be str")
        new = self._argument(new, "replace() argument 2 must be str")
        most = _c_integer(count)
        if self._is_small and not (most < 0 and old and self._use_of_result("replace", 2) in ("iter", "front")):
            return self._whole("replace", "").replace(old, new, most)
        span, call = self.span, ("replace", old, new, most)
        if most < 0 and old:
            return self._derive(Replaced(span, old, new), *call)
        from monocontext.text.rope import Rope, literal

        end = self._replaced_end(old, most) if most >= 0 else len(span)
        head, tail = span.between(0, end), span.between(end, len(span))
        if old:
            changed: Derivation = Replaced(head, old, new)
        else:  # `new` goes before each character and after the last
            changed = PerCharacter(head, lambda text: "".join([new + c for c in text]))
            if most < 0 or most > len(span):
                tail = literal(new)
        source = Derived(changed)
        size = source.characters if old else end * (1 + len(new))
        rope = Rope([Span(source, 0, size), tail] if end else [tail])
        return self._lazy_result(Span(rope, 0, rope.characters), call)

    def _replaced_end(self, old: str, most: int) -> int:
        """The end of the last occurrence that `replace(old, new, most)` replaces."""
        if not old:
            return min(most, len(self))
        end = 0
        for number, at in enumerate(self.span.occurrences(old)):
            if number == most:
                break
            end = at + len(old)
        return end if most else 0

    def _derive(self, derivation: Derivation, name: str, *arguments: Any) -> str | Self:
        stop = len(derivation.base) if derivation.keeps_length else OPEN
        return self._lazy_result(Span(Derived(derivation), 0, stop), (name, *arguments))

    def _lazy_result(self, span: Span, call: tuple[Any, ...]) -> str | Self:
        """A text of this kind over a derived span. `call` is the method and its arguments, to derive it again."""
        return self._over(span, (self._snapshot, *call))

    def _all_have(self, flag: int) -> bool:
        """Whether all frames of this text have a flag (no GET beyond the index pages)."""
        span = self.span
        return isinstance(span.source, StoredSource) and span.source.reader.all_frames_have(flag, span.start, span.stop)

    # -- ends ------------------------------------------------------------------------------------------------------

    def strip(self, chars: str | None = None, /) -> str | Self:
        """The text without characters at both ends; reads the ends."""
        return self._strip("strip", chars, True, True)

    def lstrip(self, chars: str | None = None, /) -> str | Self:
        """The text without characters at its beginning; reads the beginning."""
        return self._strip("lstrip", chars, True, False)

    def rstrip(self, chars: str | None = None, /) -> str | Self:
        """The text without characters at its end; reads the end."""
        return self._strip("rstrip", chars, False, True)

    def _strip(self, name: str, chars: object, left: bool, right: bool) -> str | Self:
        given = None if chars is None else self._argument(chars, f"{name} arg must be None or str")
        start = self._lstrip_start(0, given) if left else 0
        stop = self._rstrip_stop(start, given, len(self)) if right else self._end_after(start)
        return self._part(start, stop)

    def _lstrip_start(self, start: int, chars: str | None) -> int:
        """The first character from `start` on that `lstrip(chars)` would keep."""
        for text in self.span.texts(start):
            kept = text.lstrip(chars)
            if kept:
                return start + len(text) - len(kept)
            start += len(text)
        return start

    def _rstrip_stop(self, start: int, chars: str | None, stop: int) -> int:
        """The end of the characters that `rstrip(chars)` would keep of [start, stop)."""
        for text in self.span.texts(start, stop, reverse=True):
            kept = text.rstrip(chars)
            if kept:
                return stop - len(text) + len(kept)
            stop -= len(text)
        return start

    def removeprefix(self, prefix: str, /) -> str | Self:
        """The text without a prefix; reads as many characters as the prefix has."""
        prefix = self._argument(prefix, "removeprefix() argument must be str")
        start = len(prefix) if self.startswith(prefix) else 0
        return self._part(start, self._end_after(start))

    def removesuffix(self, suffix: str, /) -> str | Self:
        """The text without a suffix; reads as many characters as the suffix has."""
        suffix = self._argument(suffix, "removesuffix() argument must be str")
        return self._part(0, len(self) - len(suffix) if self.endswith(suffix) else len(self))

    # -- pieces ----------------------------------------------------------------------------------------------------

    def partition(self, sep: str, /) -> tuple[str | Self, str, str | Self]:
        """The text before the first occurrence, the separator, and the text after it; streams up to the occurrence."""
        sep = self._separator(sep)
        at = self._find(sep, None, None)
        if at < 0:
            return self._part(0, len(self)), "", ""
        return self._part(0, at), sep, self._part(at + len(sep), self._end_after(at + len(sep)))

    def rpartition(self, sep: str, /) -> tuple[str | Self, str, str | Self]:
        """The text before the last occurrence, the separator, and the text after it; streams from the end down to the
        occurrence."""
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

    @overload
    def split(self, sep: str | None = None) -> list[str] | LazyList: ...
    @overload
    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]: ...
    def split(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]:
        r"""The parts between separators, as a list. Above the limit it is lazy and streams; with `maxsplit` it is
        always real.

        Items of `split("\n")` cost at most 2 GETs; items of other splits cost a read of the text before them, once.
        """
        most = _c_integer(maxsplit)
        given = None if sep is None else self._separator(sep)
        lazy_uses = ("len", "iter", "front", "part") if given == "\n" else ("iter", "front")
        if self._is_small and not (most < 0 and self._use_of_result("split", 0 if given is None else 1) in lazy_uses):
            return self._whole("split", "").split(given, most)
        if most >= 0:
            return self._split_words(most) if given is None else self._split_first(given, most)
        parts: LazyList
        if given is None:
            parts = StreamSplit(self.span, split_words)
        else:
            parts = LineSplit(self.span) if given == "\n" else SeparatorSplit(self.span, given)
        return parts.with_recipe(self._snapshot, "split", given)

    @overload
    def rsplit(self, sep: str | None = None) -> list[str] | LazyList: ...
    @overload
    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]: ...
    def rsplit(self, sep: str | None = None, maxsplit: SupportsIndex = -1) -> Sequence[str | Self]:
        """Like `split`, from the right."""
        most = _c_integer(maxsplit)
        given = None if sep is None else self._separator(sep)
        if self._is_small:
            return self._whole("rsplit", "").rsplit(given, most)
        if given is None:
            return self.split() if most < 0 else self._rsplit_words(most)
        if most < 0 and not has_border(given):
            return self.split(given)
        cuts = cuts_from_right(self.span, given, most)
        if most < 0:
            return OffsetSplit(self.span, cuts, len(given)).with_recipe(self._snapshot, "rsplit", given)
        starts = [0, *(cut + len(given) for cut in cuts)]
        return [self._part(low, high) for low, high in zip(starts, [*cuts, len(self)], strict=True)]

    def _split_first(self, sep: str, most: int) -> list[str | Self]:
        parts: list[str | Self] = []
        start = 0
        if most:
            for at in self.span.occurrences(sep):
                parts.append(self._part(start, at))
                start = at + len(sep)
                if len(parts) == most:
                    break
        return [*parts, self._part(start, self._end_after(start))]

    def _split_words(self, most: int) -> list[str | Self]:
        parts: list[str | Self] = []
        start = self._lstrip_start(0, None)
        while len(parts) < most and self._length_up_to(start + 1) > start:
            stop = start
            for text in self.span.texts(start):
                word = text.split(None, 1)[0] if not text[0].isspace() else ""
                stop += len(word)
                if len(word) < len(text):
                    break
            parts.append(self._part(start, stop))
            start = self._lstrip_start(stop, None)
        return [*parts, self._part(start, self._end_after(start))] if self._length_up_to(start + 1) > start else parts

    def _rsplit_words(self, most: int) -> list[str | Self]:
        parts: list[str | Self] = []
        stop = self._rstrip_stop(0, None, len(self))
        while len(parts) < most and stop > 0:
            start = stop
            for text in self.span.texts(0, stop, reverse=True):
                word = text.rsplit(None, 1)[-1] if not text[-1].isspace() else ""
                start -= len(word)
                if len(word) < len(text):
                    break
            parts.append(self._part(start, stop))
            stop = self._rstrip_stop(0, None, start)
        return [*([self._part(0, stop)] if stop else []), *reversed(parts)]

    def splitlines(self, keepends: bool = False) -> list[str] | LazyList:
        """The lines as a list; above the limit a lazy one that streams."""
        keepends = "\n".splitlines(keepends) == ["\n"]  # takes the arguments of `str.splitlines`, and raises its errors
        if self._is_small and self._use_of_result("splitlines", 0) not in ("iter", "front"):
            return self._whole("splitlines", "").splitlines(keepends)
        lines = StreamSplit(self.span, lambda texts: split_lines(texts, keepends))
        return lines.with_recipe(self._snapshot, "splitlines", keepends)

    # -- joining ---------------------------------------------------------------------------------------------------

    def __add__(self, other: object) -> str | Self:
        """Both texts joined; above the limit a lazy text that refers to both without a copy."""
        if not isinstance(other, str | StrLike):
            return NotImplemented
        return self._join(self, other)

    def __radd__(self, other: object) -> str | Self:
        if not isinstance(other, str):
            return NotImplemented
        return self._join(other, self)

    def _join(self, *parts: str | StrLike) -> str | Self:
        if sum(map(len, parts)) <= self._limit:
            return "".join(_span_of(part).read(0, len(part)) for part in parts)
        from monocontext.text.rope import Rope  # 0.2 ms that a slice need not pay

        rope = Rope(_span_of(part) for part in parts)
        kept = tuple(part._snapshot if isinstance(part, StrLike) else part for part in parts)
        return self._over(Span(rope, 0, rope.characters), ("", "join", kept))

    def __mul__(self, times: SupportsIndex) -> str | Self:
        """The text repeated, up to the limit."""
        if not hasattr(times, "__index__"):
            return NotImplemented
        number = max(_c_integer(times), 0)
        if number == 1:
            return self._part(0, self._end_after(0))
        if number * self._length_up_to(self._limit + 1) > self._limit:
            size = self._known_length and number * len(self)
            raise self._too_large(f"context * {number}", size, "repeat a slice of it")
        return self._whole("context * n", "") * number if number else ""

    __rmul__ = __mul__

    def join(self, iterable: Iterable[str], /) -> str:
        """Like `str.join`, with this text (up to the limit) as the separator."""
        return self._whole("join", 'write "...".join(...) with a separator that is a str').join(iterable)

    def center(self, width: SupportsIndex, fillchar: str = " ", /) -> str | Self:
        """The text padded on both sides; as it is if it is wide enough."""
        left = self._padding_width(width, fillchar)
        # CPython puts the odd one on the left if the width is odd.
        first = left // 2 + (left & width.__index__() & 1)
        return self._pad(first, left - first, fillchar)

    def ljust(self, width: SupportsIndex, fillchar: str = " ", /) -> str | Self:
        """The text padded on the right."""
        return self._pad(0, self._padding_width(width, fillchar), fillchar)

    def rjust(self, width: SupportsIndex, fillchar: str = " ", /) -> str | Self:
        """The text padded on the left."""
        return self._pad(self._padding_width(width, fillchar), 0, fillchar)

    def zfill(self, width: SupportsIndex, /) -> str | Self:
        """The text padded with zeros on the left, after a sign."""
        zeros = self._padding_width(width, "0")
        if not zeros:
            return self._part(0, self._end_after(0))
        first = self.span.read(0, min(len(self), 1))
        sign = first if first in ("+", "-") else ""
        return self._join(sign + "0" * zeros, self._view(len(sign), len(self)))

    def _padding_width(self, width: SupportsIndex, fillchar: str) -> int:
        wanted = _c_integer(width)
        if not isinstance(fillchar, str):
            raise TypeError(f"The fill character must be a unicode character, not {type(fillchar).__name__}")
        if len(fillchar) != 1:
            raise TypeError("The fill character must be exactly one character long")
        padding = max(wanted - self._length_up_to(wanted), 0)
        if padding > self._limit:
            raise self._too_large("the padding", padding, "pad a slice")
        return padding

    def _pad(self, left: int, right: int, fillchar: str) -> str | Self:
        if not left and not right:
            return self._part(0, self._end_after(0))
        return self._join(fillchar * left, self, fillchar * right)

    # -- predicates ------------------------------------------------------------------------------------------------

    def isascii(self) -> bool:
        """Whether all characters are ASCII. Reads only index pages where the flags of frames tell; else streams."""
        return self._all_have(ASCII) or all(text.isascii() for text in self.span.texts())

    def isalnum(self) -> bool:
        """Like `str.isalnum`; streams up to the first character that decides, as do all predicates below."""
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
        return all(text.isprintable() for text in self.span.texts())

    def islower(self) -> bool:
        return predicates.is_one_case(str.islower, "a", self.span.texts())

    def isupper(self) -> bool:
        return predicates.is_one_case(str.isupper, "A", self.span.texts())

    def istitle(self) -> bool:
        return predicates.is_title(self.span.texts())

    # -- one real str ----------------------------------------------------------------------------------------------

    def __str__(self) -> str:
        """The whole text as `str`, up to the limit."""
        return self._whole("str(context)", "it has the methods of str already: use it directly, or slice context[a:b]")

    def __format__(self, spec: str) -> str:
        """The text in an f-string, up to the limit. A precision (`{context:.500}`) reads that many characters."""
        text = self._read_for_format(spec)
        if text is None:
            text = self._whole("formatting the whole text (an f-string, format)", "format a part, context[a:b]")
        return format(text, spec)

    def _read_for_format(self, spec: str) -> str | None:
        """The beginning that a format with a precision shows; None for a format without one."""
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

    def __bytes__(self) -> bytes:
        """Raises `TypeError`, as `bytes` of a `str` without an encoding."""
        raise TypeError("string argument without an encoding")

    maketrans = staticmethod(str.maketrans)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """A 0-d array of the whole text as a `str`, up to the limit, as numpy makes of a `str`."""
        import numpy as np

        return np.array(self._whole("numpy.array(context)", "make arrays of slices"), dtype=dtype)


def _c_integer(value: SupportsIndex, most: int = sys.maxsize) -> int:
    """An int, with the `OverflowError` that methods of `str` raise outside the range of a C integer."""
    number = operator.index(value)
    if not -most - 1 <= number <= most:
        raise OverflowError("Python int too large to convert to C ssize_t")
    return number


def _span_of(text: str | StrLike) -> Span:
    if not isinstance(text, str):
        return text.span
    from monocontext.text.rope import literal

    return literal(text)


class _CharacterTaker:
    """Takes any number of characters at a time from consecutive texts."""

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
    """Stream the characters of a span one by one."""
    texts = span.texts(reverse=reverse)
    return chain.from_iterable(map(reversed, texts) if reverse else texts)
