"""Find the passages of a text that best match some words, best first: `Monocontext.search`.

Search filters tell which frames may hold which words, and how rare each word is. The frames in which rare words occur
often are read first, in waves. Reading ends when no unread frame can hold one of the best passages, when the budget is
spent, or, if it cannot suffice, with a wave that does not raise the lowest score among the best.
"""

from __future__ import annotations

import math
import time
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.globs import Globs
from monocontext.records import dataclass, field
from monocontext.text.documents.by_name import Documents
from monocontext.text.search.passages import Passage, Passages
from monocontext.text.search.scoring import PASSAGE_CHARACTERS, Floats, Scorer, cut_passages, weigh
from monocontext.text.search.term_frames import TermFrames
from monocontext.text.search.terms import Terms, lower_ascii, parse
from monocontext.text.source import Span
from monocontext.text.windows import Window

MOST_BYTES = 64 << 20  # the text that a search looks at by default: about 250 frames
WAVE_FRAMES = 28  # the most frames that are read at once: 7 MB of text
_ALIKE = 0.6
"""A wave takes frames that may score at least this share of the best one. After it, the others may be ruled out."""
_SMALL_CHARACTERS = 8 * RAW_FRAME_BYTES  # a text of at most this size without filters is read to weigh the terms


def search(
    span: Span,
    query: str,
    k: int,
    *,
    max_bytes: int | None = None,
    max_seconds: float | None = None,
    documents: Documents[Any] | None = None,
    per_document: bool = False,
    between: bool = True,
) -> Passages:
    """The best `k` passages.

    `per_document` takes only the best of each document, and `between` also searches the lines between documents.
    Raises `ValueError` for an invalid query.
    """
    terms = parse(query)
    if documents is None or not documents.count:
        if terms.documents or per_document:
            option = "a query with doc:" if terms.documents else "per_document="
            raise ValueError(f"{option} needs a text with documents, and this one has none")
        documents, between = None, True
    best = _BestPassages(k, documents, Globs(terms.documents), between and not terms.documents, per_document)
    deadline = math.inf if max_seconds is None else time.monotonic() + max_seconds
    return _Search(span, terms, best, MOST_BYTES if max_bytes is None else max_bytes, deadline).run()


