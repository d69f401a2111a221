"""Cut a text into passages of a few lines, and score them against a query by BM25 with a bonus for proximity.

All passages have about the same length, so length does not count (b is 0). BM25: Robertson and Zaragoza, "The
Probabilistic Relevance Framework", 2009. The caller says how rare a word is: only the search filters know that without
reading the text.

A caller that wants only the best passages gives the least score. Then only passages with one of the words that such a
score needs are looked at (Turtle and Flood, "Query Evaluation: Strategies and Optimizations", 1995), and words are
matched only where the counts of their beginnings allow that score (a bound for each block: Ding and Suel, "Faster Top-k
Document Retrieval Using Block-Max Indexes", 2011).
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from monocontext.text.search.occurrences import Finder, Occurrences
from monocontext.text.search.terms import Term, Terms, fold

PASSAGE_CHARACTERS = 400
"""A passage ends with the line in which it reaches this length, and with its document. Longer lines are cut at twice
this."""
_K1 = 0.5
"""With a small k1, a word that occurs often in a passage counts little more than once. So frames that lack words of the
query are ruled out earlier."""
_MOST_COUNTED = 3
"""The most occurrences of a word that count in a passage. So a common word soon has passages that none can exceed."""
_NEAR_CHARACTERS = 80
"""At this distance, two words get half of the bonus."""
_BONUS = 0.3
"""The bonus for adjacent words, as a share of their weights."""

_PASSAGE = re.compile(
    rf"(?s:.{{{PASSAGE_CHARACTERS}}})(?:[^\n]{{0,{PASSAGE_CHARACTERS - 1}}}\n|[^\n]{{{PASSAGE_CHARACTERS}}})|(?s:.+)"
)
"""One passage, in text in which no document ends."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage of a window."""

    start: int
    """The first character in the window."""
    stop: int
    score: float
    places: list[tuple[int, int]]
    """The characters at which scoring terms begin in the window, each with the number of its term."""


def weigh(passages: float, holding: float) -> float:
    """The weight of a word that `holding` of `passages` contain: its inverse document frequency."""
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def most_score(weights: Sequence[float]) -> float:
    """The highest score of a passage with words of these weights."""
    bonus = _BONUS * sum(weights) if len(weights) > 1 else 0
    return sum(_word_score(each, _MOST_COUNTED) for each in weights) + bonus


