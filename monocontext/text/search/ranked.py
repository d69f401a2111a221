"""Find the passages of a text that best match some words, best first: `Monocontext.search`.

Search filters say which frames may hold which words, and how rare each word is. The frames that may hold the heaviest
words are read first, in parallel; among these, the frames in which the words occur often. Reading ends when no unread
frame can hold one of the best passages, or when the budget is spent. A search whose budget cannot decide ends with the
first wave that does not raise the lowest score among the best.
"""

from __future__ import annotations

import heapq
import math
import re
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from copy import copy
from itertools import chain, islice, pairwise, starmap
from typing import TYPE_CHECKING, Any

from monocontext.engine.candidates import Candidates
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.format.documents import Document
from monocontext.format.filters.grams import LEVELS
from monocontext.format.filters.query import All, FrequencyQuery
from monocontext.globs import Globs
from monocontext.text.search.passages import Passage, Passages
from monocontext.text.search.scoring import Scorer, most_score, weigh
from monocontext.text.search.terms import Term, Terms, parse
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
_FEW_FRAMES = 8
"""A word in at most this many frames is rare, however often it occurs there."""
_PASSAGE_CHARACTERS = 440
"""The average length of a passage in characters."""
_PASSAGES = (1.3, 4, 11, 30, 120)
"""How many passages of a frame hold a word that occurs in the frame `LEVELS[0]` times or more, and so on: means over 64
MB each of code, prose and logs."""
_PRESENCE = 3
"""In the order of frames, a word of weight 1 counts as much as 2 ** 3 times the occurrences of a word. Of 2 to 20, this
found the most of the best passages in 24 to 170 frames."""
_SHARE_OF_SHORT = 0.02
"""The assumed share of passages that hold a word unknown to the filters."""


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
    if per_document and (documents is None or not documents.count):
        raise ValueError("per_document= needs a text with documents, and this one has none")
    terms = parse(query)
    budget = left_bytes = MOST_BYTES if max_bytes is None else max_bytes
    end = math.inf if max_seconds is None else time.monotonic() + max_seconds
    weights = _weights(span, terms, may_read=left_bytes >= _SMALL)
    order = _Order(span, terms, weights)
    best = _BestPassages(span, Scorer(terms, weights), k, _Chosen(documents, terms.documents, between), per_document)
    size, searched, before, is_vain = FIRST_FRAMES, set[int](), 0.0, False
    while remaining := order.left(best.worst, span.start):
        is_short = len(remaining) * (budget - left_bytes) > left_bytes * len(searched)  # cannot read them all
        if (is_vain and is_short) or left_bytes <= 0 or time.monotonic() > end:
            return best.finish(f"{len(remaining):,} frames", len(remaining))
        if searched and not is_short:
            size = min(2 * size, _MOST_FRAMES)
        most, room = max(remaining)[0], max(left_bytes // RAW_FRAME_BYTES, 1)
        wave = set(islice((number for score, number in remaining if score >= _ALIKE * most), min(size, room)))
        for window in span.windows(eager=True, only=order.only(wave)):
            searched.add(window.start)
            best.add_window(window)
            left_bytes -= len(window.data)
        order.frames = [row for row in remaining if row[1] not in wave]
        worst = best.worst[0] if best.worst else 0.0
        is_vain, before = len(wave) >= FIRST_FRAMES and 0 < worst <= before, worst
    rest = order.rest
    for window in span.windows() if rest is not None and not best.rules_out(rest) else ():
        if best.rules_out(rest or 0.0, window.start - span.start):
            break
        if left_bytes <= 0 or time.monotonic() > end:
            return best.finish("the text after it, which no search filters rule out", 1)
        if window.start not in searched:
            best.add_window(window)
            left_bytes -= len(window.data)
    return best.finish()


# -- how rare the words are --------------------------------------------------------------------------------------------


def _weights(span: Span, terms: Terms, *, may_read: bool) -> dict[Term, float]:
    """The weight of each word, from the number of passages of the stored text that hold it, as far as filters know (2
    waves of GETs; 1 if few frames may hold any of the words). With `may_read`, a small text without filters is read."""
    frequency = span.frequency(terms.any_of)
    if frequency is None:
        if may_read and len(terms.scoring) > 1 and len(span) <= _SMALL:
            return _count_weights(span, terms)
        return dict.fromkeys(terms.scoring, 1.0)
    counted = _often(terms.scoring) if frequency[1] > _FEW_FRAMES else {}
    # All rows at once: those of `any_of` were not read if filters do not know one of the words.
    span.frequency(All((*(term.query for term in terms.scoring), *chain.from_iterable(counted.values()))))
    passages = max(span.source.characters / _PASSAGE_CHARACTERS, 1.0)
    weights = {}
    for term in terms.scoring:
        queries = [term.query, *counted.get(term, ())]
        frames = [counted_frames[1] if (counted_frames := span.frequency(query)) else 0 for query in queries]
        levels = zip(_PASSAGES, pairwise([*frames, 0]), strict=False)
        holding = sum(level * (at_least - more) for level, (at_least, more) in levels)
        if not term.words:  # a word of two letters, for example: no filter knows it, and it may be common
            holding = max(holding, _SHARE_OF_SHORT * passages)
        weights[term] = weigh(passages, min(holding, passages))
    return weights


def _often(terms: Sequence[Term]) -> dict[Term, list[All]]:
    """For each word the queries for frames with `LEVELS[0]` occurrences or more, and so on; none for words that filters
    do not count."""
    levels = range(len(LEVELS))
    return {
        term: [All((term.query, FrequencyQuery(term.words, level))) for level in levels] for term in terms if term.words
    }


def _count_weights(span: Span, terms: Terms) -> dict[Term, float]:
    """The weight of each word, from all of a text."""
    scorer = Scorer(Terms(terms.scoring, (), (), ()), dict.fromkeys(terms.scoring, 1.0))
    holding = defaultdict[int, int](int)
    for window in span.windows(eager=True):
        for scored in scorer.score(scorer.fold(window.text.encode("utf-8", "surrogatepass"))):
            for number in {number for _, number in scored.places}:
                holding[number] += 1
    passages = max(len(span) / _PASSAGE_CHARACTERS, *holding.values(), 1.0)
    return {term: weigh(passages, holding[number]) for number, term in enumerate(terms.scoring)}


# -- the order of the frames -------------------------------------------------------------------------------------------


class _Order:
    """The frames to read, and their order."""

    frames: list[tuple[float, int]]
    """The highest possible score of each frame, and the number of the frame; the most promising come first."""
    rest: float | None = None
    """The highest possible score in all other frames, which are read in the order of the text; None if there are
    none."""

    def __init__(self, span: Span, terms: Terms, weights: dict[Term, float]):
        union = span.holding(terms.any_of)
        look_up = span.candidates if union is None else span.holding
        union = union or look_up(terms.any_of)
        holding = {term: look_up(term.query) for term in terms.scoring}
        if union is not None:
            chosen = set(_numbers(union))
        else:
            # Very many frames hold one of the words, or the filters cannot say: frames with a rarer word come first.
            known = {term: item for term, item in holding.items() if item is not None}
            union = None if terms.phrases else next(iter(known.values()), None)
            common = [weights[term] for term in holding if term not in known]
            self.rest = most_score(common if union is not None and common else [*weights.values()])
            chosen = {number for item in known.values() for number in _numbers(item)} if union is not None else set()
        self._candidates = union
        self.frames = _scored_frames(chosen, [*holding.values()], [*weights.values()])
        if len(self.frames) > FIRST_FRAMES:
            promise = _promise(span, weights, holding)
            self.frames.sort(key=lambda row: -promise.get(row[1], 0.0))

    def left(self, worst: tuple[float, int] | None, start: int) -> list[tuple[float, int]]:
        """The frames that may hold a passage that is better than the worst of the best, by its score and character. Of
        equal scores the earlier passage is better. `start`: the first character of the span."""
        if worst is None or not self.frames:
            return self.frames
        assert self._candidates is not None
        least, last = worst[0], self._candidates.number_at(start + worst[1])
        return [row for row in self.frames if row[0] > least or (row[0] == least and row[1] <= last)]

    def only(self, numbers: set[int]) -> Candidates:
        """Candidates of these frames alone."""
        result = copy(self._candidates)
        assert result is not None
        result.runs = [(number, number + 1) for number in sorted(numbers)]
        return result


def _scored_frames(
    chosen: set[int], holding: Sequence[Candidates | None], weights: Sequence[float]
) -> list[tuple[float, int]]:
    """The highest possible score of each chosen frame and its number, best first, by the frames that may hold each word
    (None: all) and its weight."""
    # The words that each frame may hold, as bits. There are few different masks, so few scores to compute.
    masks = dict.fromkeys(sorted(chosen), 0)
    for bit, candidates in enumerate(holding):
        for number in _numbers(candidates) if candidates is not None else chosen:
            if number in masks:
                masks[number] |= 1 << bit
    scores = {mask: most_score([w for bit, w in enumerate(weights) if mask >> bit & 1]) for mask in {*masks.values()}}
    return sorted(((scores[mask], number) for number, mask in masks.items()), key=lambda row: -row[0])


def _promise(span: Span, weights: dict[Term, float], holding: dict[Term, Candidates | None]) -> dict[int, float]:
    """A score for the order of the frames: the weight of the words that each may hold, by how often they occur in it.
    Frames unknown to the filters have none."""
    promise, counted = defaultdict[int, float](float), _often([*holding])
    for term, candidates in holding.items():
        counts = dict.fromkeys(_numbers(candidates), 1) if candidates is not None else {}
        for often, level in zip(counted.get(term, ()), LEVELS, strict=False):
            if (frames := span.holding(often)) is not None:
                counts |= dict.fromkeys(_numbers(frames), level)
        parts = {count: _PRESENCE * weights[term] + math.log2(count) for count in (1, *LEVELS)}
        for number, count in counts.items():
            promise[number] += parts[count]
    return promise


def _numbers(candidates: Candidates) -> Iterable[int]:
    return chain.from_iterable(starmap(range, candidates.runs))


# -- the best passages -------------------------------------------------------------------------------------------------


class _BestPassages:
    """The best `k` passages of the windows so far. Among equal scores the earlier passage is the better one."""

    def __init__(self, span: Span, scorer: Scorer, k: int, chosen: _Chosen, per_document: bool):
        self._span, self._scorer, self._k, self._chosen, self._per_document = span, scorer, k, chosen, per_document
        self._heap: list[tuple[float, int, Passage]] = []
        """Each passage with its score and minus its first character; the worst one comes first."""

    @property
    def worst(self) -> tuple[float, int] | None:
        """The score and first character of the last among the best; None while there are fewer than `k`."""
        return (self._heap[0][0], -self._heap[0][1]) if len(self._heap) == self._k else None

    def rules_out(self, score: float, character: int = 0) -> bool:
        """Whether a passage with this score that begins at this character or later cannot be among the best."""
        return len(self._heap) == self._k and (score, -character) < self._heap[0][:2]

    def add_window(self, window: Window) -> None:
        """Score the passages of a window. Where its last line goes on after it, or it may begin inside a word, the
        characters there are read: 1 GET if that frame is not in memory."""
        span, data, start = self._span, window.data, window.start - self._span.start
        size, more = window.stop - window.start, ""
        if self._scorer.has_phrases or data[-1:] not in ("\n", b"\n"):
            more = span.read(start + size, min(start + size + self._scorer.reach, len(span)))
        least = self._heap[0][0] if len(self._heap) == self._k else 0.0
        if least and start > -self._heap[0][1]:  # of equal scores, the earlier passage is better
            least = math.nextafter(least, math.inf)
        parts = (part if isinstance(part, bytes) else part.encode("utf-8", "surrogatepass") for part in (data, more))
        utf8 = self._scorer.fold(b"".join(parts))
        cuts = self._chosen.cuts(start, size)
        scored = self._scorer.score(
            utf8, cuts, least, size, lambda: start > 0 and re.match(r"\w", span.read(start - 1, start)) is not None
        )
        text = ""
        for item in scored:
            offset = start + item.start
            if self._make_room(item.score, offset):
                text = text or window.text + more
                passage = Passage(offset, start + item.stop, 0, None, item.score, text[item.start : item.stop])
                heapq.heappush(self._heap, (item.score, -offset, passage))

    def _make_room(self, score: float, character: int) -> bool:
        """Whether a passage is one of the best. If so, the passage that it replaces is removed."""
        row, is_full = (score, -character), len(self._heap) == self._k
        if (is_full and row <= self._heap[0][:2]) or not self._chosen.allows(character):
            return False
        if self._per_document:
            rival = next((item for item in self._heap if self._chosen.share(item[2].start, character)), None)
            if rival is not None:
                if row <= rival[:2]:
                    return False
                self._heap.remove(rival)
                heapq.heapify(self._heap)
                return True
        if is_full:
            heapq.heappop(self._heap)
        return True

    def finish(self, unread: str = "", frames: int = 0) -> Passages:
        """The passages with their lines and documents. `unread`: what was left unread, and how many frames that is."""
        passages = Passages(
            self._chosen.name(passage._replace(line=self._span.line_of(passage.start) + 1))
            for *_, passage in sorted(self._heap, reverse=True)
        )
        passages.unread_frames = frames
        passages.note = f"the budget ended before {unread}: max_bytes= and max_seconds= allow more" if unread else ""
        return passages


class _Chosen:
    """The documents of the text, and the choice that a query makes among them."""

    def __init__(self, documents: Documents[Any] | None, globs: tuple[str, ...], between: bool):
        self._documents = documents if documents is not None and documents.count else None
        self._between = between or self._documents is None
        self._starts: list[int] | None = None
        """The beginnings of the chosen documents; None without a choice."""
        if not globs:
            return
        if self._documents is None:
            raise ValueError("a query with doc: needs a text with documents, and this one has none")
        select = Globs(globs).select
        chosen = [record for record in self._documents.records() if select(record.name)]
        self._starts, self._stops = [item.start for item in chosen], [item.stop for item in chosen]

    def allows(self, character: int) -> bool:
        """Whether a passage may begin at this character."""
        if self._starts is None:
            return self._between or self._at(character) is not None
        offset = bisect_right(self._starts, character) - 1
        return offset >= 0 and character < self._stops[offset]

    def cuts(self, start: int, characters: int) -> list[int]:
        """The characters of a window at which documents begin and end."""
        if self._documents is None:
            return []
        return [edge - start for edge in self._documents.edges(start, start + characters)]

    def name(self, passage: Passage) -> Passage:
        """The passage, with its document and the line in it."""
        document = self._at(passage.start)
        if document is None:
            return passage
        named = passage._replace(document=document.name)
        named.document_line = passage.line - document.first_line
        return named

    def share(self, first: int, second: int) -> bool:
        """Whether two characters are in one document; two documents may have the same name."""
        return self._at(first) == self._at(second)

    def _at(self, character: int) -> Document | None:
        return self._documents.at(character) if self._documents is not None else None
