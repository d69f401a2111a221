"""Cut a text into passages of a few lines, and score them against a query by BM25 with a bonus for proximity.

All passages have about the same length, so length does not count (b is 0). BM25: Robertson and Zaragoza, "The
Probabilistic Relevance Framework", 2009. The caller says how rare a word is.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, pairwise, repeat

from monocontext.engine.scan import find
from monocontext.text.search.terms import Term, Terms, fold, fold_utf8

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
_PASSAGE = re.compile(
    rf"(?s:.{{{PASSAGE_CHARACTERS}}})(?:[^\n]{{0,{PASSAGE_CHARACTERS - 1}}}\n|[^\n]{{{PASSAGE_CHARACTERS}}})|(?s:.+)"
)
"""One passage, in text in which no document ends."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A passage of a window, with its score."""

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
    return weight * count * (_K1 + 1) / (count + _K1)


class Scorer:
    """Scores the passages of one text after another."""

    def __init__(self, terms: Terms, weights: dict[Term, float]):
        self._terms = terms
        self._weights = [weights[term] for term in terms.scoring]
        self._order = sorted(range(len(self._weights)), key=lambda number: -self._weights[number])
        """The numbers of the terms, the heaviest first."""
        self._scores = [[_word_score(weight, n) for n in range(_MOST_COUNTED + 1)] for weight in self._weights]
        """The scores of each term by the number of its occurrences."""
        self._required = frozenset(range(len(terms.phrases)))
        self.has_phrases = any(" " in term.text for term in (*terms.phrases, *terms.without))
        """Whether a term may go on in the next line."""
        self.reach = 32 + 2 * max(len(term.text) for term in (*terms.scoring, *terms.without))
        """The characters after a text in which a term that begins in it may end."""
        everything = fold("".join(term.text for term in (*terms.scoring, *terms.without)))
        self._is_plain = all(letter.isascii() or letter.lower() == letter.upper() for letter in everything)
        """Whether all terms are of ASCII and of letters without case."""
        self._has_case = everything.lower() != everything.upper()

    def fold(self, data: bytes) -> bytes:
        """The text `data` as folded UTF-8 of as many characters, in which the terms are found."""
        if not self._has_case:
            return data
        if not self._is_plain:
            return fold(str(data, "utf-8", "surrogatepass")).encode("utf-8", "surrogatepass")
        return fold_utf8(data)

    def score(
        self,
        utf8: bytes,
        cuts: Sequence[int] = (),
        least: float = 0.0,
        last: int | None = None,
        follows_word: Callable[[], bool] = lambda: False,
    ) -> Iterator[Scored]:
        """The passages of a folded text that score at least `least`, and maybe others, in order.

        A passage also ends at each of `cuts`, where documents begin or end, and no passage begins from `last` on. A
        word counts in the passage in which it begins, and that passage's text contains all of it. `follows_word` tells
        whether the text begins inside a word.
        """
        terms, leading = self._terms.scoring, self._leading(least)
        beginnings: list[tuple[int, int]] = []
        for number in leading:
            beginnings += zip(_beginnings(utf8, terms[number]), repeat(number))
        if not beginnings:
            return
        beginnings.sort()
        folded, offsets = _decode(utf8, [offset for offset, _ in beginnings])
        last = len(folded) if last is None else last
        everything = (*terms, *self._terms.without)
        is_cut = any(term.is_word and term.pattern.match(folded) for term in everything) and follows_word()
        heads = sorted(
            (*found.span(), number)
            for offset, (_, number) in zip(offsets, beginnings, strict=True)
            if offset < last and (offset or not (is_cut and terms[number].is_word))
            if (found := terms[number].pattern.match(folded, offset))
        )
        if not heads:
            return
        excluded = sorted(
            start for term in self._terms.without for start, _ in _ranges(term, folded, 0, last, int(is_cut))
        )
        others = [(number, terms[number]) for number in self._order if number not in leading]
        # No passage has more than twice the usual characters, so the last head's passage ends before this.
        ends = [0, *_passage_ends(folded, cuts, min(last, heads[-1][0] + 2 * PASSAGE_CHARACTERS))]
        position = 0
        while position < len(heads):
            end = bisect_right(ends, heads[position][0])
            start, stop = ends[end - 1], ends[end]
            after = bisect_left(heads, (stop,), position)
            inside, position = heads[position:after], after
            if excluded and bisect_left(excluded, start) < bisect_left(excluded, stop):
                continue
            if self._required and not self._required <= {number for *_, number in inside}:
                continue
            for number, term in others:
                inside += [(*span, number) for span in _ranges(term, folded, start, stop, int(is_cut))]
            inside.sort()
            places = [(offset, number) for offset, _, number in inside]
            if (score := self._add_up(places, least)) is not None:
                yield Scored(start, max(stop, inside[-1][1]), score, places)

    def _leading(self, least: float) -> list[int]:
        """The numbers of some terms, of which every passage that scores `least` has one: the phrases, or the heaviest
        words. The others are looked for only in passages with one of these."""
        if self._required:
            return [*self._required]
        for count in range(1, len(self._order)):
            if most_score([self._weights[number] for number in self._order[count:]]) < least:
                return self._order[:count]
        return self._order

    def _add_up(self, places: list[tuple[int, int]], least: float) -> float | None:
        """The score of a passage with terms at these characters; None if it is certainly less than `least`."""
        counts = dict[int, int]()
        for _, term in places:
            counts[term] = counts.get(term, 0) + 1
        score = sum([self._scores[term][min(count, _MOST_COUNTED)] for term, count in counts.items()])
        if len(counts) < 2:
            return score if score >= least else None
        if score + _BONUS * sum(self._weights[term] for term in counts) < least:
            return None
        nearest: dict[int, int] = {}
        for (offset, term), (next_at, next_term) in pairwise(places):
            if term != next_term:
                for item in (term, next_term):
                    nearest[item] = min(nearest.get(item, next_at - offset), next_at - offset)
        return score + _BONUS * sum(self._weights[term] / (1 + gap / _NEAR_CHARACTERS) for term, gap in nearest.items())


