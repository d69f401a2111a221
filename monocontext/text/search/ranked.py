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
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.globs import Globs
from monocontext.text.search.by_place import DocumentsByPlace
from monocontext.text.search.frame_order import FIRST_FRAMES, SMALL, FrameOrder, order_frames
from monocontext.text.search.passages import Passage, Passages
from monocontext.text.search.scoring import Scorer
from monocontext.text.search.terms import parse
from monocontext.text.source import Span
from monocontext.text.windows import Window

MOST_BYTES = 64 << 20
"""The text that a search looks at by default: about 250 frames."""
_MOST_FRAMES = 256
"""The most frames of one wave. The first has `FIRST_FRAMES`, each later one twice as many as the one before."""
_ALIKE = 0.6
"""A wave takes frames that may score at least this share of the best one. After it, the others may be ruled out."""


def search(
    span: Span,
    query: str,
    k: int,
    max_bytes: int | None,
    max_seconds: float | None,
    *,
    documents: DocumentsByPlace | None = None,
    per_document: bool = False,
    between: bool = True,
) -> Passages:
    """The best `k` passages.

    `per_document` takes only the best of each document, and `between` also searches the lines between documents.
    Raises `ValueError` for an invalid query.
    """
    if per_document and (documents is None or not documents.count):
        raise ValueError("per_document= needs a text with documents, and this one has none")
    terms = parse(query)
    budget = _Budget(MOST_BYTES if max_bytes is None else max_bytes, max_seconds)
    order = order_frames(span, terms, may_read=budget.left_bytes >= SMALL)
    chosen = _ChosenDocuments(documents, terms.documents, between)
    best = _BestPassages(span, Scorer(terms, order.weights), k, chosen, per_document=per_document)
    unread, in_order = 0, False
    seen: set[int] = set()
    for wave in _waves(span, order, budget, best):
        if best.rules_out(wave.most):
            break
        if budget.is_spent:
            unread, in_order = wave.left, wave.in_order
            break
        in_order = wave.in_order
        for window in wave.windows:
            if window.start in seen:
                continue
            if in_order:
                if best.rules_out(wave.most, window.start - span.start):
                    break
                if budget.is_spent:
                    unread = 1
                    break
            seen.add(window.start)
            best.add_window(window)
            budget.spend(len(window.data))
    return best.finish(unread, in_order)


def scan(span: Span, queries: Sequence[str], k: int) -> list[Passages]:
    """The results of `search` for several queries without a budget, from one look at every passage, for comparison."""
    terms = [parse(query) for query in queries]
    found = [
        _BestPassages(
            span, Scorer(one, order_frames(span, one).weights), k, _ChosenDocuments(None, (), True), skips=False
        )
        for one in terms
    ]
    for window in span.windows(eager=True):
        for best in found:
            best.add_window(window)
    return [best.finish(0, False) for best in found]


class _BestPassages:
    """The best `k` passages of the windows so far. Among equal scores the earlier passage is the better one."""

    def __init__(
        self,
        span: Span,
        scorer: Scorer,
        k: int,
        documents: _ChosenDocuments,
        *,
        per_document: bool = False,
        skips: bool = True,
    ):
        """`skips`: leave out passages that cannot be among the best, without a look at all of their words."""
        self._span = span
        self._scorer = scorer
        self._k = k
        self._documents = documents
        self._per_document = per_document
        self._skips = skips
        self._heap: list[tuple[float, int, Passage]] = []
        """Each passage with its score and minus its first character; the worst one comes first."""

    def worst(self) -> tuple[float, int] | None:
        """The score and first character of the last among the best; None while there are fewer than `k`."""
        return (self._heap[0][0], -self._heap[0][1]) if len(self._heap) == self._k else None

    def rules_out(self, score: float, character: int = 0) -> bool:
        """Whether a passage with this score that begins at this character or later cannot be among the best."""
        return len(self._heap) == self._k and (score, -character) < self._heap[0][:2]

    def add_window(self, window: Window) -> None:
        """Score the passages of a window. Where a word may cross an end of the window, the characters there are read: 1
        GET if that frame is not in memory."""
        span, scorer = self._span, self._scorer
        data, start = window.data, window.start - span.start
        if self._skips:
            scorer.least = self._least_score(start)
            if isinstance(data, bytes) and scorer.rules_out(data):
                return
        text = inner = window.text
        stop = start + len(inner)
        before = span.read(start - 1, start) if start and scorer.may_begin(inner) else ""
        end = min(stop + scorer.reach, len(span)) if scorer.may_go_on(inner) else stop
        if before or stop < end or isinstance(data, str):
            text, data = f"{before}{inner}{span.read(stop, end) if stop < end else ''}", None
        start -= len(before)
        cuts = self._documents.cuts(start, len(text))
        for one in scorer.score(text, cuts, len(before), stop - start, data):
            at = start + one.start
            if self._make_room(one.score, at):
                found = Passage(at, at + one.stop - one.start, 0, None, one.score, text[one.start : one.stop])
                heapq.heappush(self._heap, (one.score, -at, found))
            if self._skips:
                scorer.least = self._least_score(at + 1)

    def _make_room(self, score: float, character: int) -> bool:
        """Whether a passage is one of the best. If so, the passage that it replaces is removed."""
        row = score, -character
        is_full = len(self._heap) == self._k
        if (is_full and row <= self._heap[0][:2]) or not self._documents.allows(character):
            return False
        if self._per_document:
            rival = next((each for each in self._heap if self._documents.share(each[2].start, character)), None)
            if rival is not None:
                if row <= rival[:2]:
                    return False
                self._heap.remove(rival)
                heapq.heapify(self._heap)
                return True
        if is_full:
            heapq.heappop(self._heap)
        return True

    def _least_score(self, character: int) -> float:
        """The least score that a passage from this character on needs to be among the best."""
        worst = self.worst()
        if worst is None:
            return 0.0
        score, start = worst
        return score if character <= start else math.nextafter(score, math.inf)

    def finish(self, unread: int, in_order: bool) -> Passages:
        """The passages with their lines and documents. `unread` frames were left out, with `in_order` the last ones."""
        span = self._span
        found = Passages(
            self._documents.name(passage._replace(line=span.line_of(passage.start) + 1))
            for *_, passage in sorted(self._heap, reverse=True)
        )
        found.unread_frames = unread
        if unread:
            left = "the text after it, which no search filters rule out" if in_order else f"{unread:,} frames"
            found.note = f"the budget ended before {left}: max_bytes= and max_seconds= allow more"
        return found


