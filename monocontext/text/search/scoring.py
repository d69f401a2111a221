"""Score the passages of a text against a query, by BM25 with a bonus for words that are near each other.

The passages of a document have about the same length, so length does not count (b is 0). BM25: Robertson and Zaragoza,
"The Probabilistic Relevance Framework", 2009. The caller says how rare each term is.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from monocontext.engine.scan import find
from monocontext.text.search.terms import Terms

PASSAGE_CHARACTERS = 480
"""The average length of a passage. See `_passage_around`."""
_K1 = 0.5  # with a small k1, a word that occurs often in a passage counts little more than once
_MOST_COUNTED = 3
"""The most occurrences of a word that count in a passage. So a common word soon has passages that none can exceed."""
_NEAR_CHARACTERS = 80  # at this distance, two words get half of the bonus
_BONUS = 0.3  # the bonus for adjacent words, as a share of their weights
_DIGITS = 9  # scores are rounded, so that equal ones are equal however they were added up

Occurrence = tuple[int, int, int]
"""The first character of a term in a text, the character after it, and the number of the term. A plain tuple: a text
has very many, and they are sorted."""


class Scored(NamedTuple):
    """A passage of a text, with its score."""

    start: int
    stop: int
    score: float


def weigh(passages: float, holding: float) -> float:
    """The weight of a word that `holding` of `passages` contain: its inverse document frequency."""
    return math.log(1 + (passages - holding + 0.5) / (holding + 0.5))


def most_score(weights: Sequence[float]) -> float:
    """The highest score of a passage with words of these weights."""
    bonus = _BONUS * sum(weights) if len(weights) > 1 else 0
    return round(sum([_word_score(weight, _MOST_COUNTED) for weight in weights]) + bonus, _DIGITS)


def _word_score(weight: float, count: int) -> float:
    """The part of a passage's score that `count` occurrences of a word make."""
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one text after another. `weights` are those of `terms.scoring`."""

    def __init__(self, terms: Terms, weights: Sequence[float]):
        self._terms = terms
        self._required = {*range(terms.phrases)}
        self._weights = weights
        self._needles = [term.needle.encode("utf-8", "surrogatepass") for term in terms.scoring]
        self._scores = [[_word_score(weight, n) for n in range(_MOST_COUNTED + 1)] for weight in weights]
        """The scores of each term by the number of its occurrences."""
        everything = (*terms.scoring, *terms.without)
        self.crosses_lines = any(" " in term.text for term in everything)
        """Whether a term may go on in the next line."""
        self.reach = 32 + 2 * max(len(term.text) for term in everything)
        """The characters after a text in which a term that begins in it may end."""

    def leading(self, utf8: bytes, least: float) -> list[int]:
        """The numbers of some terms, of which every passage that scores `least` has one, in a text of `lower_ascii`:
        the phrases, or the heaviest words. Those that are not in it are left out."""
        is_in = [find(utf8, needle) >= 0 for needle in self._needles]
        order = sorted(self._required or range(len(is_in)), key=lambda number: (is_in[number], -self._weights[number]))
        size = 1 if self._required else len(order)
        while size > 1 and most_score([self._weights[number] for number in order[size - 1 :]]) < least:
            size -= 1
        return [number for number in order[:size] if is_in[number]]

    def begins(self, text: str) -> bool:
        """Whether a term matches at the first character of a text."""
        return any(term.pattern.match(text) for term in (*self._terms.scoring, *self._terms.without))

    def score(
        self, text: str, first: int, last: int, edges: Sequence[int], leading: list[int], least: float
    ) -> Iterator[Scored]:
        """The passages of text[first:last] with a leading term that score at least `least`, and maybe others, in order.

        `text` is in lower case, and goes on where a word does. No passage crosses `edges`, where documents begin or
        end. A word counts in the passage in which it begins, and that passage ends after it.
        """
        heads = sorted([head for number in leading for head in self._occurrences(number, text, first, last)])
        others = [number for number in range(len(self._weights)) if number not in leading]
        excluded = sorted([m.start() for term in self._terms.without for m in term.pattern.finditer(text, first)])
        borders = [first, *edges[bisect_right(edges, first) : bisect_left(edges, last)], last]
        position = 0
        while position < len(heads):
            border = bisect_right(borders, heads[position][0])
            start, stop = _passage_around(heads[position][0], text, borders[border - 1], borders[border])
            after = bisect_left(heads, (stop,), position)
            inside, position = heads[position:after], after
            for number in others:
                inside += self._occurrences(number, text, start, stop)
            words, present = self._score_words(inside)
            most = words + _BONUS * sum([self._weights[number] for number in present])
            is_excluded = bisect_left(excluded, start) < bisect_left(excluded, stop)
            if round(most, _DIGITS) >= least and not is_excluded and self._required <= present:
                score = words + self._score_proximity(sorted(inside))
                yield Scored(start, max(stop, *[end for _, end, _ in inside]), round(score, _DIGITS))

    def _occurrences(self, number: int, text: str, start: int, stop: int) -> list[Occurrence]:
        """The occurrences of a term that begin at characters [start, stop)."""
        term, end = self._terms.scoring[number], stop + self.reach
        first = text.find(term.needle, start, end)  # in most passages, a tenth of the time of a pattern
        if first < 0:
            return []
        matches = term.pattern.finditer(text, start if term.query.latest else first, end)
        return [(*match.span(), number) for match in matches if match.start() < stop]

    def _score_words(self, inside: list[Occurrence]) -> tuple[float, set[int]]:
        """The score of a passage with these occurrences, without the bonus, and the numbers of its terms."""
        numbers = [number for _, _, number in inside]
        present = {*numbers}
        return sum([self._scores[number][min(numbers.count(number), _MOST_COUNTED)] for number in present]), present

    def _score_proximity(self, inside: list[Occurrence]) -> float:
        """The bonus of a passage with these occurrences, which come in order."""
        nearest: dict[int, int] = {}
        """For each term next to another one, the fewest characters between the beginnings of the two."""
        for (offset, _, number), (next_offset, _, next_number) in pairwise(inside):
            if number != next_number:
                for item in (number, next_number):
                    nearest[item] = min(nearest.get(item, next_offset - offset), next_offset - offset)
        return _BONUS * sum([self._weights[number] / (1 + gap / _NEAR_CHARACTERS) for number, gap in nearest.items()])


def _passage_around(offset: int, text: str, first: int, last: int) -> tuple[int, int]:
    """The passage with the character at `offset`, in text[first:last], a document. Each `PASSAGE_CHARACTERS` of it make
    a passage; it begins with the first line that begins in them, if one does."""
    number = (offset - first) // PASSAGE_CHARACTERS
    start = _passage_start(number, text, first, last)
    if offset < start:
        return _passage_start(number - 1, text, first, last), start
    return start, _passage_start(number + 1, text, first, last)


def _passage_start(number: int, text: str, first: int, last: int) -> int:
    start = first + number * PASSAGE_CHARACTERS
    newline = text.find("\n", start - 1, min(start + PASSAGE_CHARACTERS - 1, last)) if number else -1
    return min(newline + 1 if newline >= 0 else start, last)
