"""Find the words of a query in a window of text. Pure.

A regular expression decides whether a word is at a place. It is tried only where a word may begin: where the text in
lower case has the word's first letters, and near letters with diacritics. `find` finds those places ten times as fast
as the expression would.
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

_ACCENTED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff\u212a\u212b]")
"""Accented characters: Latin letters with diacritics, combining marks, and the signs of kelvin and angstrom. In text
without these, `Term.plain` finds the same as `Term.pattern`."""
_COMBINING_BYTES = [b"\xcc", b"\xcd"]
_ACCENTED_BYTES = [
    *(bytes([first]) for first in range(0xC3, 0xCA)),
    *(bytes([0xE1, second]) for second in range(0xB8, 0xBC)),
    b"\xe2\x84\xaa",
    b"\xe2\x84\xab",
    *_COMBINING_BYTES,
]
"""The first bytes of accented characters in UTF-8. A search for all of these takes a tenth of the pattern's time."""
_ASCII = bytes(range(128))
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_LOWER_ASCII = _ASCII.lower() + b"?" * 128
"""Maps UTF-8 without continuation bytes to one byte a character: ASCII in lower case, `?` for all others."""
_SPARSE = 64
"""Characters of text for each accented one. Where these are more frequent, a look at each takes longer than a search
by the expression."""
_MOST_ENDING = 5
"""The most characters that a form of an English word has after its beginning: `run` + `nings`."""


class Found(NamedTuple):
    """A term at characters [start, stop) of the text."""

    start: int
    stop: int
    term: int
    """The number of the term."""


class Finder:
    """Finds terms in one text after another."""

    def __init__(self, terms: Sequence[Term]):
        self.terms = terms
        beginnings = [term.beginnings for term in terms]
        self.beginnings = [beginning for (beginning,) in beginnings] if all(beginnings) else []
        """The first characters of each term, in lower case; empty if a term has none, and only the expression finds
        it."""
        self.has_case = any(each.lower() != each.upper() for each in self.beginnings)
        self.has_spaces = any(not term.is_spaced and re.search(r"\s", term.text) for term in terms)
        """Whether a match may reach over a space."""
        self.longest = max(map(len, self.beginnings), default=0)
        self.starts = {each: re.compile(self._start_pattern(each)) for each in self.beginnings}
        """Patterns of words in lower case that may be a term, by beginning: fast even if many other words begin so."""

    def _start_pattern(self, beginning: str) -> str:
        escaped = re.escape(beginning)
        if not all(term.is_spaced for term in self.terms if term.beginnings == (beginning,)):
            return escaped
        return rf"{escaped}(?<=\b{escaped})\w{{0,{_MOST_ENDING}}}\b"

    @cached_property
    def plain(self) -> re.Pattern[str]:
        """The expression for text without accented characters."""
        return re.compile("|".join(f"({term.plain})" for term in self.terms), re.IGNORECASE)

    @cached_property
    def accented(self) -> re.Pattern[str]:
        """The expression for text with accented characters; it takes milliseconds to compile."""
        return re.compile("|".join(f"({term.pattern})" for term in self.terms), re.IGNORECASE)

    def expression(self, text: str) -> re.Pattern[str]:
        """The expression for a text, with a group for each term."""
        return self.accented if not text.isascii() and _ACCENTED.search(text) else self.plain

    def rules_out(self, data: bytes, beginnings: Iterable[str]) -> bool:
        """Whether a text in UTF-8 has no term with one of these beginnings. False if only the expression can tell."""
        if not self.beginnings:
            return False
        lowered = data.lower() if self.has_case else data
        sought = [beginning.encode("utf-8", "surrogatepass") for beginning in beginnings]
        if any(beginning in lowered for beginning in sought):
            return False
        return not self.has_case or data.isascii() or not self._accented_bytes(data, sought)

    def occurrences(self, text: str, data: bytes, first: int = 0) -> Occurrences:
        """The places of terms in a text from character `first` on. `data` is the text in UTF-8."""
        lowered, accented = text, list[int]()
        if self.has_case and text.isascii():
            lowered = text.lower()
        elif self.has_case:
            byte = character = 0
            for at in self._accented_bytes(data, [beginning.encode() for beginning in self.beginnings]):
                character += len(data[byte:at].translate(None, _CONTINUATION_BYTES))
                byte = at
                accented.append(character)
            if all(map(str.isascii, self.beginnings)):  # this takes a fifth of the time of the other way
                lowered = data.translate(_LOWER_ASCII, _CONTINUATION_BYTES).decode()
            else:
                lowered = text.replace("İ", "i").lower()  # the one character whose lower case has another length
        by_expression = not self.beginnings or len(accented) * _SPARSE > len(text)
        return Occurrences(self, text, lowered, accented, self.expression(text) if by_expression else None, first)

    def _accented_bytes(self, data: bytes, beginnings: list[bytes]) -> list[int]:
        """The places in UTF-8 of the accented characters that may belong to one of these beginnings. All places, where
        there are too many to look at each."""
        places, beyond_ascii = list[int](), data.translate(None, _ASCII)
        firsts = [first for first in _ACCENTED_BYTES if first in beyond_ascii]
        for first in firsts:
            at = data.find(first)
            while at >= 0:
                places.append(at)
                at = data.find(first, at + 1)
        places.sort()
        if len(places) * _SPARSE > len(data) or any(first in firsts for first in _COMBINING_BYTES):
            return places
        reach = 3 * self.longest + 3
        around = ((at, _letters(data[max(at - reach, 0) : at + reach])) for at in places)
        return [at for at, letters in around if any(beginning in letters for beginning in beginnings)]


