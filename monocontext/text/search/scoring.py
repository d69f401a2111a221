"""Cut a text into passages of a few lines, and score them against a query by BM25 with a bonus for proximity. Pure.

Passages are alike in length, so their length does not count (b is 0).

BM25: Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009. How rare a word is comes from outside: only
the search filters know that without reading the text.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter

from monocontext.text.search.terms import Term, Terms, fold

PASSAGE_CHARACTERS = 400
"""A passage ends with the line in which it becomes this long, and with its document. Longer lines are cut at
twice this."""
_K1 = 0.5
"""With a small k1 a word that stands often in a passage counts little more than once. So frames that lack words of the
query are ruled out earlier."""
_MOST_COUNTED = 3
"""A word counts so often in a passage at most. So a common word soon has passages that none can exceed."""
_NEAR_CHARACTERS = 80
"""Two words as far from each other have half the bonus."""
_BONUS = 0.3
"""The bonus of words side by side, as a share of what they weigh."""

_MARKED = re.compile("[\u00c0-\u024f\u0300-\u036f\u1e00-\u1eff\u212a\u212b]")
"""What is, or stands behind, a letter of ASCII with diacritics or in another case."""
_OTHER = re.compile(rb"\?")
_CHARACTERS_AN_OTHER = 16
"""Where characters of ASCII are so many to one of others, looking in ASCII alone is twice as fast."""
_CHARACTERS_A_MARK = 64
"""Where marks are more frequent, a look at each costs more than a look at every character."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage of a window."""

    start: int
    """Character in the window."""
    stop: int
    score: float
    places: list[tuple[int, int]]
    """Where a term that scores begins in the window, and the number of that term."""


def weigh(frames: int, holding: int) -> float:
    """The weight of a word (inverse document frequency) that so many of so many frames may hold."""
    return math.log(1 + (frames - holding + 0.5) / (holding + 0.5))


def most_score(weights: Sequence[float]) -> float:
    """What a passage with words of these weights scores at most."""
    bonus = _BONUS * sum(weights) if len(weights) > 1 else 0
    return sum(_add_up(each, _MOST_COUNTED) for each in weights) + bonus


