"""Choose the frames to read for a search by words, and their order, from search filters.

Filters tell which words each frame may hold, and how often. A word is the heavier the fewer passages hold it.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, pairwise

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.filters.query import All, Any, FrequencyQuery
from monocontext.format.filters.words import LEVELS
from monocontext.text.search.scoring import Scorer, most_score, weigh
from monocontext.text.search.terms import Term, Terms
from monocontext.text.source import Span

FIRST_FRAMES = 24
"""At most this many frames are read at once at first (6 MB of text), so the order of fewer does not matter."""
SMALL = 8 * RAW_FRAME_BYTES
"""A text of at most this many characters and without filters is read to learn how rare words are."""
_FEW_FRAMES = 8
"""A word in at most this many frames is rare, however often it occurs there."""
_PASSAGE_CHARACTERS = 440
"""The average length of a passage in characters."""
_PASSAGES = (1.3, 4, 11, 30, 120)
"""How many passages of a frame hold a word that occurs in the frame `LEVELS[0]` times or more, and so on: means over 64
MB each of code, prose and logs."""
_SHARE_OF_SHORT = 0.02
"""The assumed share of passages that hold a word unknown to the filters."""

_Holding = dict[Term, Candidates | None]
"""The frames that may hold each word; None if no filter says."""


@dataclass(slots=True)
class FrameOrder:
    """The frames to read, and their order."""

    weights: dict[Term, float]
    """The weight of each word in the score of a passage."""
    frames: list[tuple[float, int]]
    """The highest possible score of each frame, and the number of the frame; the most promising come first."""
    candidates: Candidates | None
    """The frames; None if there are none."""
    rest: float | None
    """The highest possible score in all other frames, which are read in the order of the text; None if there are
    none."""


def order_frames(span: Span, terms: Terms, may_read: bool = True) -> FrameOrder:
    """Ask the filters about all words at once (1 wave of GETs), then how often each occurs (1 more). With `may_read`, a
    small text without filters is read instead."""
    weights = estimate_weights(span, terms)
    if not weights:
        is_worth_it = may_read and len(terms.scoring) > 1 and len(span) <= SMALL
        weights = _count_weights(span, terms) if is_worth_it else dict.fromkeys(terms.scoring, 1.0)
    look_up = span.holding
    union = look_up(terms.any_of)
    if union is None:
        look_up = span.candidates
        union = look_up(terms.any_of)
    holding = {term: look_up(term.query) for term in terms.scoring}
    rest: float | None = None
    if union is not None:
        chosen = set(_numbers(union))
    else:
        # Very many frames hold one of the words, or the filters cannot say: frames with a rarer word come first.
        union = None if terms.phrases else next((one for one in holding.values() if one is not None), None)
        if union is None:
            return FrameOrder(weights, [], None, most_score([*weights.values()]))
        common = [weights[term] for term, one in holding.items() if one is None]
        rest = most_score(common or [*weights.values()])
        chosen = {number for one in holding.values() if one is not None for number in _numbers(one)}
    most = _most_scores(sorted(chosen), weights, holding)
    frames = sorted(((score, number) for number, score in most.items()), key=lambda row: -row[0])
    if len(frames) > FIRST_FRAMES:
        promise = _promise(span, weights, holding)
        frames.sort(key=lambda row: -promise.get(row[1], 0.0))
    return FrameOrder(weights, frames, union, rest)


def _most_scores(chosen: list[int], weights: dict[Term, float], holding: _Holding) -> dict[int, float]:
    """The highest possible score of a passage in each of these frames."""
    # The words that each frame may hold, as bits. There are few different masks, so few scores to compute.
    masks = dict.fromkeys(chosen, 0)
    for bit, candidates in enumerate(holding.values()):
        for number in _numbers(candidates) if candidates is not None else chosen:
            if number in masks:
                masks[number] |= 1 << bit
    scores = {
        mask: most_score([weight for bit, weight in enumerate(weights.values()) if mask >> bit & 1])
        for mask in {*masks.values()}
    }
    return {number: scores[mask] for number, mask in masks.items()}


def estimate_weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word, from the number of passages of the stored text that hold it, as far as filters know.
    Empty if they do not (2 waves of GETs; 1 if few frames may hold any of the words)."""
    known = span.frequency(terms.any_of)
    if known is None:
        return {}
    asked = _often(terms.scoring) if known[1] > _FEW_FRAMES else {}
    if asked:
        span.frequency(Any(tuple(chain.from_iterable(asked.values()))))
    passages = max(span.source.characters / _PASSAGE_CHARACTERS, 1.0)
    weights = {}
    for term in terms.scoring:
        queries = [term.query, *(All((term.query, often)) for often in asked.get(term, ()))]
        frames = [found[1] if (found := span.frequency(query)) else 0 for query in queries]
        held = sum(
            each * (at_least - more) for each, (at_least, more) in zip(_PASSAGES, pairwise([*frames, 0]), strict=False)
        )
        if not term.words:  # a word of two letters, for example: no filter knows it, and it may be common
            held = max(held, _SHARE_OF_SHORT * passages)
        weights[term] = weigh(passages, min(held, passages))
    return weights


def _often(terms: Iterable[Term]) -> dict[Term, list[FrequencyQuery]]:
    """The queries that tell how often each word occurs in frames; none for words that filters do not count."""
    return {term: [FrequencyQuery(term.words, level) for level in range(len(LEVELS))] for term in terms if term.words}


def _count_weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word, from all of a text."""
    scorer = Scorer(replace(terms, words=terms.scoring, phrases=(), without=()), dict.fromkeys(terms.scoring, 1.0))
    holding = Counter[int]()
    for window in span.windows(eager=True):
        for scored in scorer.score(window.text):
            holding.update({term for _, term in scored.places})
    passages = max(len(span) / _PASSAGE_CHARACTERS, *holding.values(), 1.0)
    return {term: weigh(passages, holding[number]) for number, term in enumerate(terms.scoring)}


def _promise(span: Span, weights: dict[Term, float], holding: _Holding) -> dict[int, float]:
    """A score for the order of the frames: the weight of the words that each may hold, by how often they occur in it.
    Frames unknown to the filters have none."""
    promise, asked = defaultdict[int, float](float), _often(holding)
    for term, candidates in holding.items():
        counts = dict.fromkeys(_numbers(candidates), 1) if candidates is not None else {}
        for often in asked.get(term, ()):
            held = span.holding(often)
            for number in _numbers(held) if held is not None else ():
                if candidates is None or number in counts:
                    counts[number] = LEVELS[often.level]
        value = {count: weights[term] * math.log2(1 + count) for count in {*counts.values()}}
        for number, count in counts.items():
            promise[number] += value[count]
    return promise


def _numbers(candidates: Candidates) -> Iterator[int]:
    return (number for first, stop in candidates.runs for number in range(first, stop))