def _beginnings(utf8: bytes, term: Term) -> Iterable[int]:
    """The bytes of folded UTF-8 at which a term may begin."""
    needle = term.beginning.encode("utf-8", "surrogatepass")
    offset = find(utf8, needle)  # fast where the term is rare
    if offset >= 0 and term.is_word:
        return map(re.Match.start, term.beginning_utf8.finditer(utf8, offset))
    offsets = []
    while offset >= 0:
        offsets.append(offset)
        offset = utf8.find(needle, offset + 1)
    return offsets


def _decode(utf8: bytes, offsets: Sequence[int]) -> tuple[str, Sequence[int]]:
    """The text, and the characters at rising byte offsets."""
    if utf8.isascii():
        return str(utf8, "ascii"), offsets
    parts = [str(utf8[start:stop], "utf-8", "surrogatepass") for start, stop in pairwise([0, *offsets, len(utf8)])]
    return "".join(parts), [*accumulate(map(len, parts[:-1]))]


def _ranges(term: Term, folded: str, start: int, stop: int, first_word: int) -> list[tuple[int, int]]:
    """The ranges of a term that begin in a part of a folded text; those of a word from `first_word` on."""
    spans, find, match, beginning = list[tuple[int, int]](), folded.find, term.pattern.match, term.beginning
    if start < first_word and term.is_word:
        start = first_word
    stop += len(beginning) - 1
    while (offset := find(beginning, start, stop)) >= 0:
        if hit := match(folded, offset):
            spans.append(hit.span())
        start = offset + 1
    return spans


def _passage_ends(text: str, cuts: Sequence[int], last: int) -> Iterator[int]:
    """The ends of the passages in the first `last` characters of a text."""
    ends = [0, *cuts[bisect_right(cuts, 0) : bisect_left(cuts, last)], last]
    return chain.from_iterable(map(re.Match.end, _PASSAGE.finditer(text, *part)) for part in pairwise(ends))
