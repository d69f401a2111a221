"""Find the passages of a text that best match some words, best first: `Monocontext.search`.

Search filters say which frames may hold which words, and how rare each word is. The frames in which the rarest words
occur most often are read first, in parallel. Reading ends when no unread frame can hold one of the best passages, or
when the budget is spent. A search whose budget cannot decide ends with the first wave that does not raise the lowest
score among the best.
"""

from __future__ import annotations

import math
import re
import time
from collections import Counter
from copy import copy
from itertools import chain, islice, pairwise, starmap
from typing import TYPE_CHECKING, Any

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.format.filters.grams import LEVELS
from monocontext.format.filters.query import All, FrequencyQuery, Query
from monocontext.globs import Globs
from monocontext.records import dataclass
from monocontext.text.search.passages import Passage, Passages
from monocontext.text.search.scoring import Scorer, most_score, weigh
from monocontext.text.search.terms import LETTER, Term, Terms, parse
from monocontext.text.source import Span
from monocontext.text.windows import Window

if TYPE_CHECKING:
    from monocontext.text.documents.by_name import Documents

MOST_BYTES = 64 << 20
"""The text that a search looks at by default: about 250 frames."""
FIRST_FRAMES = 24
"""The most frames of the first wave (6 MB of text), and of each where the budget does not allow all frames. Else the
next wave has twice as many."""
_MOST_FRAMES = 256
"""The most frames of one wave."""
_ALIKE = 0.6
"""A wave takes frames that may score at least this share of the best one. After it, the others may be ruled out."""
_SMALL = 8 * RAW_FRAME_BYTES
"""A text of at most this many characters and without filters is read to learn how rare words are."""
_PASSAGE_CHARACTERS = 440
"""The average length of a passage in characters."""
_PASSAGES = (1.3, 4, 11, 30, 120)
"""How many passages of a frame hold a word that occurs in the frame `LEVELS[0]` times or more, and so on: means over 64
MB each of code, prose and logs."""
_PRESENCE = 3
"""In the order of frames, a word of weight 1 counts as much as 2 ** 3 times the occurrences of a word. Of 2 to 20, this
found the most of the best passages in 24 to 170 frames."""
_GAINS = [math.log2(level / before) for before, level in pairwise((1, *LEVELS))]
"""What each level of occurrences of a word adds there: the logarithm to base 2 of how many times more it is."""
_SHARE_OF_UNKNOWN = 0.02
"""The assumed share of passages that hold a word, at least, if the filters do not tell its frames."""

Rank = tuple[float, int]
"""The score of a passage and minus its first character: of equal scores, the earlier passage is better."""


def search(
    span: Span,
    query: str,
    k: int,
    max_bytes: int | None,
    max_seconds: float | None,
    *,
    documents: Documents[Any] | None = None,
    per_document: bool = False,
    between: bool = True,
) -> Passages:
    """The best `k` passages.

    `per_document` takes only the best of each document, and `between` also searches the lines between documents.
    Raises `ValueError` for an invalid query.
    """
    if documents is not None and not documents.count:
        documents = None
    if per_document and documents is None:
        raise ValueError("per_document= needs a text with documents, and this one has none")
    terms = parse(query)
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    budget = _Budget(MOST_BYTES if max_bytes is None else max_bytes, end)
    order = _Order(span, terms, may_read=budget.left_bytes >= _SMALL)
    chosen = _Chosen(documents, terms.documents, between)
    best = _BestPassages(span, Scorer(terms, order.weights), k, chosen, per_document)
    if unread := _read_frames(span, order, best, budget):
        return best.finish(f"{unread:,} frames", unread)
    if not _read_rest(span, order.rest, best, budget):
        return best.finish("the text after it, which no search filters rule out", 1)
    return best.finish()


