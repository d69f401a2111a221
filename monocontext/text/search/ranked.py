"""Find the passages of a text that best match some words, best first: `Monocontext.search`.

Search filters say which frames may hold which words, and how rare each word is. The frames in which the rarest words
occur most often are read first, in parallel. Reading ends when no unread frame can hold one of the best passages, or
when the budget is spent. A search whose budget cannot decide ends with the first wave that does not raise the lowest
score among the best.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from copy import copy
from itertools import chain, islice, starmap
from typing import TYPE_CHECKING, Any

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.format.filters.grams import LEVELS
from monocontext.format.filters.query import All, FrequencyQuery, Query
from monocontext.globs import Globs
from monocontext.records import dataclass, field
from monocontext.text.search.passages import Passage, Passages
from monocontext.text.search.scoring import PASSAGE_CHARACTERS, Scorer, most_score, weigh
from monocontext.text.search.terms import Term, Terms, lower_ascii, parse
from monocontext.text.source import Span
from monocontext.text.windows import Window

if TYPE_CHECKING:
    from monocontext.text.documents.by_name import Documents

MOST_BYTES = 64 << 20  # the text that a search looks at by default: about 250 frames
FIRST_FRAMES = 24
"""The most frames of the first wave (6 MB of text), and of each where the budget does not allow all frames. Else the
next wave has twice as many."""
_ALIKE = 0.6
"""A wave takes frames that may score at least this share of the best one. After it, the others may be ruled out."""
_SMALL = 8 * RAW_FRAME_BYTES
"""A text of at most this many characters and without filters is read to learn how rare words are."""
_PASSAGES = (1.3, 4, 11, 30, 120)
"""How many passages of a frame hold a word, by its level there: means over 64 MB each of code, prose and logs."""
_PRESENCE = 3
"""In the order of frames, a word of weight 1 counts as much as 2 ** 3 times the occurrences of a word. Of 2 to 20, this
found the most of the best passages in 24 to 170 frames."""
_GAINS = [math.log2(level) for level in (1, *LEVELS)]  # what the occurrences of a word add there, by their level
_SHARE_OF_UNKNOWN = 0.02
"""The assumed share of passages that hold a word, at least, if the filters do not tell its frames."""

_Held = dict[int, int]
"""The frames that may hold a word, by number, and the word's level in each: n if it may occur `LEVELS[n - 1]` times."""
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
    terms = parse(query)
    if documents is None or not documents.count:
        if terms.documents or per_document:
            option = "a query with doc:" if terms.documents else "per_document="
            raise ValueError(f"{option} needs a text with documents, and this one has none")
        documents, between = None, True
    best = _BestPassages(k, documents, Globs(terms.documents), between and not terms.documents, per_document)
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    return _Search(span, terms, best, MOST_BYTES if max_bytes is None else max_bytes, end).run()


