"""Find the passages of a text that best match some words, best first: `Monocontext.search`.

Search filters say which frames may hold which words, and how rare each word is. The frames that may hold the heaviest
words are read first, in parallel; among these, the frames in which the words occur often. Reading ends when no unread
frame can hold one of the best passages, or when the budget is spent.
"""

from __future__ import annotations

import heapq
import math
import time
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import chain, islice
from typing import NamedTuple, Protocol

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.format.filters.query import All, Any, FrequencyQuery
from monocontext.format.filters.words import LEVELS
from monocontext.text.search.scoring import Scorer, most_score, weigh
from monocontext.text.search.terms import Term, Terms, parse
from monocontext.text.source import Span
from monocontext.text.windows import Window

MOST_BYTES = 64 << 20
"""The text that a search looks at by default: about 250 frames."""
_FEW_FRAMES = 8
"""A word in at most this many frames is rare, however often it occurs there."""
_FIRST_FRAMES = 24
"""Frames of the first wave: 6 MB of text. Each later wave is twice as large."""
_MOST_FRAMES = 256
_ALIKE = 0.6
"""A wave takes frames that may score at least this share of the best one. After it, the others may be ruled out."""

_PASSAGE_CHARACTERS = 440
"""The average length of a passage in characters."""
_PASSAGES = (1.3, 4, 11, 30, 120)
"""How many passages of a frame hold a word that occurs in the frame `LEVELS[0]` times or more, and so on: means over 64
MB each of code, prose and logs."""
_SHARE_OF_SHORT = 0.02
"""The assumed share of passages that hold a word unknown to the filters."""
_SMALL = 8 * RAW_FRAME_BYTES
"""A text of at most this many characters and without filters is read to learn how rare words are."""

_Holding = dict[Term, Candidates | None]
"""The frames that may hold each word; None if no filter says."""
_Least = Callable[[], tuple[float, int]]
"""The least score among the best, below 0 while there are too few of them, and the character where that passage
begins."""


class DocumentPlaces(Protocol):
    """Maps the characters of a text to its documents."""

    @property
    def count(self) -> int: ...

    def at(self, character: int) -> Document | None: ...

    def records(self) -> Iterator[Document]: ...

    def edges(self, start: int, stop: int) -> Iterator[int]: ...


class _Passage(NamedTuple):
    start: int
    """The first character of the passage in the text."""
    stop: int
    line: int
    """The number of the first line in the whole text, from 1."""
    document: str | None
    """The name of its document; None between documents, and in a text without documents."""
    score: float
    text: str


class Passage(_Passage):
    """A few lines of the text. As a tuple it is `(start, stop, line, document, score, text)`."""

    document_line: int | None = None
    """The number of the first line in its document, from 1; None without a document."""

    @property
    def place(self) -> str:
        """The place to open in an editor: `DOCUMENT:LINE`, or the line of a text without documents."""
        return f"{self.document}:{self.document_line}" if self.document is not None else str(self.line)


class Passages(list[Passage]):
    """Passages, best first, and what was left unread. Prints one passage a line."""

    unread_frames = 0
    """The number of unread frames that might hold a better passage."""
    note = ""
    """Why frames were left unread; empty if none were."""

    def __str__(self) -> str:
        rows = [f"{one.place}: {' '.join(one.text.split())}" for one in self]
        return "\n".join([*rows, *([f"[{self.note}]"] if self.note else [])])


@dataclass(slots=True)
class _Plan:
    """The frames to look at, and the order."""

    weights: dict[Term, float]
    frames: list[tuple[float, int]]
    """The highest possible score of each frame, and the number of the frame; the most promising come first."""
    candidates: Candidates | None
    """The frames; None if there are none."""
    rest: float | None
    """The highest possible score of the other frames, which are read in the order of the text; None if there are
    none."""


@dataclass(frozen=True, slots=True)
class _Wave:
    """Windows to look at together."""

    windows: Iterator[Window]
    left: int
    """The number of frames that are left out before this wave; 1 stands for any number."""
    most: float
    """The highest possible score of one of these frames."""
    in_order: bool = False
    """Whether the wave follows the order of the text."""


