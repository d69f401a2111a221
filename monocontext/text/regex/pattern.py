"""`Pattern`: a compiled pattern that searches `str` and lazy texts alike."""

from __future__ import annotations

import re
import sys
from abc import ABCMeta
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter, index
from types import GenericAlias
from typing import Any

from monocontext.text.lazy_kinds import Unchanging
from monocontext.text.regex.lazy_matches import LazyMatches, LazySplit, item_size, match_item
from monocontext.text.regex.match import Match, Subject
from monocontext.text.regex.plan import PatternPlan, plan
from monocontext.text.regex.scan import match_at, scan
from monocontext.text.str_methods import StrLike, materialize


class Pattern(Unchanging, metaclass=ABCMeta):
    """A compiled pattern. On anything but a `Monocontext`, each method is that of the real `re.Pattern`.

    On a `Monocontext` it returns what `re` returns for the whole text. A pattern whose matches are of bounded length,
    or stay within a line, streams: 1 GET for about 8 MiB of stored text read, fetched ahead, with nothing cached. Other
    patterns take the text as one `str`; above `materialize_limit` they raise `ContextTooLarge`.
    """

    __slots__ = ("_real",)
    __class_getitem__: Any = classmethod(GenericAlias)

    def __init__(self, real: re.Pattern[Any]):
        self._real = real

    pattern = property(attrgetter("_real.pattern"))
    flags = property(attrgetter("_real.flags"))
    groups = property(attrgetter("_real.groups"))
    groupindex = property(attrgetter("_real.groupindex"))

    def __eq__(self, other: object) -> bool:
        return bool(self._real == (other._real if type(other) is Pattern else other))

    def __hash__(self) -> int:
        return hash(self._real)

    def __repr__(self) -> str:
        return repr(self._real)

    def __reduce__(self) -> tuple[Any, ...]:
        return Pattern, (self._real,)

    def search(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The first match, or None; reads up to it."""
        if not isinstance(string, StrLike):
            return self._real.search(string, pos, endpos)
        return next(self.finditer(string, pos, endpos), None)

    def match(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match at `pos`, or None; reads until the result is certain."""
        if not isinstance(string, StrLike):
            return self._real.match(string, pos, endpos)
        return self._match_at(string, pos, endpos, full=False)

    def fullmatch(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Any:
        """The match of all of [pos, endpos), or None; reads until the result is certain."""
        if not isinstance(string, StrLike):
            return self._real.fullmatch(string, pos, endpos)
        return self._match_at(string, pos, endpos, full=True)

    def _match_at(self, text: StrLike, pos: int, endpos: int, *, full: bool) -> Match | None:
        low, high = self._bounds(text, pos, endpos)
        subject = Subject(self, text, text.span, low, high)
        if low <= high:
            result = match_at(self._plan, text.span, text._limit, low, high, full=full)
            return Match(*result, subject) if result else None
        real = self._real.fullmatch if full else self._real.match  # where `re` has rules of its own: some match ""
        match = real(text._whole("re.match with pos > endpos"), low, high)
        return Match(match, 0, subject) if match else None

    def finditer(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Iterator[Any]:
        """Matches in order; streams as the caller iterates."""
        if not isinstance(string, StrLike):
            return self._real.finditer(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        subject = Subject(self, string, string.span, low, high)
        matches = scan(self._plan, subject.span, string._limit, low, high, narrow=True)  # a `refresh` moves the text
        return (Match(match, base, subject) for match, base in matches)

    def findall(self, string: Any, pos: int = 0, endpos: int = sys.maxsize) -> Sequence[Any]:
        """The groups of all matches as a list, or the matches if there are no groups. Above the limit the list is lazy.
        Reads everything that may match."""
        if not isinstance(string, StrLike):
            return self._real.findall(string, pos, endpos)
        low, high = self._bounds(string, pos, endpos)
        span, limit = string.span, string._limit
        items: list[Any] = []
        size = 0
        for match, base in scan(self._plan, span, limit, low, high, narrow=False):
            items.append(match_item(match))
            size += max(item_size(items[-1]), 1)  # an empty match takes memory, too
            if size > limit:
                recipe = (self, "findall", string._snapshot, pos, endpos)
                return LazyMatches(self._plan, span.between(0, high), limit, recipe, low)
            span.log_received(base + match.start(), base + match.end())
        return items

    def split(self, string: Any, maxsplit: int = 0) -> Sequence[Any]:
        """The pieces between matches, and the groups, as a list. For a text above the limit the list is lazy; with
        `maxsplit` it is real, and its pieces may be views."""
        if not isinstance(string, StrLike):
            return self._real.split(string, maxsplit)
        low, high = self._bounds(string, 0, sys.maxsize)
        most, span, limit = index(maxsplit), string.span, string._limit
        if not string.is_large or most < 0 or (most == 0 and not self._plan.streams):
            text = string._whole("re.split", "iterate re.finditer(pattern, context), and slice between the matches")
            return self._real.split(text, most)
        if most == 0 and self._plan.is_literal:
            return string.split(self._plan.literal)
        if most == 0:
            return LazySplit(self._plan, span, limit, (self, "split", string._snapshot))
        items: list[Any] = []
        for match, base in islice(scan(self._plan, span, limit, low, high, narrow=True), most):
            items += [string._str_or_view(low, base + match.start()), *match.groups()]
            low = base + match.end()
        return [*items, string._str_or_view(low, high)]

    def sub(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The text with matches replaced; `ContextTooLarge` above the limit."""
        return self.subn(repl, string, count)[0]

    def subn(self, repl: Any, string: Any, count: int = 0) -> Any:
        """The result of `sub` and the number of replacements. `repl` may be a lazy text, or return one."""
        real_repl = (lambda match: materialize(repl(match))) if callable(repl) else materialize(repl)
        if isinstance(string, StrLike):
            string = string._whole("re.sub", "re.sub a part, context[a:b], or iterate context.lines and write out each")
        return self._real.subn(real_repl, string, count)

    @property
    def _plan(self) -> PatternPlan:
        return plan(self._real)

    def _bounds(self, text: StrLike, pos: int, endpos: int) -> tuple[int, int]:
        """`pos` and `endpos` within the text, as `re` takes them."""
        if not isinstance(self._real.pattern, str):
            raise TypeError("cannot use a bytes pattern on a string-like object")
        size = len(text)
        return min(max(index(pos), 0), size), min(max(index(endpos), 0), size)


Pattern.register(re.Pattern)