class _Search:
    """One search: reads frames, and gives their passages to `best`."""

    def __init__(self, span: Span, terms: Terms, best: _BestPassages, left_bytes: int, end: float):
        """It may read `left_bytes` of text, and until `end` on the monotonic clock."""
        self._span = span
        self._best = best
        self._left_bytes = left_bytes
        self._end = end
        self._candidates, known = _ask_filters(span, terms)
        weights = _weigh(span, terms, known, may_read=left_bytes >= _SMALL)
        self._scorer = Scorer(terms, weights)
        self._frames, self._rest = _order_frames(known, weights, terms.phrases)

    def run(self) -> Passages:
        """Read what may hold one of the best passages, as far as the budget goes."""
        if unread := self._read_frames():
            return self._finish(f"{unread:,} frames", unread)
        if not self._read_rest():
            return self._finish("the text after it, which no search filters rule out", 1)
        return self._finish()

    @property
    def _is_spent(self) -> bool:
        return self._left_bytes <= 0 or time.monotonic() > self._end

    def _read_frames(self) -> int:
        """Read frames in waves until no other can hold one of the best passages. Returns how many might, where the
        budget ends or cannot decide."""
        most_frames, lowest, is_vain = FIRST_FRAMES, 0.0, False
        while remaining := self._remaining():
            is_short = len(remaining) * RAW_FRAME_BYTES > self._left_bytes
            if (is_vain and is_short) or self._is_spent:
                return len(remaining)
            affordable = max(self._left_bytes // RAW_FRAME_BYTES, 1)
            least = _ALIKE * max(remaining.values())
            promising = (number for number, most in remaining.items() if most >= least)
            wave = set(islice(promising, min(most_frames, affordable)))
            only = copy(self._candidates)
            assert only is not None  # else no frames are known
            only.runs = [(number, number + 1) for number in sorted(wave)]
            for window in self._span.windows(eager=True, only=only):
                self._score_window(window)
            self._frames = {number: most for number, most in remaining.items() if number not in wave}
            is_vain = len(wave) >= FIRST_FRAMES and 0 < self._best.lowest_score <= lowest
            lowest = self._best.lowest_score
            most_frames = FIRST_FRAMES if is_short else 2 * most_frames
        return 0

    def _remaining(self) -> dict[int, float]:
        """The frames that may hold a passage that is better than the worst of the best."""
        worst, candidates = self._best.worst, self._candidates
        if worst is None or candidates is None:
            return self._frames
        least, last = worst[0], candidates.number_at(self._span.start - worst[1])
        return {number: most for number, most in self._frames.items() if (most, -number) >= (least, -last)}

    def _read_rest(self) -> bool:
        """Read on in the order of the text, where passages may score `_rest`. Returns False if the budget ends."""
        for window in self._span.windows() if self._rest else ():
            if self._best.rules_out(self._rest, window.start - self._span.start):
                break
            if self._is_spent:
                return False
            self._score_window(window)
        return True

    def _score_window(self, window: Window) -> None:
        """Score the passages of a window. Where its last line goes on after it, or it may begin inside a word,
        the characters there are read: 1 GET if that frame is not in memory."""
        self._left_bytes -= len(window.data)
        span, scorer, best = self._span, self._scorer, self._best
        start, stop = window.start - span.start, window.stop - span.start
        utf8, after = lower_ascii(window.data), ""
        if scorer.crosses_lines or not utf8.endswith(b"\n"):
            after = span.read(stop, min(stop + scorer.reach, len(span)))
            utf8 += lower_ascii(after)
        leading = scorer.leading(utf8, best.lowest_score)
        if not leading:
            return
        text = str(utf8, "utf-8", "surrogatepass")
        before = span.read(start - 1, start) if start and scorer.begins(text) else ""
        offset = start - len(before)
        """The character of the span at which `before` begins."""
        original = ""
        edges = [edge - offset for edge in best.edges(start, stop)]
        for item in scorer.score(before + text, len(before), stop - offset, edges, leading, best.lowest_score):
            if not best.rules_out(item.score, offset + item.start):
                original = original or before + window.text + after
                found = original[item.start : item.stop]
                best.add(Passage(offset + item.start, offset + item.stop, 0, None, item.score, found))

    def _finish(self, unread: str = "", frames: int = 0) -> Passages:
        """The passages with their lines and documents. `unread`: what was left unread, and how many frames that is."""
        passages = Passages()
        for passage in self._best.in_order():
            line, document = self._span.line_of(passage.start) + 1, self._best.document_at(passage.start)
            passages.append(passage._replace(line=line, document=document.name if document else None))
            passages[-1].document_line = line - document.first_line if document else None
        passages.unread_frames = frames
        passages.note = f"the budget ended before {unread}: max_bytes= and max_seconds= allow more" if unread else ""
        return passages


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
    worst: Rank | None = None
    """The rank of the last among the best; None while there are fewer than `k`."""
    _best: dict[int | None, tuple[Rank, Passage]] = field(default_factory=dict)
    """The best passages, by their first character; with `per_document`, by the number of their document."""

    @property
    def lowest_score(self) -> float:
        """The score of the worst; 0 while there are fewer than `k`."""
        return self.worst[0] if self.worst else 0.0

    def rules_out(self, score: float, character: int) -> bool:
        """Whether a passage with this score that begins at this character or later cannot be among the best."""
        return self.worst is not None and (score, -character) <= self.worst

    def document_at(self, character: int) -> Document | None:
        return self.documents.at(character) if self.documents is not None else None

    def edges(self, start: int, stop: int) -> list[int]:
        """The characters in [start, stop) at which documents begin and end."""
        return [*self.documents.edges(start, stop)] if self.documents is not None else []

    def add(self, passage: Passage) -> None:
        """Keep a passage if it is one of the best, and begins where it may."""
        document = self.document_at(passage.start)
        if not (self.names.select(document.name) if document else self.between):
            return
        rank: Rank = (passage.score, -passage.start)
        key = passage.start if not self.per_document else document.number if document else None
        if key not in self._best or rank > self._best[key][0]:
            self._best[key] = rank, passage
        if len(self._best) > self.k:
            del self._best[min(self._best, key=lambda key: self._best[key][0])]
        if len(self._best) == self.k:
            self.worst = min(rank for rank, _ in self._best.values())

    def in_order(self) -> list[Passage]:
        """The passages, best first."""
        return [passage for _, passage in sorted(self._best.values(), reverse=True)]


# -- how rare the words are, and the order of the frames ---------------------------------------------------------------


def _ask_filters(span: Span, terms: Terms) -> tuple[Candidates | None, list[_Held | None]]:
    """What search filters know of each scoring term, and any answer of theirs; None if they know nothing."""
    queries = [_queries(term) for term in terms.scoring]
    span.holding(All(tuple(chain.from_iterable(queries))))  # requests all rows at once
    candidates, known = None, list[_Held | None]()
    for query, *queries_of_levels in queries:
        answer = span.holding(query)
        held = None if answer is None else dict.fromkeys(_numbers(answer), 0)
        for level, often in enumerate(map(span.holding, queries_of_levels), 1):
            if held is not None and often is not None:
                held |= dict.fromkeys(_numbers(often), level)
        candidates = candidates or answer
        known.append(held)
    return candidates, known


def _queries(term: Term) -> list[Query]:
    """The queries for frames with a term, and, if filters count it, with `LEVELS[0]` of it or more, and so on."""
    levels = range(len(LEVELS)) if term.words else ()
    return [term.query, *(All((term.query, FrequencyQuery(term.words, level))) for level in levels)]


def _numbers(candidates: Candidates) -> Iterator[int]:
    return chain.from_iterable(starmap(range, candidates.runs))


def _weigh(span: Span, terms: Terms, known: list[_Held | None], *, may_read: bool) -> list[float]:
    """The weight of each term: by the frames that hold it, or with `may_read` from all of a small text."""
    passages = max(len(span) / PASSAGE_CHARACTERS, 1.0)
    if any(held is not None for held in known):
        return [_estimate_weight(passages, held) for held in known]
    if not may_read or len(known) == 1 or len(span) > _SMALL:
        return [1.0] * len(known)
    holding: list[set[int]] = [set() for _ in known]
    for window in span.windows(eager=True):
        text = str(lower_ascii(window.data), "utf-8", "surrogatepass")
        for numbers, term in zip(holding, terms.scoring, strict=True):
            starts = (window.start + match.start() for match in term.pattern.finditer(text))
            numbers.update(start // PASSAGE_CHARACTERS for start in starts)
    passages = max(passages, *map(len, holding))
    return [weigh(passages, len(numbers)) for numbers in holding]


def _estimate_weight(passages: float, held: _Held | None) -> float:
    if held is None:  # a word of two letters, which no filter knows, or one in too many frames to list
        return weigh(passages, _SHARE_OF_UNKNOWN * passages)
    return weigh(passages, min(sum([_PASSAGES[level] for level in held.values()]), passages))


def _order_frames(known: list[_Held | None], weights: list[float], phrases: int) -> tuple[dict[int, float], float]:
    """The highest possible score of a passage of each frame to read, by its number, and of all other frames.

    Frames that may hold heavier words come first, then those in which the words occur more often.
    """
    listed = [set(held) for held in known[: phrases or None] if held is not None]
    unknown = [weight for weight, held in zip(weights, known, strict=True) if held is None]
    if phrases:  # a passage has all of them
        unknown = [] if listed else weights
    chosen = set[int]() if not listed else set.intersection(*listed) if phrases else set.union(*listed)
    present: dict[int, tuple[float, ...]] = dict.fromkeys(sorted(chosen), ())
    promise = dict.fromkeys(present, 0.0)
    for weight, held in zip(weights, known, strict=True):
        for number in chosen if held is None else chosen & held.keys():
            present[number] += (weight,)
            promise[number] += _PRESENCE * weight + (_GAINS[held[number]] if held else 0)
    most = {weights: most_score(weights) for weights in set(present.values())}  # many frames hold the same words
    order = sorted(promise, key=lambda number: -promise[number])
    return {number: most[present[number]] for number in order}, most_score(unknown)
