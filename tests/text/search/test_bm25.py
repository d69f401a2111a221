"""`search` against BM25 over all passages of a text in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from random import Random

import pytest

from monocontext import Monocontext, publish
from monocontext.text.search.term_frames import TermFrames
from monocontext.text.search.terms import Terms, lower_ascii, parse

WORDS = [
    "error", "id", "to", "run", "running", "policies", "東京", "東京都", "哈哈哈", "café", "cafe", "йод", "한국", "a-b",
]  # fmt: skip


def passages(text: str, start: int, stop: int) -> Iterator[range]:
    """The passages of text[start:stop]: the whole lines that fit into 640 characters, or that many of a longer one."""
    while start < stop:
        end = min(start + 640, stop)
        end = end if end == stop else text.rfind("\n", start, end) + 1 or end
        yield range(start, end)
        start = end


def weigh(context: Monocontext, terms: Terms) -> list[float]:
    frames = TermFrames(context.span, terms.scoring)
    if frames.is_known.any():
        return list(frames.weigh(len(context) / 640))
    texts = [lower_ascii(window.data).decode() for window in context.span.windows()]
    parts = [text[item.start :] for text in texts for item in passages(text, 0, len(text))]
    sizes = [len(item) for text in texts for item in passages(text, 0, len(text))]
    if len(terms.scoring) == 1:
        return [1.0]
    holding = [
        sum(
            any(match.start() < size for match in term.pattern.finditer(part))
            for part, size in zip(parts, sizes, strict=True)
        )
        for term in terms.scoring
    ]
    return [math.log(1 + (len(parts) - n + 0.5) / (n + 0.5)) for n in holding]


def scored_passages(context: Monocontext, text: str, query: str) -> dict[int, float]:
    """The score of each passage with a term, by its first character."""
    terms, lower = parse(query), lower_ascii(text).decode()
    weights = weigh(context, terms)
    starts = [[match.start() for match in term.pattern.finditer(lower)] for term in terms.scoring]
    excluded = [match.start() for term in terms.without for match in term.pattern.finditer(lower)]
    result = {}
    for inside in (item for window in context.span.windows() for item in passages(text, window.start, window.stop)):
        places = sorted((at, number) for number, of_term in enumerate(starts) for at in of_term if at in inside)
        counts = {number: min(sum(number == item for _, item in places), 3) for _, number in places}
        if not places or any(at in inside for at in excluded) or not {*range(terms.phrases)} <= {*counts}:
            continue
        score = sum(weights[number] * count * 1.5 / (count + 0.5) for number, count in counts.items())
        gaps = [(b - a, {x, y}) for (a, x), (b, y) in pairwise(places) if x != y]
        for number in counts if gaps else ():
            score += 0.3 * weights[number] / (1 + min(gap for gap, pair in gaps if number in pair) / 80)
        result[inside.start] = score
    return result


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_bm25_in_memory(seed: int) -> None:
    dice = Random(seed)
    text = "".join(dice.choice(WORDS) + dice.choice(["", " ", " ", ". ", "." * 300, "\n"]) for _ in range(3_000))
    publish(text, "memory://bm25", replace=True, frame_bytes=dice.choice([512, 4096]), filters=seed % 3 > 0)
    for _ in range(8):
        query = " ".join(dice.choice(["", "", "-"]) + word for word in ["error", *dice.sample(WORDS, 2)])
        query += dice.choice(["", ' "error id"', ' "to"'])
        with Monocontext.open("memory://bm25") as context:
            expected = scored_passages(context, text, query)
            result = context.search(query, k=(k := dice.choice([1, 5, 500])), max_bytes=1 << 40)
            best = sorted(expected.values(), reverse=True)[:k]
            assert [passage.score for passage in result] == pytest.approx(best, abs=2e-9), query
            scores = {passage.start: passage.score for passage in result}
            assert scores == pytest.approx({start: expected[start] for start in scores}, abs=2e-9), query