def search(
    span: Span,
    query: str,
    k: int,
    max_bytes: int | None,
    max_seconds: float | None,
    *,
    documents: DocumentPlaces | None = None,
    per_document: bool = False,
    between: bool = True,
) -> Passages:
    """The best `k` passages, with `per_document` one of each document, with `between` also lines between documents."""
    if per_document and (documents is None or not documents.count):
        raise ValueError("per_document= needs a text with documents, and this one has none")
    terms = parse(query)
    budget = _Budget(MOST_BYTES if max_bytes is None else max_bytes, max_seconds)
    plan = _plan(span, terms, may_look=budget.left_bytes >= _SMALL)
    best: list[tuple[float, int, Passage]] = []
    scorer, unread, in_order = Scorer(terms, plan.weights), 0, False
    places = _Places(documents, terms.documents, between)
    seen: set[int] = set()

    def least() -> tuple[float, int]:
        return (best[0][0], span.start - best[0][1]) if len(best) == k else (-1.0, 0)

    for wave in _waves(span, plan, budget, least):
        if len(best) == k and wave.most < best[0][0]:
            break
        if budget.is_spent:
            unread, in_order = wave.left, wave.in_order
            break
        in_order = wave.in_order
        for window in wave.windows:
            if window.start in seen:
                continue
            if in_order:
                if len(best) == k and (wave.most, span.start - window.start) < best[0][:2]:
                    break
                if budget.is_spent:
                    unread = 1
                    break
            seen.add(window.start)
            _add_passages(best, k, scorer, window, span, places, per_document)
            budget.spend(len(window.data))
    found = _finish(span, best, unread, in_order)
    found[:] = [places.name(one) for one in found]
    return found


def scan(span: Span, queries: Sequence[str], k: int, *, true_weights: bool = False) -> list[Passages]:
    """The results of `search` for several queries without a budget, from one look at every passage, for comparison.

    `true_weights`: as if filters knew how many passages hold each word (one more look for each query).
    """
    terms = [parse(query) for query in queries]
    scorers = [Scorer(one, _true_weights(span, one) if true_weights else _plan(span, one).weights) for one in terms]
    best: list[list[tuple[float, int, Passage]]] = [[] for _ in queries]
    for window in span.windows(eager=True):
        for some, scorer in zip(best, scorers, strict=True):
            _add_passages(some, k, scorer, window, span, _Places(None, ()), False, everything=True)
    return [_finish(span, some, 0, False) for some in best]


def _finish(span: Span, best: list[tuple[float, int, Passage]], unread: int, in_order: bool) -> Passages:
    found = Passages(one._replace(line=span.line_of(one.start) + 1) for *_, one in sorted(best, reverse=True))
    found.unread_frames = unread
    if unread:
        left = "the text after it, which no search filters rule out" if in_order else f"{unread:,} frames"
        found.note = f"the budget ended before {left}: max_bytes= and max_seconds= allow more"
    return found


def _plan(span: Span, terms: Terms, may_look: bool = True) -> _Plan:
    """Ask the filters for all words at once (1 wave of GETs), then how often each occurs (1 more). With `may_look`, a
    small text without filters is read instead."""
    scoring = terms.scoring
    every = terms.any_of
    weights = _weights(span, terms)
    if not weights:
        is_worth_it = may_look and len(scoring) > 1 and len(span) <= _SMALL
        weights = _true_weights(span, terms) if is_worth_it else dict.fromkeys(scoring, 1.0)
    look_up = span.holding if (union := span.holding(every)) is not None else span.candidates
    union = union or look_up(every)
    holding = {term: look_up(term.query) for term in scoring}
    common = [weights[term] for term, one in holding.items() if one is None]
    if union is None:
        # Very many frames hold one of the words, or the filters cannot say: frames with a rarer word come first.
        rest = most_score(common) if common else most_score([*weights.values()])
        union = None if terms.phrases else next((one for one in holding.values() if one is not None), None)
        if union is None:
            return _Plan(weights, [], None, most_score([*weights.values()]))
        chosen = {number for one in holding.values() if one is not None for number in _numbers(one)}
    else:
        rest, chosen = None, set(_numbers(union))
    masks = dict.fromkeys(sorted(chosen), 0)  # the words that each frame may hold, as bits
    for bit, one in enumerate(holding.values()):
        for number in _numbers(one) if one is not None else chosen:
            if number in masks:
                masks[number] |= 1 << bit
    most = {
        mask: most_score([weight for bit, weight in enumerate(weights.values()) if mask >> bit & 1])
        for mask in {*masks.values()}
    }
    frames = [(most[mask], number) for number, mask in masks.items()]
    frames.sort(key=lambda row: -row[0])
    if len(frames) > _FIRST_FRAMES:
        promise = _promise(span, weights, holding)
        frames.sort(key=lambda row: -promise.get(row[1], 0.0))
    return _Plan(weights, frames, union, rest)


