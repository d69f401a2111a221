"""Find the words of a query in a window of text, each up to a number of times, without a look at every character.
Pure.

A word is matched by a regular expression, and only where it may begin: where its first letters are in lower case, or
near a letter with diacritics. Those places are found by `find`, ten times faster than by the expression.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import NamedTuple

from monocontext.text.search.terms import Term

_MARKED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff\u212a\u212b]")
"""Letters of ASCII with diacritics or in another case, and marks that may follow one. In text without these the plain
expression of a term finds what the other one finds."""
_LETTERS = [*(bytes([first]) for first in range(0xC3, 0xCA)), *(bytes([0xE1, second]) for second in range(0xB8, 0xBC))]
_COMBINING = [b"\xcc", b"\xcd"]
_FIRSTS_OF_MARKED = [*_LETTERS, b"\xe2\x84\xaa", b"\xe2\x84\xab", *_COMBINING]
"""Bytes with which they begin in UTF-8: to look for all takes a tenth of the time that the pattern takes."""
_ASCII = bytes(range(128))
_CONTINUATION = bytes(range(0x80, 0xC0))
_LOWERED = _ASCII.lower() + b"?" * 128
"""Maps UTF-8 without these to a byte for each character: ASCII in lower case, one mark for all others."""
_CHARACTERS_A_MARK = 64
"""Where marks are more frequent, a look at each costs more than a look at every character."""
_MOST_ENDING = 5
"""Characters that a form of an English word has after its beginning at most: `run` + `nings`."""


class Found(NamedTuple):
    """A word of the query."""

    start: int
    """Character in the text."""
    stop: int
    term: int
    """Its number."""


class Finder:
    """Finds some terms in one text after the other."""

    def __init__(self, terms: Sequence[Term]):
        self.terms = terms
        beginnings = [one.beginnings for one in terms]
        self.beginnings = [each for (each,) in beginnings] if all(beginnings) else []
        """First characters of each term; empty if some term has none, so only the expressions decide."""
        self.has_case = any(each.lower() != each.upper() for each in self.beginnings)
        self.has_spaces = any(not one.is_spaced and re.search(r"\s", one.text) for one in terms)
        """Whether a match may reach over a space."""
        self.longest = max(map(len, self.beginnings), default=0)
        self.starts = {one: re.compile(self._start(one)) for one in self.beginnings}
        """What each beginning stands for in lower case, and more; quick where it is frequent in other words."""

    def _start(self, beginning: str) -> str:
        some, escaped = [one for one in self.terms if one.beginnings == (beginning,)], re.escape(beginning)
        if not all(one.is_spaced for one in some):
            return escaped
        return rf"{escaped}(?<=\b{escaped})\w{{0,{_MOST_ENDING}}}\b"

    @cached_property
    def plain(self) -> re.Pattern[str]:
        return re.compile("|".join(f"({one.plain})" for one in self.terms), re.IGNORECASE)

    @cached_property
    def marked(self) -> re.Pattern[str]:
        """For text with diacritics; it takes milliseconds to compile."""
        return re.compile("|".join(f"({one.pattern})" for one in self.terms), re.IGNORECASE)

    def of(self, text: str) -> re.Pattern[str]:
        """The expression for a text; its groups are the terms."""
        return self.marked if not text.isascii() and _MARKED.search(text) else self.plain

    def rules_out(self, data: bytes, beginnings: Iterable[str]) -> bool:
        """Whether a text in UTF-8 surely has no term that begins so."""
        if not self.beginnings:
            return False
        lowered = data.lower() if self.has_case else data
        sought = [one.encode("utf-8", "surrogatepass") for one in beginnings]
        if any(one in lowered for one in sought):
            return False
        return not self.has_case or data.isascii() or not self._marks(data, sought)

    def look(self, text: str, data: bytes, first: int = 0) -> Occurrences:
        """The places of terms in a text from a character on; `data` is the text in UTF-8."""
        lowered, marks = text, list[int]()
        if self.has_case and text.isascii():
            lowered = text.lower()
        elif self.has_case:
            byte = character = 0
            for at in self._marks(data, [one.encode() for one in self.beginnings]):
                character += len(data[byte:at].translate(None, _CONTINUATION))
                byte = at
                marks.append(character)
            if all(map(str.isascii, self.beginnings)):
                lowered = data.translate(_LOWERED, _CONTINUATION).decode()  # a fifth of the time of the next line
            else:
                lowered = text.replace("İ", "i").lower()  # the one character whose lower case has another length
        by_pattern = not self.beginnings or len(marks) * _CHARACTERS_A_MARK > len(text)
        return Occurrences(self, text, lowered, marks, self.of(text) if by_pattern else None, first)

    def _marks(self, data: bytes, beginnings: list[bytes]) -> list[int]:
        """The bytes at which letters with diacritics begin that may belong to one of these beginnings; those of all
        such letters where they are many."""
        places, others = list[int](), data.translate(None, _ASCII)
        firsts = [first for first in _FIRSTS_OF_MARKED if first in others]
        for first in firsts:
            at = data.find(first)
            while at >= 0:
                places.append(at)
                at = data.find(first, at + 1)
        places.sort()
        if len(places) * _CHARACTERS_A_MARK > len(data) or any(one in firsts for one in _COMBINING):
            return places
        reach = 3 * self.longest + 3
        return [at for at in places if any(one in _bare(data[max(at - reach, 0) : at + reach]) for one in beginnings)]


class Occurrences:
    """The terms of a finder in one text. Matches do not overlap: the leftmost counts, and the next begins after it."""

    def __init__(
        self, finder: Finder, text: str, lowered: str, marks: list[int], only: re.Pattern[str] | None, first: int
    ):
        self._finder = finder
        self._text = text
        self._lowered = lowered
        self._marks = marks
        """Places of letters with diacritics, where a term may begin that `_lowered` does not show."""
        self._only = only
        """The expression that finds terms by a look at every character; None: `_lowered` and marks tell."""
        self._next = dict[str, int]()
        self._known = first
        """The offset at which the next match may begin, if all matches before it are known."""

    def next(self, beginnings: Iterable[str], start: int) -> int:
        """The first place, from `start` on, where a term with this beginning may be; else the end. `start` never falls
        from call to call."""
        end = len(self._text)
        if self._only is not None:
            found = self._only.search(self._text, start)
            return found.start() if found is not None else end
        for beginning in beginnings:
            at = self._next.get(beginning, -1)
            if at < start:
                at = self._lowered.find(beginning, start)
                found = self._finder.starts[beginning].search(self._lowered, at) if at >= 0 else None
                at = self._next[beginning] = found.start() if found is not None else len(self._text)
            if at < end:
                end = at
        if self._marks and (mark := self._marks_between(start, end + self._finder.longest)[:1]):
            end = min(end, max(mark[0] - self._finder.longest, start))
        return end

    def most(self, start: int, stop: int) -> tuple[int, ...] | None:
        """How often each term begins in [start, stop) at most; None: as often as it can."""
        if self._only is not None or (self._marks and self._marks_between(start, stop + self._finder.longest)):
            return None
        count = self._lowered.count
        return tuple([count(one, start, stop + len(one) - 1) for one in self._finder.beginnings])

    def matches(self, start: int, stop: int) -> list[Found]:
        """The terms that begin in [start, stop), in order. `start` never falls below the `stop` of a call before."""
        text, begin = self._text, self._known
        if begin < start and not self._finder.has_spaces:  # no match reaches over a space
            spaces = (start,) if text[start - 1].isspace() else (text.rfind(c, begin, start) + 1 for c in " \n")
            begin = max(begin, *spaces)
        found = [Found(*one.span(), (one.lastindex or 1) - 1) for one in self._match(begin, stop)]
        self._known = max(stop, found[-1].stop if found else 0)
        return [one for one in found if one.start >= start]

    def _match(self, start: int, stop: int) -> Iterator[re.Match[str]]:
        if self._only is not None:
            yield from takewhile(lambda one: one.start() < stop, self._only.finditer(self._text, start))
            return
        marks = self._marks_between(start, stop + self._finder.longest)
        pattern = self._finder.marked if marks or (self._marks and self._finder.has_spaces) else self._finder.plain
        places = {at for mark in marks for at in range(max(mark - self._finder.longest, start), min(mark + 1, stop))}
        for beginning in set(self._finder.beginnings):
            end = stop + len(beginning) - 1
            at = self._lowered.find(beginning, start, end)
            while at >= 0:
                places.add(at)
                at = self._lowered.find(beginning, at + 1, end)
        end = start
        for at in sorted(places):
            if at >= end and (found := pattern.match(self._text, at)):
                end = found.end()
                yield found

    def _marks_between(self, start: int, stop: int) -> list[int]:
        marks = self._marks
        return marks[bisect_left(marks, start) : bisect_left(marks, stop)] if marks else marks


def _bare(data: bytes) -> bytes:
    """Its letters of ASCII, without diacritics, in lower case."""
    text = str(data, "utf-8", "ignore").casefold().replace("ı", "i")
    return unicodedata.normalize("NFD", text).encode("ascii", "ignore")