class Occurrences:
    """The terms of a finder in one text. Matches do not overlap: the leftmost counts, and the next begins after it."""

    def __init__(
        self,
        finder: Finder,
        text: str,
        lowered: str,
        accented: list[int],
        expression: re.Pattern[str] | None,
        first: int,
    ):
        self._finder = finder
        self._text = text
        self._lowered = lowered
        """The text in lower case, character by character."""
        self._accented = accented
        """The accented characters. A term may begin near these that `_lowered` does not show."""
        self._expression = expression
        """Finds the terms in all of the text; None if `_lowered` and `_accented` tell where to look."""
        self._next = dict[str, int]()
        """The next place of each beginning in `_lowered`."""
        self._known = first
        """All matches that begin before this character are known."""

    def next(self, beginnings: Iterable[str], start: int) -> int:
        """The first place from `start` on where a term with one of these beginnings may be; else the length of the
        text. `start` never decreases from call to call."""
        end = len(self._text)
        if self._expression is not None:
            found = self._expression.search(self._text, start)
            return found.start() if found is not None else end
        for beginning in beginnings:
            at = self._next.get(beginning, -1)
            if at < start:
                at = self._lowered.find(beginning, start)
                found = self._finder.starts[beginning].search(self._lowered, at) if at >= 0 else None
                at = self._next[beginning] = found.start() if found is not None else len(self._text)
            end = min(end, at)
        if accented := self._accented_between(start, end + self._finder.longest):
            end = min(end, max(accented[0] - self._finder.longest, start))
        return end

    def most(self, start: int, stop: int) -> tuple[int, ...] | None:
        """The most occurrences of each term that begin in [start, stop); None if unknown."""
        if self._expression is not None or self._accented_between(start, stop + self._finder.longest):
            return None
        count = self._lowered.count
        return tuple([count(one, start, stop + len(one) - 1) for one in self._finder.beginnings])

    def matches(self, start: int, stop: int) -> list[Found]:
        """The terms that begin in [start, stop), in order. `start` is never less than the `stop` of an earlier call."""
        text, begin = self._text, self._known
        if begin < start and not self._finder.has_spaces:  # no match reaches over a space
            spaces = (start,) if text[start - 1].isspace() else (text.rfind(c, begin, start) + 1 for c in " \n")
            begin = max(begin, *spaces)
        found = [Found(*one.span(), (one.lastindex or 1) - 1) for one in self._match(begin, stop)]
        self._known = max(stop, found[-1].stop if found else 0)
        return [one for one in found if one.start >= start]

    def _match(self, start: int, stop: int) -> Iterator[re.Match[str]]:
        if self._expression is not None:
            yield from takewhile(lambda found: found.start() < stop, self._expression.finditer(self._text, start))
            return
        longest = self._finder.longest
        accented = self._accented_between(start, stop + longest)
        is_plain = not accented and not (self._accented and self._finder.has_spaces)
        expression = self._finder.plain if is_plain else self._finder.accented
        places = {at for mark in accented for at in range(max(mark - longest, start), min(mark + 1, stop))}
        for beginning in set(self._finder.beginnings):
            end = stop + len(beginning) - 1
            at = self._lowered.find(beginning, start, end)
            while at >= 0:
                places.add(at)
                at = self._lowered.find(beginning, at + 1, end)
        end = start
        for at in sorted(places):
            if at >= end and (found := expression.match(self._text, at)):
                end = found.end()
                yield found

    def _accented_between(self, start: int, stop: int) -> list[int]:
        places = self._accented
        return places[bisect_left(places, start) : bisect_left(places, stop)] if places else places


def _letters(data: bytes) -> bytes:
    """The ASCII letters of UTF-8 in lower case, without diacritics."""
    text = str(data, "utf-8", "ignore").casefold().replace("ı", "i")
    return unicodedata.normalize("NFD", text).encode("ascii", "ignore")