def _weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word: how many passages of the stored text hold it, as far as filters know. Empty if no filter
    says (2 waves of GETs; 1 if few frames may hold any of the words)."""
    told = span.frequency(terms.any_of)
    if told is None:
        return {}
    asked = _often(terms.scoring) if told[1] > _FEW_FRAMES else {}
    if asked:
        span.frequency(Any(tuple(chain.from_iterable(asked.values()))))
    passages = max(span.source.characters / _PASSAGE_CHARACTERS, 1.0)
    weights = {}
    for term in terms.scoring:
        queries = [term.query, *(All((term.query, one)) for one in asked.get(term, ()))]
        frames = [found[1] if (found := span.frequency(query)) else 0 for query in queries]
        oftener = [*frames[1:], 0]
        held = sum(each * (all_ - some) for each, all_, some in zip(_PASSAGES, frames, oftener, strict=False))
        if not term.words:  # a word of two letters, for example: no filter knows it, and it may be common
            held = max(held, _SHARE_OF_SHORT * passages)
        weights[term] = weigh(passages, min(held, passages))
    return weights


def _often(terms: Iterable[Term]) -> dict[Term, list[FrequencyQuery]]:
    """The queries that tell how often each word occurs in frames; none for words that filters do not count."""
    return {term: [FrequencyQuery(term.words, level) for level in range(len(LEVELS))] for term in terms if term.words}


def _true_weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word, from a look at all of a text."""
    scorer = Scorer(replace(terms, words=terms.scoring, phrases=(), without=()), dict.fromkeys(terms.scoring, 1.0))
    holding = Counter[int]()
    for window in span.windows(eager=True):
        for one in scorer.score(window.text):
            holding.update({term for _, term in one.places})
    passages = max(len(span) / _PASSAGE_CHARACTERS, *holding.values(), 1.0)
    return {term: weigh(passages, holding[number]) for number, term in enumerate(terms.scoring)}


def _promise(span: Span, weights: dict[Term, float], holding: _Holding) -> dict[int, float]:
    """The weight of the words that each frame may hold, by how often they occur in it. It rules nothing out. Frames
    unknown to the filters are left out."""
    promise, asked = defaultdict[int, float](float), _often(holding)
    for term, one in holding.items():
        counts = dict.fromkeys(_numbers(one), 1) if one is not None else {}
        for often in asked.get(term, ()):
            held = span.holding(often)
            for number in _numbers(held) if held is not None else ():
                if one is None or number in counts:
                    counts[number] = LEVELS[often.level]
        value = {count: weights[term] * math.log2(1 + count) for count in {*counts.values()}}
        for number, count in counts.items():
            promise[number] += value[count]
    return promise


def _numbers(candidates: Candidates) -> Iterator[int]:
    return (number for first, stop in candidates.runs for number in range(first, stop))