def _word_score(weight: float, count: int) -> float:
    """The part of a passage's score that `count` occurrences of a word make."""
    count = min(count, _MOST_COUNTED)
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one window after another."""

    def __init__(self, terms: Terms, weights: dict[Term, float]):
        self._weights = [weights[term] for term in terms.scoring]
        self._scores = [[_word_score(each, count) for count in range(_MOST_COUNTED + 1)] for each in self._weights]
        """The part of each term in a score, by its count."""
        self._bounds = dict[tuple[int, ...], float]()
        """The highest score of a passage, by the counts of the terms."""
        self._required = frozenset(range(len(terms.phrases)))
        self._finder = Finder(terms.scoring)
        self._without = Finder(terms.without) if terms.without else None
        self._all = (*terms.scoring, *terms.without)
        self._has_spaces = self._finder.has_spaces or (self._without is not None and self._without.has_spaces)
        self.reach = PASSAGE_CHARACTERS + 2 * max(len(one.text) for one in self._all)
        """The characters after a window in which a word or phrase that begins in it may end."""
        self.least = 0.0
        """Passages below this score may be left out. It may rise between two passages of a window."""

    def rules_out(self, data: bytes) -> bool:
        """Whether a window in UTF-8 surely has no passage with enough score, whatever text precedes and follows it."""
        return data.endswith(b"\n") and not self._has_spaces and self._finder.rules_out(data, self._needed())

    def may_go_on(self, text: str) -> bool:
        """Whether a word or phrase may begin in a window and end in the text after it."""
        if text.endswith("\n") and not self._has_spaces:
            return False
        tail = fold(text[-self.reach :])
        return any(one.may_go_on(tail) for one in self._all)

    def may_begin(self, text: str) -> bool:
        """Whether a word or phrase begins at the start of a text, given that no word continues there."""
        head = text if self._has_spaces else text[: self.reach]
        return any(one is not None and one.expression(head).match(head) for one in (self._finder, self._without))

    def score(
        self, text: str, cuts: Sequence[int] = (), first: int = 0, last: int | None = None, data: bytes | None = None
    ) -> Iterator[Scored]:
        """The passages of characters [first, last) that score at least `least`, and maybe others, in order.

        A passage also ends at each of `cuts`, where documents begin or end. A word counts in the passage in which it
        begins, and that passage's text contains all of it. `data`: the text in UTF-8, if the caller has it.
        """
        last = len(text) if last is None else last
        words = self._finder.occurrences(text, text.encode("utf-8", "surrogatepass") if data is None else data, first)
        passages = _passages(text, cuts, first, last)
        start = stop = first
        least, needed = -1.0, list[str]()
        while True:
            if least != self.least:
                least, needed = self.least, self._needed()
            at = words.next(needed, stop)
            if at >= last:
                return
            while stop <= at:
                start, stop = next(passages)
            if self._may_score(words, start, stop) and (scored := self._score_one(text, cuts, words, start, stop)):
                yield scored

    def _needed(self) -> list[str]:
        """Beginnings of terms. Each passage that scores `least` has one of these; empty if unknown."""
        if not self._finder.beginnings:
            return []
        if self._required:
            return [self._finder.beginnings[max(self._required, key=self._weights.__getitem__)]]
        terms = sorted(range(len(self._weights)), key=self._weights.__getitem__)
        weights = [self._weights[term] for term in terms]
        # The lightest terms, as many as do not reach `least` together: a passage needs one of the others.
        light = next((n for n in range(len(terms)) if most_score(weights[: n + 1]) >= self.least), len(terms))
        return list(dict.fromkeys(self._finder.beginnings[term] for term in terms[light:]))

    def _may_score(self, words: Occurrences, start: int, stop: int) -> bool:
        """Whether the passage [start, stop) can score `least`."""
        counts = words.most(start, stop) if self.least else None
        if counts is None:
            return True
        if (most := self._bounds.get(counts)) is None:
            present = [term for term, count in enumerate(counts) if count]
            most = sum(self._scores[term][min(counts[term], _MOST_COUNTED)] for term in present)
            most += _BONUS * sum(self._weights[term] for term in present) if len(present) > 1 else 0
            self._bounds[counts] = most
        return most >= self.least

    def _score_one(self, text: str, cuts: Sequence[int], words: Occurrences, start: int, stop: int) -> Scored | None:
        """The passage [start, stop) if it has the required terms and none of the excluded ones, else None."""
        found = words.matches(start, stop)
        places = [(one.start, one.term) for one in found]
        if not places or not self._required <= {term for _, term in places}:
            return None
        score = self.add_up(places)
        if self._without is not None and score >= self.least:
            end = stop + self.reach  # an excluded term may end after the passage
            excluded = self._without.expression(text[start:end]).search(text, start, end)
            if excluded is not None and excluded.start() < stop:
                return None
        next_cut = bisect_right(cuts, start)
        end = min(max(stop, found[-1].stop), cuts[next_cut] if next_cut < len(cuts) else len(text))
        return Scored(start, end, score, places)

    def add_up(self, places: list[tuple[int, int]]) -> float:
        """The score of a passage with terms at these characters."""
        counts = defaultdict[int, int](int)
        for _, term in places:
            counts[term] += 1
        score = sum(_word_score(self._weights[term], count) for term, count in counts.items())
        if len(counts) < 2:
            return score
        nearest: dict[int, int] = {}
        for (at, term), (next_at, next_term) in pairwise(places):
            if term != next_term:
                for each in (term, next_term):
                    nearest[each] = min(nearest.get(each, next_at - at), next_at - at)
        bonus = (self._weights[term] / (1 + gap / _NEAR_CHARACTERS) for term, gap in nearest.items())
        return score + _BONUS * sum(bonus)


def _passages(text: str, cuts: Sequence[int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The ranges of the passages in [first, last)."""
    ends = [first, *cuts[bisect_right(cuts, first) : bisect_left(cuts, last)], last]
    return chain.from_iterable(map(re.Match.span, _PASSAGE.finditer(text, *part)) for part in pairwise(ends))