def _add_up(weight: float, count: int) -> float:
    """What a word adds to the score of a passage that has it so often."""
    count = min(count, _MOST_COUNTED)
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one window after the other."""

    def __init__(self, terms: Terms, weights: dict[Term, float]):
        scoring = terms.scoring
        self._weights = [weights[term] for term in scoring]
        self._required = frozenset(range(len(terms.phrases)))
        self._words = tuple(
            _alternatives([f"(?P<t{i}>{form(one)})" for i, one in enumerate(scoring)]) for form in _FORMS
        )
        beginnings = [one.beginnings for one in scoring]
        self._beginnings = {each for some in beginnings for each in some} if all(beginnings) else set()
        self._without = tuple(_alternatives([form(one) for one in terms.without]) for form in _FORMS)
        self._all = (*scoring, *terms.without)
        self.reach = PASSAGE_CHARACTERS + 2 * max(len(one.text) for one in self._all)
        """Characters behind a window in which a word or phrase of it is looked for."""

    def may_go_on(self, text: str) -> bool:
        """Whether what stands behind a text decides on a word or phrase that begins in it."""
        tail = fold(text[-self.reach :])
        return any(one.may_go_on(tail) for one in self._all)

    def may_begin(self, text: str) -> bool:
        """Whether a word or phrase begins at the start of a text, if no word goes on there."""
        form = 0 if text.isascii() else 1
        return any(one is not None and one.match(text) for one in (self._words[form], self._without[form]))

    def score(self, text: str, cuts: Sequence[int] = (), first: int = 0, last: int | None = None) -> Iterator[Scored]:
        """The passages of characters [first, last) that score, in order. One ends at each of `cuts`, where another
        document begins. A word counts where it begins, and is in the text of that passage to its end."""
        last = len(text) if last is None else last
        words = self._words[0 if text.isascii() else 1]
        assert words is not None
        start = stop = end = first
        places = list[tuple[int, int]]()
        for found in self._find(words, text, first):
            at = found.start()
            if at >= last:
                break
            if at >= stop:
                if places and (scored := self._score_one(text, cuts, start, stop, end, places)):
                    yield scored
                start, stop = _passage_at(text, stop, at, cuts, last)
                places = []
            end = found.end()
            places.append((at, int((found.lastgroup or "t0")[1:])))
        if places and (scored := self._score_one(text, cuts, start, stop, end, places)):
            yield scored

    def _score_one(
        self, text: str, cuts: Sequence[int], start: int, stop: int, end: int, places: list[tuple[int, int]]
    ) -> Scored | None:
        """The passage [start, stop) with terms at these places, the last of which ends at `end`."""
        if not self._required <= {term for _, term in places}:
            return None
        without = self._without[0 if text.isascii() else 1]
        lacked = without.search(text, start, stop + self.reach) if without is not None else None
        if lacked is not None and lacked.start() < stop:  # it may end behind the passage
            return None
        next_cut = bisect_right(cuts, start)
        end = min(max(stop, end), cuts[next_cut] if next_cut < len(cuts) else len(text))
        return Scored(start, end, self.add_up(places), places)

    def _find(self, words: re.Pattern[str], text: str, first: int = 0) -> Iterator[re.Match[str]]:
        """What `words.finditer(text, first)` gives. It looks only where a word may begin, ten times faster."""
        marks = list[int]()
        narrow = text.encode("ascii", "replace") if all(map(str.isascii, self._beginnings)) else b""
        if text.isascii():
            lowered = text.lower()
        elif narrow and narrow.count(b"?") * _CHARACTERS_AN_OTHER < len(text):  # others matter as marks alone
            marks = [at for found in _OTHER.finditer(narrow) if _MARKED.match(text, at := found.start())]
            lowered = narrow.lower().decode()
        else:
            marks = [found.start() for found in _MARKED.finditer(text)]
            lowered = text.replace("İ", "i").lower()  # the one character whose lower case has another length
        if not self._beginnings or len(marks) * _CHARACTERS_A_MARK > len(text):
            yield from words.finditer(text, first)
            return
        longest = max(map(len, self._beginnings))
        places = {at for mark in marks for at in range(max(mark - longest, 0), mark + 1)}
        for beginning in self._beginnings:
            at = lowered.find(beginning)
            while at >= 0:
                places.add(at)
                at = lowered.find(beginning, at + 1)
        end = first
        for at in sorted(places):
            if at >= end and (found := words.match(text, at)):
                end = found.end()
                yield found

    def add_up(self, places: list[tuple[int, int]]) -> float:
        """The score of a passage with terms at these places."""
        counts = defaultdict[int, int](int)
        for _, term in places:
            counts[term] += 1
        score = sum(_add_up(self._weights[term], count) for term, count in counts.items())
        if len(counts) < 2:
            return score
        nearest: dict[int, int] = {}
        for (at, term), (behind, other) in pairwise(places):
            if term != other:
                for each in (term, other):
                    nearest[each] = min(nearest.get(each, behind - at), behind - at)
        bonus = (self._weights[term] / (1 + gap / _NEAR_CHARACTERS) for term, gap in nearest.items())
        return score + _BONUS * sum(bonus)


_FORMS = (attrgetter("plain"), attrgetter("pattern"))


def _alternatives(patterns: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(patterns), re.IGNORECASE) if patterns else None


def _passage_at(text: str, start: int, at: int, cuts: Sequence[int], last: int) -> tuple[int, int]:
    """The passage with character `at`, if one begins at `start`."""
    number = bisect_right(cuts, start)
    stop = start
    while stop <= at:
        start = stop
        most = min(start + 2 * PASSAGE_CHARACTERS, last)
        stop = text.find("\n", start + PASSAGE_CHARACTERS, most) + 1 or most
        if number < len(cuts) and stop >= cuts[number]:
            stop = cuts[number]
            number += 1
    return start, stop