def _waves(span: Span, plan: _Plan, budget: _Budget, least: _Least) -> Iterator[_Wave]:
    left, size = plan.frames, _FIRST_FRAMES
    while left := _that_may_enter(left, plan.candidates, *least()):
        most, room = max(left)[0], max(budget.left_bytes // RAW_FRAME_BYTES, 1)
        wave = set(islice((number for score, number in left if score >= _ALIKE * most), min(size, room)))
        only = copy(plan.candidates)
        assert only is not None
        only.runs = _runs(sorted(wave))
        yield _Wave(span.windows(eager=True, only=only), len(left), most)
        left = [one for one in left if one[1] not in wave]
        size = min(2 * size, _MOST_FRAMES)
    if plan.rest is not None:
        yield _Wave(span.windows(), 1, plan.rest, in_order=True)


def _that_may_enter(
    frames: list[tuple[float, int]], candidates: Candidates | None, least: float, character: int
) -> list[tuple[float, int]]:
    """The frames that may hold a passage that scores more than the least of the best, or scores the same and begins
    before it."""
    if not frames or least < 0:
        return frames
    assert candidates is not None
    last = candidates.number_at(character)
    return [one for one in frames if one[0] > least or (one[0] == least and one[1] <= last)]


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def _add_passages(
    best: list[tuple[float, int, Passage]],
    k: int,
    scorer: Scorer,
    window: Window,
    span: Span,
    places: _Places,
    per_document: bool,
    everything: bool = False,
) -> None:
    """Score the passages of a window. Among equal scores the earlier passage wins. Where a word may cross an end of the
    window, the characters there are read: 1 GET if that frame is not in memory."""
    data, start = window.data, window.start - span.start
    if not everything:
        scorer.least = _bar(best, k, start)
        if isinstance(data, bytes) and scorer.rules_out(data):
            return
    text = inner = window.text
    stop = start + len(inner)
    before = span.read(start - 1, start) if start and scorer.may_begin(inner) else ""
    end = min(stop + scorer.reach, len(span)) if scorer.may_go_on(inner) else stop
    if before or stop < end or isinstance(data, str):
        text, data = f"{before}{inner}{span.read(stop, end) if stop < end else ''}", None
    start -= len(before)
    for one in scorer.score(text, places.cuts(start, len(text)), len(before), stop - start, data):
        at = start + one.start
        if (len(best) == k and (one.score, -at) <= best[0][:2]) or not places.allows(at):
            continue
        if per_document and (held := next((row for row in best if places.share(row[2].start, at)), None)):
            if (one.score, -at) <= held[:2]:
                continue
            best.remove(held)
            heapq.heapify(best)
        found = Passage(at, at + one.stop - one.start, 0, None, one.score, text[one.start : one.stop])
        (heapq.heapreplace if len(best) == k else heapq.heappush)(best, (one.score, -at, found))
        if not everything:
            scorer.least = _bar(best, k, at + 1)


def _bar(best: list[tuple[float, int, Passage]], k: int, start: int) -> float:
    """The least score that a passage from this character on needs to be among the best."""
    if len(best) < k:
        return 0.0
    score, before, _ = best[0]
    return score if start <= -before else math.nextafter(score, math.inf)


class _Places:
    """The documents of the text, and those that a query names."""

    def __init__(self, documents: DocumentPlaces | None, globs: tuple[str, ...], between: bool = True):
        self._documents = documents if documents is not None and documents.count else None
        self._between = between or self._documents is None
        self._starts: list[int] | None = None
        if not globs:
            return
        if self._documents is None:
            raise ValueError("a query with doc: needs a text with documents, and this one has none")
        chosen = [one for one in self._documents.records() if any(fnmatchcase(one.name, glob) for glob in globs)]
        self._starts, self._stops = [one.start for one in chosen], [one.stop for one in chosen]

    def allows(self, character: int) -> bool:
        if self._starts is None:
            return self._between or self._at(character) is not None
        at = bisect_right(self._starts, character) - 1
        return at >= 0 and character < self._stops[at]

    def cuts(self, start: int, characters: int) -> list[int]:
        """The characters of a window at which documents begin and end."""
        if self._documents is None:
            return []
        return [at - start for at in self._documents.edges(start, start + characters)]

    def name(self, passage: Passage) -> Passage:
        """The passage, with its document and the line in it."""
        found = self._at(passage.start)
        if found is None:
            return passage
        named = passage._replace(document=found.name)
        named.document_line = passage.line - found.first_line
        return named

    def share(self, one: int, other: int) -> bool:
        """Whether two characters lie in one document; two documents may have the same name."""
        return self._at(one) == self._at(other)

    def _at(self, character: int) -> Document | None:
        return self._documents.at(character) if self._documents is not None else None


class _Budget:
    def __init__(self, most_bytes: int, most_seconds: float | None):
        self.left_bytes = most_bytes
        self._end = None if most_seconds is None else time.monotonic() + most_seconds

    def spend(self, size: int) -> None:
        self.left_bytes -= size

    @property
    def is_spent(self) -> bool:
        return self.left_bytes <= 0 or (self._end is not None and time.monotonic() > self._end)
