"""Cut a text into passages of a few lines, and score them against a query by BM25 with a bonus for proximity.

All passages have about the same length, so length does not count (b is 0). BM25: Robertson and Zaragoza, "The
Probabilistic Relevance Framework", 2009. The caller says how rare a word is.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from monocontext.text.search.terms import Term, Terms, lower_ascii

PASSAGE_CHARACTERS = 400
"""A passage ends with the line in which it reaches this length, and with its document. Longer lines are cut at twice
this."""
_K1 = 0.5
"""With a small k1, a word that occurs often in a passage counts little more than once."""
_MOST_COUNTED = 3
"""The most occurrences of a word that count in a passage. So a common word soon has passages that none can exceed."""
_NEAR_CHARACTERS = 80
"""At this distance, two words get half of the bonus."""
_BONUS = 0.3
"""The bonus for adjacent words, as a share of their weights."""
_DIGITS = 9
"""Scores are rounded, so that equal ones are equal however they were added up."""
_PASSAGE = re.compile(
    rf"(?s:.{{{PASSAGE_CHARACTERS}}})(?:[^\n]{{0,{PASSAGE_CHARACTERS - 1}}}\n|[^\n]{{{PASSAGE_CHARACTERS}}})|(?s:.+)"
)
"""One passage, in text in which no document ends."""

Occurrence = tuple[int, int, int]
"""The first character of a term in a text, the character after it, and the number of the term. A plain tuple: a text
has very many, and they are sorted."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage of a text, with its score."""

    start: int
    stop: int
    score: float
    numbers: frozenset[int]
    """The numbers of the scoring terms in it."""


def weigh(passages: float, holding: float) -> float:
    """The weight of a word that `holding` of `passages` contain: its inverse document frequency."""
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def most_score(weights: Sequence[float]) -> float:
    """The highest score of a passage with words of these weights."""
    bonus = _BONUS * sum(weights) if len(weights) > 1 else 0
    return round(sum(_word_score(weight, _MOST_COUNTED) for weight in weights) + bonus, _DIGITS)


def _word_score(weight: float, count: int) -> float:
    """The part of a passage's score that `count` occurrences of a word make."""
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one text after another."""

    def __init__(self, terms: Terms, weights: dict[Term, float]):
        self._scoring, self._without = terms.scoring, terms.without
        self._required = range(len(terms.phrases))
        self._weights = [weights[term] for term in terms.scoring]
        self._heaviest = sorted(range(len(self._weights)), key=lambda number: -self._weights[number])
        """The numbers of the terms, the heaviest first."""
        self._scores = [[_word_score(weight, n) for n in range(_MOST_COUNTED + 1)] for weight in self._weights]
        """The scores of each term by the number of its occurrences."""
        self.has_phrases = any(" " in term.text for term in (*terms.phrases, *terms.without))
        """Whether a term may continue in the next line."""
        self.reach = 32 + 2 * max(len(term.text) for term in (*terms.scoring, *terms.without))
        """The characters after a text in which a term that begins in it may end."""

    def score(
        self,
        text: str,
        cuts: Sequence[int] = (),
        least: float = 0.0,
        last: int | None = None,
        follows_word: Callable[[], bool] = lambda: False,
    ) -> Iterator[Scored]:
        """The passages of a text that score at least `least`, and maybe others, in order.

        A passage also ends at each of `cuts`, where documents begin or end, and no passage begins from `last` on. A
        word counts in the passage in which it begins, and that passage's text contains all of it. `follows_word` tells
        whether the text begins inside a word.
        """
        last = len(text) if last is None else last
        text = lower_ascii(text)
        leading = self._leading(least)
        heads = sorted(item for number in leading for item in self._occurrences(number, text, 0, last))
        if not heads:
            return
        first_word = 1 if self._begins_with_word(text) and follows_word() else 0
        excluded = self._excluded(text, first_word)
        others = [number for number in self._heaviest if number not in leading]
        # No passage has more than twice the usual characters, so the last head's passage ends before this.
        ends = [0, *_passage_ends(text, cuts, min(last, heads[-1][0] + 2 * PASSAGE_CHARACTERS))]
        position = 0
        while position < len(heads):
            end = bisect_right(ends, heads[position][0])
            start, stop = ends[end - 1], ends[end]
            after = bisect_left(heads, (stop,), position)
            inside, position = heads[position:after], after
            if bisect_left(excluded, start) < bisect_left(excluded, stop):
                continue
            for number in others:
                inside += self._occurrences(number, text, start, stop)
            if first_word > start:
                inside = [item for item in inside if item[0] or not self._scoring[item[2]].is_word]
            scored = self._add_up(start, stop, sorted(inside), least)
            if scored is not None:
                yield scored

    def _begins_with_word(self, text: str) -> bool:
        """Whether a word of the query, or an excluded one, matches at the first character of a text."""
        return any(term.pattern.match(text) for term in (*self._scoring, *self._without) if term.is_word)

    def _excluded(self, text: str, first_word: int) -> list[int]:
        """The characters at which excluded terms begin, in order; words only from `first_word` on."""
        starts = list[int]()
        for term in self._without:
            matches = term.pattern.finditer(text, first_word if term.is_word else 0)
            starts += [match.start() for match in matches]
        return sorted(starts)

    def _leading(self, least: float) -> Sequence[int]:
        """The numbers of some terms, of which every passage that scores `least` has one: the phrases, or the heaviest
        words. The others are looked for only in passages with one of these."""
        if self._required:
            return self._required
        for count in range(1, len(self._heaviest)):
            if most_score([self._weights[number] for number in self._heaviest[count:]]) < least:
                return self._heaviest[:count]
        return self._heaviest

    def _occurrences(self, number: int, text: str, start: int, stop: int) -> list[Occurrence]:
        """The occurrences of a term that begin at characters [start, stop)."""
        matches = self._scoring[number].pattern.finditer(text, start, stop + self.reach)
        return [(*match.span(), number) for match in matches if match.start() < stop]

    def _add_up(self, start: int, stop: int, inside: Sequence[Occurrence], least: float) -> Scored | None:
        """The score of a passage with these occurrences; None if it is certainly less than `least`, or if a phrase is
        missing."""
        counts = dict[int, int]()
        for _, _, number in inside:
            counts[number] = counts.get(number, 0) + 1
        if not inside or any(number not in counts for number in self._required):
            return None
        score = sum([self._scores[number][min(count, _MOST_COUNTED)] for number, count in counts.items()])
        if round(score + _BONUS * sum([self._weights[number] for number in counts]), _DIGITS) < least:
            return None
        nearest: dict[int, int] = {}
        """For each term next to another one, the fewest characters between the beginnings of the two."""
        for (offset, _, number), (next_offset, _, next_number) in pairwise(inside):
            if number != next_number:
                for item in (number, next_number):
                    nearest[item] = min(nearest.get(item, next_offset - offset), next_offset - offset)
        score += _BONUS * sum([self._weights[number] / (1 + gap / _NEAR_CHARACTERS) for number, gap in nearest.items()])
        return Scored(start, max(stop, inside[-1][1]), round(score, _DIGITS), frozenset(counts))


def _passage_ends(text: str, cuts: Sequence[int], last: int) -> Iterator[int]:
    """The ends of the passages in the first `last` characters of a text."""
    edges = [0, *cuts[bisect_right(cuts, 0) : bisect_left(cuts, last)], last]
    for start, stop in pairwise(edges):
        yield from [match.end() for match in _PASSAGE.finditer(text, start, stop)]