class _Search:
    """One search: reads frames, and gives their passages to `best`."""

    def __init__(self, span: Span, terms: Terms, best: _BestPassages, budget_bytes: int, deadline: float):
        """The search may read `budget_bytes` of text, until `deadline` on the monotonic clock."""
        self._span = span
        self._best = best
        self._budget_bytes = budget_bytes
        self._deadline = deadline
        self._frames = TermFrames(span, terms.scoring)
        self._scorer = Scorer(terms)
        self._scorer.weights = self._weigh()

    def run(self) -> Passages:
        """Read what may hold one of the best passages, as far as the budget goes."""
        unread_frames = self._read_frames() or self._read_elsewhere()  # the latter only with a budget left
        passages = Passages()
        for score, start, stop, document in self._best.in_order():
            line = self._span.line_of(start) + 1
            text = self._span.read(start, stop)
            passages.append(Passage(start, stop, line, document.name if document else None, score, text))
            passages[-1].document_line = line - document.first_line if document else None
        if unread_frames:
            passages.note = f"{unread_frames:,} unread frames may match better: raise max_bytes= or max_seconds="
        return passages

    def _weigh(self) -> Floats:
        """The weights of the terms: rare terms weigh more. Taken from filters; a small text without filters is read."""
        size, scorer = len(self._span), self._scorer
        if self._frames.is_known.any():
            return self._frames.weigh(max(size / PASSAGE_CHARACTERS, 1.0))
        if len(scorer.weights) == 1 or size > min(_SMALL_CHARACTERS, self._budget_bytes):
            return scorer.weights
        passages, holding = 0, np.zeros(len(scorer.weights))
        for window in self._span.windows(eager=True):
            utf8 = lower_ascii(window.data)
            text = str(utf8, "utf-8", "surrogatepass")
            cuts = cut_passages(text, [0, len(text)])
            occurrences, _ = scorer.count(text, cuts, scorer.may_hold(utf8))
            passages += len(cuts) - 1
            holding += np.count_nonzero(occurrences[: len(holding)], axis=1)
        return weigh(passages, holding)

    @property
    def _is_spent(self) -> bool:
        return self._budget_bytes <= 0 or time.monotonic() > self._deadline

    def _read_frames(self) -> int:
        """Read frames in waves until no unread frame can hold one of the best passages, and return 0; or until the
        budget is spent or cannot suffice, and return how many frames still can."""
        order = self._frames.reading_order(self._scorer.weights)
        numbers = self._frames.numbers[order]
        bounds = self._scorer.upper_bounds(self._frames.levels[:, order])
        was_in_vain = False
        while len(unread := np.flatnonzero(bounds > self._best.lowest_score)):
            affordable = max(self._budget_bytes // RAW_FRAME_BYTES, 1)
            if self._is_spent or (was_in_vain and len(unread) > affordable):
                return len(unread)
            wave = unread[bounds[unread] >= _ALIKE * bounds.max()][: min(WAVE_FRAMES, affordable)]
            lowest_before = self._best.lowest_score
            candidates = copy(self._frames.known[0])  # which can locate any frame
            candidates.runs = [(number, number + 1) for number in sorted(numbers[wave].tolist())]
            for window in self._span.windows(eager=True, only=candidates):
                self._score_window(window)
            bounds[wave] = 0.0  # these frames have no further passage
            was_in_vain = len(wave) == WAVE_FRAMES and 0 < self._best.lowest_score <= lowest_before
        return 0

    def _read_elsewhere(self) -> int:
        """Read the text from its beginning, while frames that filters did not list may hold one of the best passages.
        Returns 0, or about how many frames were left when the budget was spent."""
        [bound] = self._scorer.upper_bounds(~self._frames.is_known[:, np.newaxis])
        for window in self._span.windows() if bound else ():
            if bound <= self._best.lowest_score:
                break
            if self._is_spent:
                return -(-(self._span.stop - window.start) // RAW_FRAME_BYTES)
            self._score_window(window)
        return 0

    def _score_window(self, window: Window) -> None:
        """Score the passages of a window. Where a line or a word may cross its edge, the characters beyond the edge are
        read too (1 GET if their frame is not in memory)."""
        self._budget_bytes -= len(window.data)
        span, scorer, best = self._span, self._scorer, self._best
        start, stop = window.start - span.start, window.stop - span.start
        utf8 = lower_ascii(window.data)
        if scorer.crosses_lines or not utf8.endswith(b"\n"):
            utf8 += lower_ascii(span.read(stop, min(stop + scorer.reach, len(span))))
        may_hold = scorer.may_hold(utf8)
        if scorer.upper_bounds(may_hold[:, np.newaxis])[0] <= best.lowest_score:
            return
        text = str(utf8, "utf-8", "surrogatepass")
        before = span.read(start - 1, start) if start and scorer.begins_with_term(text) else ""
        offset = start - len(before)  # the character of the span at which `before` begins
        edges = best.documents.edges(start, stop) if best.documents is not None else ()
        cuts = cut_passages(before + text, sorted({edge - offset for edge in (start, *edges, stop)}))
        scores = scorer.score(before + text, cuts, may_hold)
        for number in np.flatnonzero(scores > best.lowest_score).tolist():
            best.add(float(scores[number]), offset + cuts[number], offset + cuts[number + 1])


class _Scored(NamedTuple):
    """A passage and its score."""

    score: float
    start: int
    stop: int
    document: Document | None


@dataclass(slots=True)
class _BestPassages:
    """The best `k` passages so far."""

    k: int
    documents: Documents[Any] | None
    """None in a text without documents."""
    names: Globs
    """Selects the documents in which passages may begin."""
    between: bool
    """Whether passages may begin between documents."""
    per_document: bool
    """Whether only the best passage of each document counts."""
    lowest_score: float = 0.0
    """What a passage must exceed to be one of the best; 0 while there are fewer than `k`."""
    _best: dict[int | None, _Scored] = field(default_factory=dict)
    """The best passages, by their first character; with `per_document`, by the number of their document."""

    def add(self, score: float, start: int, stop: int) -> None:
        """Keep a passage if it is one of the best and begins where passages may. Of equal scores, the first stays."""
        document = self.documents.at(start) if self.documents is not None else None
        if score <= self.lowest_score or not (self.names.select(document.name) if document else self.between):
            return
        key = getattr(document, "number", None) if self.per_document else start
        if key not in self._best or score > self._best[key].score:
            self._best[key] = _Scored(score, start, stop, document)
        if len(self._best) > self.k:
            del self._best[min(self._best, key=lambda key: (self._best[key].score, -self._best[key].start))]
        if len(self._best) == self.k:
            self.lowest_score = min(passage.score for passage in self._best.values())

    def in_order(self) -> list[_Scored]:
        """The passages, best first."""
        return sorted(self._best.values(), key=lambda passage: (-passage.score, passage.start))