@dataclass(frozen=True, slots=True)
class _Wave:
    """Windows to look at together."""

    windows: Iterator[Window]
    left: int
    """The number of frames that are unread before this wave; 1 stands for any number."""
    most: float
    """The highest possible score of one of these frames."""
    in_order: bool = False
    """Whether the wave follows the order of the text."""


def _waves(span: Span, order: FrameOrder, budget: _Budget, best: _BestPassages) -> Iterator[_Wave]:
    left, size = order.frames, FIRST_FRAMES
    while left := _frames_that_may_enter(left, order.candidates, span, best):
        most, room = max(left)[0], max(budget.left_bytes // RAW_FRAME_BYTES, 1)
        wave = set(islice((number for score, number in left if score >= _ALIKE * most), min(size, room)))
        candidates = copy(order.candidates)
        assert candidates is not None
        candidates.runs = _runs(sorted(wave))
        yield _Wave(span.windows(eager=True, only=candidates), len(left), most)
        left = [row for row in left if row[1] not in wave]
        size = min(2 * size, _MOST_FRAMES)
    if order.rest is not None:
        yield _Wave(span.windows(), 1, order.rest, in_order=True)


def _frames_that_may_enter(
    frames: list[tuple[float, int]], candidates: Candidates | None, span: Span, best: _BestPassages
) -> list[tuple[float, int]]:
    """The frames that may hold a passage that is better than the worst of the best."""
    worst = best.worst()
    if not frames or worst is None:
        return frames
    least, start = worst
    assert candidates is not None
    last = candidates.number_at(span.start + start)
    return [row for row in frames if row[0] > least or (row[0] == least and row[1] <= last)]


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    """Rising numbers as half-open runs of neighbours."""
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


class _ChosenDocuments:
    """The documents of the text, and the choice that a query makes among them."""

    def __init__(self, documents: DocumentsByPlace | None, globs: tuple[str, ...], between: bool):
        self._documents = documents if documents is not None and documents.count else None
        self._between = between or self._documents is None
        self._starts: list[int] | None = None
        """The beginnings of the chosen documents; None without a choice."""
        if not globs:
            return
        if self._documents is None:
            raise ValueError("a query with doc: needs a text with documents, and this one has none")
        select = Globs(globs).select
        chosen = [one for one in self._documents.records() if select(one.name)]
        self._starts, self._stops = [one.start for one in chosen], [one.stop for one in chosen]

    def allows(self, character: int) -> bool:
        """Whether a passage may begin at this character."""
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
        """Whether two characters are in one document; two documents may have the same name."""
        return self._at(one) == self._at(other)

    def _at(self, character: int) -> Document | None:
        return self._documents.at(character) if self._documents is not None else None


class _Budget:
    """The bytes and seconds that a search may spend."""

    def __init__(self, most_bytes: int, most_seconds: float | None):
        self.left_bytes = most_bytes
        self._end = None if most_seconds is None else time.monotonic() + most_seconds

    def spend(self, size: int) -> None:
        self.left_bytes -= size

    @property
    def is_spent(self) -> bool:
        return self.left_bytes <= 0 or (self._end is not None and time.monotonic() > self._end)