@dataclass(slots=True)
class _Budget:
    """What a search may still take."""

    left_bytes: int
    """Bytes of text."""
    end: float
    """The time on the monotonic clock at which it ends."""

    @property
    def is_spent(self) -> bool:
        return self.left_bytes <= 0 or time.monotonic() > self.end


def _read_frames(span: Span, order: _Order, best: _BestPassages, budget: _Budget) -> int:
    """Read frames in waves until no other can hold one of the best passages. Returns how many might, where the budget
    ends or cannot decide."""
    most_frames, lowest, is_vain = FIRST_FRAMES, 0.0, False
    while remaining := order.left(best.worst, span.start):
        is_short = len(remaining) * RAW_FRAME_BYTES > budget.left_bytes
        if (is_vain and is_short) or budget.is_spent:
            return len(remaining)
        affordable = max(budget.left_bytes // RAW_FRAME_BYTES, 1)
        least = _ALIKE * max(remaining.values())
        promising = (number for number, most in remaining.items() if most >= least)
        wave = set(islice(promising, min(most_frames, affordable)))
        for window in span.windows(eager=True, only=order.only(wave)):
            budget.left_bytes -= best.add_window(window)
        order.frames = {number: most for number, most in remaining.items() if number not in wave}
        is_vain = len(wave) >= FIRST_FRAMES and 0 < best.lowest_score <= lowest
        lowest = best.lowest_score
        most_frames = FIRST_FRAMES if is_short else min(2 * most_frames, _MOST_FRAMES)
    return 0


def _read_rest(span: Span, most: float | None, best: _BestPassages, budget: _Budget) -> bool:
    """Read on in the order of the text where passages may score `most`. Returns False if the budget ends before."""
    if most is None or best.rules_out(most, 0):
        return True
    for window in span.windows():
        if best.rules_out(most, window.start - span.start):
            break
        if budget.is_spent:
            return False
        budget.left_bytes -= best.add_window(window)
    return True


# -- how rare the words are, and the order of the frames ---------------------------------------------------------------


class _Order:
    """How rare the words are, and the order in which to read frames, as far as search filters know.

    GETs: the rows of the filters in 1 or 2 waves. With `may_read`, a small text without filters is read.
    """

    frames: dict[int, float]
    """The highest possible score of a passage of each frame, by the frame's number; the most promising come first."""
    rest: float | None = None
    """The highest possible score in all other frames, which are read in text order; None if there are none."""

    def __init__(self, span: Span, terms: Terms, *, may_read: bool):
        queries = {term: _queries(term) for term in terms.scoring}
        span.holding(All(tuple(chain.from_iterable(queries.values()))))  # requests all rows at once
        candidates = {term: [span.holding(query) for query in queries[term]] for term in terms.scoring}
        answers = chain.from_iterable(candidates.values())
        self._candidates = next((answer for answer in answers if answer is not None), None)
        """Any answer of the filters; None if they know none of the words."""
        held = {term: [_numbers(answer) for answer in levels] for term, levels in candidates.items()}
        if self._candidates is not None:
            self.weights = _estimate_weights(len(span), held)
        elif may_read and len(terms.scoring) > 1 and len(span) <= _SMALL:
            self.weights = _count_weights(span, terms)
        else:
            self.weights = dict.fromkeys(terms.scoring, 1.0)
        if terms.phrases:  # a passage has all of them
            known = [frames for term in terms.phrases for frames in held[term][:1] if frames is not None]
            chosen = set.intersection(*known) if known else set()
            unknown = [] if known else [*self.weights.values()]
        else:
            chosen = set[int]().union(*(frames for levels in held.values() for frames in levels if frames))
            unknown = [self.weights[term] for term, levels in held.items() if levels[0] is None]
        if unknown:
            self.rest = most_score(unknown)
        self.frames = _order_frames(chosen, held, self.weights)

    def left(self, worst: Rank | None, start: int) -> dict[int, float]:
        """The frames that may hold a passage that is better than the worst of the best. `start`: the first character of
        the span."""
        if worst is None or not self.frames:
            return self.frames
        assert self._candidates is not None
        least, last = worst[0], self._candidates.number_at(start - worst[1])
        return {number: most for number, most in self.frames.items() if (most, -number) >= (least, -last)}

    def only(self, numbers: set[int]) -> Candidates:
        """Candidates of these frames alone."""
        result = copy(self._candidates)
        assert result is not None
        result.runs = [(number, number + 1) for number in sorted(numbers)]
        return result


def _queries(term: Term) -> list[Query]:
    """The queries for frames that hold a term, and, if filters count it, for those with `LEVELS[0]` of it or more,
    and so on."""
    levels = range(len(LEVELS)) if term.words else ()
    return [term.query, *(All((term.query, FrequencyQuery(term.words, level))) for level in levels)]


def _numbers(candidates: Candidates | None) -> set[int] | None:
    return None if candidates is None else set(chain.from_iterable(starmap(range, candidates.runs)))


def _estimate_weights(characters: int, held: dict[Term, list[set[int] | None]]) -> dict[Term, float]:
    """The weight of each word in a text, by the frames that hold it."""
    passages = max(characters / _PASSAGE_CHARACTERS, 1.0)
    weights = {}
    for term, levels in held.items():
        counts = [len(frames or ()) for frames in levels] + [0]
        exactly = [count - more for count, more in pairwise(counts)]  # the frames of each level that reach no other
        holding = sum(mean * frames for mean, frames in zip(_PASSAGES, exactly, strict=False))
        if levels[0] is None:  # a word of two letters, which no filter knows, or one in too many frames to list
            holding = max(holding, _SHARE_OF_UNKNOWN * passages)
        weights[term] = weigh(passages, max(0.0, min(holding, passages)))
    return weights


def _count_weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word, from all of a text."""
    scorer = Scorer(Terms(terms.scoring, (), (), ()), dict.fromkeys(terms.scoring, 1.0))
    holding = Counter[int]()
    for window in span.windows(eager=True):
        for scored in scorer.score(window.text):
            holding.update(scored.numbers)
    passages = max(len(span) / _PASSAGE_CHARACTERS, *holding.values(), 1.0)
    return {term: weigh(passages, holding[number]) for number, term in enumerate(terms.scoring)}


def _order_frames(
    chosen: set[int], held: dict[Term, list[set[int] | None]], weights: dict[Term, float]
) -> dict[int, float]:
    """The highest possible score of a passage of each chosen frame. Frames that may hold heavier words come first, then
    those in which the words occur more often."""
    word_weights: dict[int, tuple[float, ...]] = dict.fromkeys(sorted(chosen), ())
    promise = dict.fromkeys(word_weights, 0.0)
    for term, (frames, *often) in held.items():
        weight = weights[term]
        for number in chosen if frames is None else chosen & frames:
            word_weights[number] += (weight,)
            promise[number] += _PRESENCE * weight
        for gain, more in zip(_GAINS, often, strict=False):
            for number in chosen & (more or set()):
                promise[number] += gain
    most = {weights: most_score(weights) for weights in set(word_weights.values())}  # many frames hold the same words
    return {number: most[word_weights[number]] for number in sorted(promise, key=lambda number: -promise[number])}


# -- the best passages -------------------------------------------------------------------------------------------------


class _BestPassages:
    """The best `k` passages of the windows so far."""

    worst: Rank | None = None
    """The rank of the last among the best; None while there are fewer than `k`."""

    def __init__(self, span: Span, scorer: Scorer, k: int, chosen: _Chosen, per_document: bool):
        self._span = span
        self._scorer = scorer
        self._k = k
        self._chosen = chosen
        self._per_document = per_document
        self._seen: set[int] = set()
        """The first characters of the windows."""
        self._best: dict[int | None, tuple[Rank, Passage]] = {}
        """The best passages, by their first character; with `per_document`, by the number of their document."""

    @property
    def lowest_score(self) -> float:
        """The score of the worst; 0 while there are fewer than `k`."""
        return self.worst[0] if self.worst else 0.0

    def rules_out(self, score: float, character: int) -> bool:
        """Whether a passage with this score that begins at this character or later cannot be among the best."""
        return self.worst is not None and (score, -character) < self.worst

    def add_window(self, window: Window) -> int:
        """Score the passages of a window, and return how many bytes were looked at: none of a window seen before. Where
        its last line goes on after it, or it may begin inside a word, the characters there are read: 1 GET if that
        frame is not in memory."""
        if window.start in self._seen:
            return 0
        self._seen.add(window.start)
        span, text, start = self._span, window.text, window.start - self._span.start
        size = len(text)
        if self._scorer.has_phrases or not text.endswith("\n"):
            text += span.read(start + size, min(start + size + self._scorer.reach, len(span)))
        least = self.lowest_score
        if self.rules_out(least, start):  # a passage of this score is worse, since it comes later
            least = math.nextafter(least, math.inf)

        def follows_word() -> bool:
            return start > 0 and re.match(LETTER, span.read(start - 1, start)) is not None

        for item in self._scorer.score(text, self._chosen.cuts(start, size), least, size, follows_word):
            self._add(Passage(start + item.start, start + item.stop, 0, None, item.score, text[item.start : item.stop]))
        return len(window.data)

    def _add(self, passage: Passage) -> None:
        """Keep a passage if it is one of the best."""
        rank, document = (passage.score, -passage.start), self._chosen.document_at(passage.start)
        key = passage.start if not self._per_document else document.number if document else None
        if (self.worst and rank <= self.worst) or not self._chosen.allows(document):
            return
        if key in self._best and rank <= self._best[key][0]:
            return
        self._best[key] = rank, passage
        if len(self._best) > self._k:
            del self._best[min(self._best, key=lambda key: self._best[key][0])]
        if len(self._best) == self._k:
            self.worst = min(rank for rank, _ in self._best.values())

    def finish(self, unread: str = "", frames: int = 0) -> Passages:
        """The passages with their lines and documents. `unread`: what was left unread, and how many frames that is."""
        best = sorted(self._best.values(), reverse=True)
        passages = Passages(
            self._chosen.name(passage._replace(line=self._span.line_of(passage.start) + 1)) for _, passage in best
        )
        passages.unread_frames = frames
        passages.note = f"the budget ended before {unread}: max_bytes= and max_seconds= allow more" if unread else ""
        return passages


class _Chosen:
    """The documents of the text, and the choice that a query makes among them."""

    def __init__(self, documents: Documents[Any] | None, globs: tuple[str, ...], between: bool):
        if globs and documents is None:
            raise ValueError("a query with doc: needs a text with documents, and this one has none")
        self._documents = documents
        self._between = (between or documents is None) and not globs
        self._numbers: set[int] | None = None
        """The numbers of the chosen documents; None for all."""
        if documents is not None and globs:
            select = Globs(globs).select
            self._numbers = {document.number for document in documents.records() if select(document.name)}

    def allows(self, document: Document | None) -> bool:
        """Whether a passage may begin in a document, or between documents."""
        if document is None:
            return self._between
        return self._numbers is None or document.number in self._numbers

    def cuts(self, start: int, characters: int) -> list[int]:
        """The characters of a window at which documents begin and end."""
        if self._documents is None:
            return []
        return [edge - start for edge in self._documents.edges(start, start + characters)]

    def name(self, passage: Passage) -> Passage:
        """The passage, with its document and the line in it."""
        document = self.document_at(passage.start)
        if document is None:
            return passage
        named = passage._replace(document=document.name)
        named.document_line = passage.line - document.first_line
        return named

    def document_at(self, character: int) -> Document | None:
        return self._documents.at(character) if self._documents is not None else None
