"""Ask search filters in which frames the terms of a query may occur, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, starmap

import numpy as np

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.grams import LEVELS
from monocontext.format.filters.query import All, FrequencyQuery, Query
from monocontext.text.search.scoring import Floats, Integers, weigh
from monocontext.text.search.terms import Term
from monocontext.text.source import Span

_PASSAGES_BY_LEVEL = np.array((0, 1.3, 4, 11, 30, 120))
"""How many passages of a frame hold a term, by level (`TermFrames.levels`): means over 64 MB of code, prose, logs."""
_SHARE_OF_UNKNOWN = 0.02  # the assumed share of passages that hold a term, if filters do not tell its frames
_GAINS_BY_LEVEL = np.array((0, 0, *np.log2(LEVELS)))  # what a term adds to the rank of a frame, by its level
_PRESENCE = 4
"""What a term of weight 1 adds to the rank of a frame: as much as 2 ** 4 occurrences of a term. Of 2, 3, 4 and 6, 3 and
4 found the most of the best passages in 5 % of 1 GB of prose, for the 12 queries of docs/benchmarks.md."""


class TermFrames:
    """What search filters know of the terms of a query."""

    def __init__(self, span: Span, terms: Sequence[Term]):
        """Ask the filters of a text (GETs: their rows, in 1 to 3 waves)."""
        frequent = [_frequency_queries(term) for term in terms]
        span.all_candidates(All((*(term.query for term in terms), *chain.from_iterable(frequent))))  # gets all rows
        answers = [span.all_candidates(term.query) for term in terms]
        self.known = [candidates for candidates in answers if candidates is not None]
        """The frames of each term that filters know."""
        self.numbers = np.unique(np.concatenate([_numbers(candidates) for candidates in answers]))
        """The frames that may hold a known term, in the order of the text."""
        self.is_known = np.array([candidates is not None for candidates in answers])
        """For each term, whether filters tell its frames: not those of a word of two letters or a very common one."""
        self.levels: Integers = np.stack([self._levels(span, *known) for known in zip(answers, frequent, strict=True)])
        """By term and frame: 0 if the term is not there, 1 if it may be, 2 if it may be there at least `LEVELS[0]`
        times, 3 if at least `LEVELS[1]` times, and so on."""

    def _levels(self, span: Span, candidates: Candidates | None, frequent: list[Query]) -> Integers:
        """The levels of a term in the frames `numbers`, given the candidates and the frequency queries of the term."""
        if candidates is None:
            return np.ones(len(self.numbers), np.intp)
        levels = np.isin(self.numbers, _numbers(candidates)).astype(np.intp)
        for level, query in enumerate(frequent, 2):
            levels[(levels > 0) & np.isin(self.numbers, _numbers(span.all_candidates(query)))] = level
        return levels

    def weigh(self, passages: float) -> Floats:
        """The estimated weights of the terms in a text of `passages` passages."""
        holding = np.where(self.is_known, _PASSAGES_BY_LEVEL[self.levels].sum(1), _SHARE_OF_UNKNOWN * passages)
        return weigh(passages, np.minimum(holding, passages))

    def reading_order(self, weights: Floats) -> Integers:
        """The indices of the frames in `numbers`: first those with heavy terms, or in which terms occur often."""
        ranks = _PRESENCE * weights[:, np.newaxis] * (self.levels > 0) + _GAINS_BY_LEVEL[self.levels]
        return np.argsort(-ranks.sum(0), kind="stable")


def _frequency_queries(term: Term) -> list[Query]:
    """For each of `LEVELS`, the query for frames with a term at least so often; empty if filters do not count it."""
    levels = range(len(LEVELS)) if term.words else ()
    return [All((term.query, FrequencyQuery(term.words, level))) for level in levels]


def _numbers(candidates: Candidates | None) -> Integers:
    """The numbers of the candidate frames; none where filters cannot tell."""
    return np.fromiter(chain.from_iterable(starmap(range, candidates.runs if candidates else ())), np.intp)
