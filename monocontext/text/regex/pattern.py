"""`Pattern`: a compiled pattern that searches `str` and lazy texts alike."""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from operator import index
from types import GenericAlias
from typing import Any

from monocontext.text.derived import Derived
from monocontext.text.regex.lazy import FunctionResults, Passes, PatternSplit, Substituted
from monocontext.text.regex.match import Match, Subject, make_match
from monocontext.text.regex.plan import Plan, plan, plan_to_end
from monocontext.text.regex.results import Tally, collect, materialize, replacement, split_matches, substitute, template
from monocontext.text.regex.rewrite import Marked
from monocontext.text.regex.stream import Scan, fullmatch_at, match_at
from monocontext.text.source import OPEN, Span
from monocontext.text.str_methods import StrLike


class Pattern(metaclass=ABCMeta):
    """A compiled pattern. On anything but a `Monocontext`, each method is that of the real `re.Pattern`.

    On a `Monocontext` it streams, and gives what `re` gives on the whole text. Cost, with nothing cached: 1 GET for
    about 8 MiB of stored text read, fetched ahead. Raises `ContextTooLarge` if the engine or the result would need
    more than `materialize_limit` characters in memory at once.
    """

    __slots__ = ("_cached_plan", "_real", "_to_end")

    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self) -> None:
        raise TypeError("cannot create 're.Pattern' instances")

    @classmethod
    def _of(cls, real: re.Pattern[Any]) -> Pattern:
        self = object.__new__(cls)
        self._real = real
        self._cached_plan = None
        self._to_end = None
        return self

    _real: re.Pattern[Any]
    _cached_plan: Plan | None
    _to_end: tuple[Marked | None] | None
    """The plan of `fullmatch`, in a tuple since it may be None. None until it is made."""

    # -- attributes ------------------------------------------------------------------------------------------------

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
        if pos == 0 and endpos == sys.maxsize and self._is_ruled_out(string):
            return None
        return next(self._iterate(string, pos, endpos), None)

    def match(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match at `pos`, or None; reads as far as it takes to decide."""
        if not isinstance(string, StrLike):
            return self._real.match(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        if low > high:
            return self._match_past_end(string, low, high, self._real.match)
        found = match_at(self._plan, string.span, string._limit, low, high)
        return make_match(*found, self._subject(string, low, high)) if found else None

    def fullmatch(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match of the whole text from `pos` to `endpos`, or None; reads only while the text can still match."""
        if not isinstance(string, StrLike):
            return self._real.fullmatch(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        if low > high:
            return self._match_past_end(string, low, high, self._real.fullmatch)
        if self._to_end is None:
            self._to_end = (plan_to_end(self._real),)
        found = fullmatch_at(self._plan, self._to_end[0], string.span, string._limit, low, high)
        return make_match(*found, self._subject(string, low, high)) if found else None

    # -- all matches -----------------------------------------------------------------------------------------------

    def finditer(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Iterator[Any]:
        """Matches in order; streams as the caller iterates."""
        if not isinstance(string, StrLike):
            return self._real.finditer(string, pos, endpos)
        return self._iterate(string, pos, endpos)

    def findall(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> list[Any]:
        """The groups of all matches (or the matches, without groups) as a list; reads everything."""
        if not isinstance(string, StrLike):
            return self._real.findall(string, pos, endpos)
        if pos == 0 and endpos == sys.maxsize and self._is_ruled_out(string):
            return []
        low, high = self._bounds(string, pos, endpos)
        tally = Tally("findall", string, "iterate re.finditer(pattern, context), or search context[a:b]")
        return collect(self._scan(string, low, high, narrow=True), self.groups, tally) if low <= high else []

    def split(self, string: Any, maxsplit: int = 0) -> list[Any] | PatternSplit:
        """Pieces between matches, and groups, as a list; reads everything. Above the limit a lazy list, which
        reads as its items are used (with `maxsplit` a real one, where it fits)."""
        if not isinstance(string, StrLike):
            return self._real.split(string, maxsplit)
        low, high = self._bounds(string, 0, sys.maxsize)
        most = index(maxsplit)
        if string._is_small:
            tally = Tally("split", string, "iterate re.finditer(pattern, context) and slice between")
            return split_matches(self._scan(string, low, high, most), high, self.groups, most, tally)
        if most < 0:
            return [string._part(0, high)]
        parts = PatternSplit(Passes(self._plan, string), self.groups, most)
        items = parts.to_list(string._limit) if most else None
        return parts.with_recipe(self, "split", string._snapshot, most) if items is None else items

    def sub(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The text with matches replaced; reads everything. Above the limit a lazy text, which reads as it is used;
        a function is called for every match at once (one pass), and its results are kept."""
        if not isinstance(string, StrLike):
            return self._real.sub(replacement(repl), string, count)
        return self._substitute(repl, string, count)[0]

    def subn(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The result of `sub` and the number of replacements; counting costs a pass."""
        if not isinstance(string, StrLike):
            return self._real.subn(replacement(repl), string, count)
        text, number = self._substitute(repl, string, count)
        return text, number()

    def _substitute(self, repl: Any, string: StrLike, count: Any) -> tuple[Any, Callable[[], int]]:
        """The text with matches replaced, and a function that returns the number of replacements."""
        low, high = self._bounds(string, 0, sys.maxsize)
        replacement, most = self._replacer(repl, string, high), index(count)
        if string._is_small:
            tally = Tally("sub", string, "re.sub a part, context[a:b], or iterate context.lines and write out each")
            text, number = substitute(self._scan(string, low, high, most), high, replacement, most, tally)
            return text, lambda: number
        if most < 0:
            return string._part(0, high), lambda: 0
        passes = Passes(self._plan, string)
        derived_from = self, "sub", repl, string._snapshot, most
        if callable(repl):
            results = FunctionResults(passes, replacement, most)
            lazy = string._over(Span(Derived(Substituted(passes, results, most)), 0, OPEN), derived_from)
            return lazy, lambda: results.number
        changes = Substituted(passes, lambda found, base, number: replacement(found, base), most)
        lazy = string._over(Span(Derived(changes), 0, OPEN), derived_from)
        return lazy, lambda: sum(1 for _ in islice(passes.matches(), most or None))

    # -- inside ----------------------------------------------------------------------------------------------------

    @property
    def _plan(self) -> Plan:
        if self._cached_plan is None:
            self._cached_plan = plan(self._real)
        return self._cached_plan

    def _is_ruled_out(self, text: StrLike) -> bool:
        """Whether search filters that are in memory tell that the text has no match (no GET)."""
        plan = self._plan
        return (
            plan.query is not None
            and type(self._real.pattern) is str
            and text._holds_none(plan.query, plan.within_line)
        )

    def _subject(self, text: StrLike, low: int, high: int) -> Subject:
        return Subject(self, text, low, high, self._plan.sees_outside)

    def _bounds(self, text: StrLike, pos: int, endpos: int) -> tuple[int, int]:
        if not isinstance(self._real.pattern, str) and self._real.pattern is not None:
            raise TypeError("cannot use a bytes pattern on a string-like object")
        size = len(text)
        return min(max(index(pos), 0), size), min(max(index(endpos), 0), size)

    def _scan(self, text: StrLike, low: int, high: int, most: int = 0, *, narrow: bool = False) -> Scan:
        """A pass over characters [low, high), of which the caller takes at most `most` matches; 0 for all."""
        return Scan(self._plan, text.span, text._limit, low, high, eager=not most, narrow=narrow)

    def _iterate(self, text: StrLike, pos: int, endpos: int) -> Iterator[Match]:
        low, high = self._bounds(text, pos, endpos)
        return self._matches(text, text.span, low, high)

    def _matches(self, text: StrLike, span: Span, low: int, high: int) -> Iterator[Match]:
        """The matches in characters [low, high) of a span. The span is that of the call to `finditer`, since a
        `refresh` may move the text before the first match is read."""
        if low > high:
            return
        scan = Scan(self._plan, span, text._limit, low, high, narrow=True)
        subject = self._subject(text, low, high)
        for found in scan.hits():
            if found is not None:
                yield make_match(found, scan.base, subject)

    def _match_past_end(self, text: StrLike, low: int, high: int, match: Callable[..., re.Match[str] | None]) -> Any:
        """`match` and `fullmatch` with `pos` after `endpos`, where `re` still finds empty matches."""
        base = max(0, low - self._plan.left - 2)
        found = match(text.span.read(base, min(low + 2, len(text))), low - base, max(min(high, 1), high - base))
        return make_match(found, base, self._subject(text, low, high)) if found else None

    def _template(self, repl: Any) -> list[str | int]:
        """A replacement text as literals and group numbers."""
        return template(materialize(repl), self._real)

    def _replacer(self, repl: Any, text: StrLike, high: int) -> Callable[[re.Match[str], int], Any]:
        """A function (match, base) that returns the replacement of a match in a window that begins at `base`."""
        if callable(repl):
            subject = self._subject(text, 0, high)
            return lambda found, base: materialize(repl(make_match(found, base, subject)))
        parts = self._template(repl)
        if len(parts) <= 1 and all(isinstance(part, str) for part in parts):
            literal = "".join(map(str, parts))
            return lambda found, base: literal
        return lambda found, base: "".join([part if isinstance(part, str) else found[part] or "" for part in parts])


def _compiled(pattern: Any, flags: int) -> Pattern:
    return Pattern._of(re.compile(pattern, flags))


Pattern.register(re.Pattern)
