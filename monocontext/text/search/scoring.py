"""Count the terms of a query in the passages of a text, and score the passages by BM25.

All passages of a frame are scored at once, in arrays with a row for each term and a column for each passage. Passages
have about the same length, so length does not count (b is 0). Words that are near each other add a bonus. BM25:
Robertson and Zaragoza, "The Probabilistic Relevance Framework", 2009.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from monocontext.engine.scan import find
from monocontext.text.search.terms import Terms

PASSAGE_CHARACTERS = 640  # the most characters of a passage
_PASSAGE = re.compile(
    rf"(?s:.{{1,{PASSAGE_CHARACTERS}}}+\Z|.{{0,{PASSAGE_CHARACTERS - 1}}}\n|.{{{PASSAGE_CHARACTERS}}})"
)
"""Matches the next passage of a document: its whole rest, else as many whole lines as fit, else a part of a line."""
_K1 = 0.5  # with a small k1, a word that occurs often in a passage counts little more than once
_MOST_COUNTED = 3
"""The most occurrences of a word that count in a passage. So a common word soon has passages that none can exceed."""
_NEAR_CHARACTERS = 80  # at this distance, two words get half of the bonus
_BONUS = 0.3  # the bonus for adjacent words, as a share of their weights
_DIGITS = 9  # scores are rounded, so that equal ones are equal however they were added up

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Integers = NDArray[np.intp]


def cut_passages(text: str, edges: Sequence[int]) -> list[int]:
    """The offsets at which the passages of text[edges[0]:edges[-1]] begin, and its end. No passage crosses an edge."""
    ends = ([match.end() for match in _PASSAGE.finditer(text, *part)] for part in pairwise(edges))
    return [edges[0], *chain.from_iterable(ends)]


def weigh(passages: float, holding: Floats | Integers) -> Floats:
    """The inverse document frequencies of terms, each of which `holding` of all `passages` contain."""
    return np.log1p((passages - holding + 0.5) / (holding + 0.5))


class Scorer:
    """Scores the passages of texts in which ASCII letters are in lower case."""

    def __init__(self, terms: Terms):
        self.weights: Floats = np.ones(len(terms.scoring))
        """The weights of the scoring terms. The caller sets them when it knows how rare the terms are."""
        self._phrases = terms.phrases
        self._terms = (*terms.scoring, *terms.without)
        self.crosses_lines = any(" " in term.text for term in self._terms)
        """Whether a match of a term may continue in the next line."""
        self.reach = 2 * max(len(term.text) for term in self._terms) + 32  # with room for an ending, or for spaces
        """The characters after a text in which a term that begins in it may end."""

    def may_hold(self, utf8: bytes) -> Flags:
        """For each term, whether a text may hold it. Much faster than to search for the term."""
        return np.array([find(utf8, term.needle) >= 0 for term in self._terms])

    def begins_with_term(self, text: str) -> bool:
        """Whether a term matches at the first character of a text."""
        return any(term.pattern.match(text) for term in self._terms)

    def upper_bounds(self, levels: Integers | Flags) -> Floats:
        """For each column of `levels`, a score that no passage there exceeds. A level is 0 if its term cannot occur."""
        held = levels[: len(self.weights)] > 0
        has_neighbour = held & (held.sum(0) > 1)
        return self._sum(held * _MOST_COUNTED, np.where(has_neighbour, 0.0, np.inf))

    def score(self, text: str, cuts: Sequence[int], may_hold: Flags) -> Floats:
        """The scores of the passages between `cuts`; 0 for passages that lack a phrase, or have an excluded term.

        A term counts in the passage in which it begins. `text` continues after the last passage if a term does.
        """
        occurrences, gaps = self.count(text, cuts, may_hold)
        scoring, without = np.split(occurrences, [len(self.weights)])
        return self._sum(scoring, gaps[: len(scoring)]) * ~without.any(0)

    def count(self, text: str, cuts: Sequence[int], may_hold: Flags) -> tuple[Integers, Floats]:
        """By term and passage: how many occurrences begin there, and the least distance in characters between one of
        them and the next occurrence of another term on either side; infinite if there is none."""
        starts = [
            [match.start() for match in term.pattern.finditer(text, cuts[0])] if is_held else []
            for term, is_held in zip(self._terms, may_hold, strict=True)
        ]
        offsets = np.fromiter(chain.from_iterable(starts), np.intp)
        order = np.argsort(offsets, kind="stable")
        offsets, terms = offsets[order], np.repeat(np.arange(len(starts)), [*map(len, starts)])[order]
        columns = np.searchsorted(cuts, offsets, "right") - 1
        shape = len(starts), len(cuts)  # the last column is for terms that begin after the passages
        occurrences, gaps = np.zeros(shape, np.intp), np.full(shape, np.inf)
        np.add.at(occurrences, (terms, columns), 1)
        [firsts] = np.nonzero((terms[1:] != terms[:-1]) & (columns[1:] == columns[:-1]))  # the first of two neighbours
        for neighbours in (firsts, firsts + 1):
            np.minimum.at(gaps, (terms[neighbours], columns[neighbours]), np.diff(offsets)[firsts])
        return occurrences[:, :-1], gaps[:, :-1]

    def _sum(self, occurrences: Integers, gaps: Floats) -> Floats:
        """The scores of passages, given `count` of the scoring terms; 0 for passages that lack a phrase."""
        counted = np.minimum(occurrences, _MOST_COUNTED)
        scores = counted * (_K1 + 1) / (counted + _K1) + _BONUS / (1 + gaps / _NEAR_CHARACTERS)
        return np.round(self.weights @ scores, _DIGITS) * occurrences[: self._phrases].all(0)
