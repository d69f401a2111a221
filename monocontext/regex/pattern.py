"""`Pattern`: a compiled pattern that takes `str` and lazy texts alike."""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from operator import index
from types import GenericAlias
from typing import Any

from monocontext.regex.match import Match, Subject, make
from monocontext.regex.plan import Plan, plan, plan_to_end
from monocontext.regex.results import Tally, collect, cut, materialized, substitute, template
from monocontext.regex.rewrite import Marked
from monocontext.regex.stream import Scan, fullmatch_at, match_at
from monocontext.source import Span
from monocontext.strlike import StrLike


class Pattern(metaclass=ABCMeta):
    """A compiled pattern. On anything but a `Monocontext` each method is that of the real `re.Pattern`.

    On a text it streams, and gives what `re` would on the whole of it. Costs are GETs with nothing cached: 1 for about
    8 MiB stored of what is read, fetched ahead. Raises `ContextTooLarge` where more than `materialize_limit` characters
    would have to be held at once: by the engine, or by the result.
    """

    __slots__ = ("_outside", "_plan", "_real", "_to_end")

    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self) -> None:
        raise TypeError("cannot create 're.Pattern' instances")

    @classmethod
    def _of(cls, real: re.Pattern[Any]) -> Pattern:
        self = object.__new__(cls)
        self._real = real
        self._plan = None
        self._to_end = None
        return self

    _real: re.Pattern[Any]
    _plan: Plan | None
    _to_end: tuple[Marked | None] | None

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def pattern(self) -> Any:
        return self._real.pattern

    @property
    def flags(self) -> int:
        return self._real.flags

    @property
    def groups(self) -> int:
        return self._real.groups

    @property
    def groupindex(self) -> Mapping[str, int]:
        return self._real.groupindex

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, re.Pattern):
            return bool(self._real == other)
        return self._real == other._real if type(other) is Pattern else NotImplemented

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce__(self) -> tuple[Any, ...]:
        return _compiled, (self.pattern, self.flags)

    def __copy__(self) -> Pattern:
        return self

    def __deepcopy__(self, memo: object) -> Pattern:
        return self

    # -- one match -------------------------------------------------------------------------------------------------

    def search(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The first match, or None; reads up to it."""
        if not isinstance(string, StrLike):
            return self._real.search(string, pos, endpos)
        return next(self._iterate(string, pos, endpos), None)

    def match(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match at `pos`, or None; reads on only as far as it takes to decide."""
        if not isinstance(string, StrLike):
            return self._real.match(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        if low > high:
            return self._beyond(string, low, high, self._real.match)
        found = match_at(self._planned, string.span, string._limit, low, high)
        return make(*found, self._subject(string, low, high)) if found else None

    def fullmatch(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match of all of it, or None; reads on while the text can still match."""
        if not isinstance(string, StrLike):
            return self._real.fullmatch(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        if low > high:
            return self._beyond(string, low, high, self._real.fullmatch)
        if self._to_end is None:
            self._to_end = (plan_to_end(self._real),)
        found = fullmatch_at(self._planned, self._to_end[0], string.span, string._limit, low, high)
        return make(*found, self._subject(string, low, high)) if found else None

    # -- all matches -----------------------------------------------------------------------------------------------

    def finditer(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Iterator[Any]:
        """Matches in order; streams, as far as it is iterated."""
        if not isinstance(string, StrLike):
            return self._real.finditer(string, pos, endpos)
        return self._iterate(string, pos, endpos)

    def findall(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> list[Any]:
        """The groups of all matches (or the matches, without groups) as a list; reads everything."""
        if not isinstance(string, StrLike):
            return self._real.findall(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        tally = Tally("findall", string, "iterate re.finditer(pattern, context), or search context[a:b]")
        return collect(self._scan(string, low, high, narrow=True), self.groups, tally) if low <= high else []

    def split(self, string: Any, maxsplit: int = 0) -> list[Any]:
        """Pieces between matches, and groups, as a list; reads everything."""
        if not isinstance(string, StrLike):
            return self._real.split(string, maxsplit)
        tally = Tally("split", string, "iterate re.finditer(pattern, context) and slice between, or split context[a:b]")
        low, high = self._bounds(string, 0, sys.maxsize)
        most = index(maxsplit)
        return cut(self._scan(string, low, high, most), high, self.groups, most, tally)

    def sub(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The text with matches replaced, as one `str`; reads everything."""
        if not isinstance(string, StrLike):
            return self._real.sub(materialized(repl), string, count)
        return self.subn(repl, string, count)[0]

    def subn(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The same with the number of replacements."""
        if not isinstance(string, StrLike):
            return self._real.subn(materialized(repl), string, count)
        tally = Tally("sub", string, "re.sub a part, context[a:b], or iterate context.lines and write out each")
        low, high = self._bounds(string, 0, sys.maxsize)
        replacement, most = self._replacer(repl, string, high), index(count)
        return substitute(self._scan(string, low, high, most), high, replacement, most, tally)

    # -- inside ----------------------------------------------------------------------------------------------------

    @property
    def _planned(self) -> Plan:
        if self._plan is None:
            self._plan = plan(self._real)
        return self._plan

    def _subject(self, text: StrLike, low: int, high: int) -> Subject:
        return Subject(self, text, low, high, self._planned.sees_outside)

    def _bounds(self, text: StrLike, pos: int, endpos: int) -> tuple[int, int]:
        if not isinstance(self._real.pattern, str) and self._real.pattern is not None:
            raise TypeError("cannot use a bytes pattern on a string-like object")
        size = len(text)
        return min(max(index(pos), 0), size), min(max(index(endpos), 0), size)

    def _scan(self, text: StrLike, low: int, high: int, most: int = 0, *, narrow: bool = False) -> Scan:
        """A pass that takes everything, unless it ends after so many matches."""
        return Scan(self._planned, text.span, text._limit, low, high, eager=not most, narrow=narrow)

    def _iterate(self, text: StrLike, pos: int, endpos: int) -> Iterator[Match]:
        low, high = self._bounds(text, pos, endpos)
        return self._matches(text, text.span, low, high)

    def _matches(self, text: StrLike, span: Span, low: int, high: int) -> Iterator[Match]:
        """`span` is where the text lay when it was asked for: a `refresh` may move it before the first match is."""
        if low > high:
            return
        scan = Scan(self._planned, span, text._limit, low, high, narrow=True)
        subject = self._subject(text, low, high)
        for found in scan.hits():
            if found is not None:
                yield make(found, scan.base, subject)

    def _beyond(self, text: StrLike, low: int, high: int, match: Callable[..., re.Match[str] | None]) -> Any:
        """`match` and `fullmatch` with `pos` behind `endpos`: to `re` a place where what needs no character matches."""
        base = max(0, low - self._planned.left - 2)
        found = match(text.span.read(base, min(low + 2, len(text))), low - base, max(min(high, 1), high - base))
        return make(found, base, self._subject(text, low, high)) if found else None

    def _template(self, repl: Any) -> list[str | int]:
        """A replacement text as literals and group numbers."""
        return template(materialized(repl), self._real)

    def _replacer(self, repl: Any, text: StrLike, high: int) -> Callable[[re.Match[str], int], Any]:
        """What is put in place of a match in a window that begins at `base`."""
        if callable(repl):
            subject = self._subject(text, 0, high)
            return lambda found, base: materialized(repl(make(found, base, subject)))
        parts = self._template(repl)
        if len(parts) <= 1 and all(isinstance(part, str) for part in parts):
            literal = "".join(map(str, parts))
            return lambda found, base: literal
        return lambda found, base: "".join([part if isinstance(part, str) else found[part] or "" for part in parts])


def _compiled(pattern: Any, flags: int) -> Pattern:
    return Pattern._of(re.compile(pattern, flags))


Pattern.register(re.Pattern)
