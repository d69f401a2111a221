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
from itertools import chain, pairwise

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
    return sum(_word_score(weight, _MOST_COUNTED) for weight in weights) + bonus


def _word_score(weight: float, count: int) -> float:
    """The part of a passage's score that `count` occurrences of a word make."""
    count = min(count, _MOST_COUNTED)
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one text after another."""

    def __init__(self, terms: Terms, weights: dict[Term, float]):
        self._terms = terms
        self._weights = [weights[term] for term in terms.scoring]
        self._required = frozenset(range(len(terms.phrases)))
        self.has_phrases = any(" " in term.text for term in (*terms.phrases, *terms.without))
        """Whether a term may go on in the next line."""
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
        """The passages that score at least `least`, and maybe others, in order.

        A passage also ends at each of `cuts`, where documents begin or end, and no passage begins from `last` on. A
        word counts in the passage in which it begins, and that passage's text contains all of it. `follows_word` tells
        whether the text begins inside a word.
        """
        folded = fold(text)
        last = len(text) if last is None else last
        by_term = [list(_places(term, folded)) for term in self._terms.scoring]
        if most_score([self._weights[number] for number, spans in enumerate(by_term) if spans]) < least:
            return
        result = sorted(
            (span, stop, number) for number, spans in enumerate(by_term) for span, stop in spans if span < last
        )
        if result and result[0][0] == 0 and follows_word():
            del result[0]
        if not result:
            return
        excluded = sorted(offset for term in self._terms.without for offset, _ in _places(term, folded))
        first = 0
        for start, stop in _passages(text, cuts, last):
            if result[first][0] >= stop:
                continue
            after = bisect_left(result, (stop,), first)
            inside, first = result[first:after], after
            if self._required <= {number for *_, number in inside} and (
                not excluded or bisect_left(excluded, start) == bisect_left(excluded, stop)
            ):
                places = [(offset, number) for offset, _, number in inside]
                yield Scored(start, max(stop, inside[-1][1]), self.add_up(places), places)
            if first == len(result):
                return

    def add_up(self, places: list[tuple[int, int]]) -> float:
        """The score of a passage with terms at these characters."""
        counts = dict[int, int]()
        for _, term in places:
            counts[term] = counts.get(term, 0) + 1
        score = sum(_word_score(self._weights[term], count) for term, count in counts.items())
        if len(counts) < 2:
            return score
        nearest: dict[int, int] = {}
        for (offset, term), (next_at, next_term) in pairwise(places):
            if term != next_term:
                for item in (term, next_term):
                    nearest[item] = min(nearest.get(item, next_at - offset), next_at - offset)
        return score + _BONUS * sum(self._weights[term] / (1 + gap / _NEAR_CHARACTERS) for term, gap in nearest.items())


def _places(term: Term, folded: str) -> Iterator[tuple[int, int]]:
    """The ranges of a term in a folded text, without overlaps."""
    offset = folded.find(term.beginning)
    while offset >= 0:
        match = term.pattern.match(folded, offset)
        if match:
            yield match.span()
        offset = folded.find(term.beginning, match.end() if match else offset + 1)


def _passages(text: str, cuts: Sequence[int], last: int) -> Iterator[tuple[int, int]]:
    """The ranges of the passages in the first `last` characters of a text."""
    ends = [0, *cuts[bisect_right(cuts, 0) : bisect_left(cuts, last)], last]
    return chain.from_iterable(map(re.Match.span, _PASSAGE.finditer(text, *part)) for part in pairwise(ends))
