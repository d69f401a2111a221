"""`search` against BM25 over all passages of a text in memory."""

from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest

from monocontext import Monocontext, publish
from monocontext.text.search.ranked import _ask_filters, _weigh
from monocontext.text.search.scoring import PASSAGE_CHARACTERS
from monocontext.text.search.terms import lower_ascii, parse

WORDS = [
    "error", "id", "to", "run", "running", "policies", "東京", "東京都", "哈哈哈", "café", "cafe", "йод", "한국", "a-b",
]  # fmt: skip


def best_passages(context: Monocontext, text: str, query: str) -> list[tuple[float, int]]:
    """Minus the score of each passage, and its first character; best first."""
    terms, lower = parse(query), lower_ascii(text).decode()
    weights = _weigh(context.span, terms, _ask_filters(context.span, terms)[1], may_read=True)
    starts = [[match.start() for match in term.pattern.finditer(lower)] for term in terms.scoring]
    excluded = [match.start() for term in terms.without for match in term.pattern.finditer(lower)]
    results = []
    for window in context.span.windows():
        starts_of_passages = range(window.start, window.stop, PASSAGE_CHARACTERS)
        newlines = [text.find("\n", at - 1, min(at + PASSAGE_CHARACTERS - 1, window.stop)) for at in starts_of_passages]
        cuts = [newline + 1 or at for newline, at in zip(newlines, starts_of_passages, strict=True)]
        for inside in map(range, [window.start, *cuts[1:]], [*cuts[1:], window.stop]):
            places = sorted((at, number) for number, of_term in enumerate(starts) for at in of_term if at in inside)
            counts = {number: min(sum(number == item for _, item in places), 3) for _, number in places}
            if not places or any(at in inside for at in excluded) or not {*range(terms.phrases)} <= {*counts}:
                continue
            score = sum(weights[number] * count * 1.5 / (count + 0.5) for number, count in counts.items())
            gaps = [(b - a, {x, y}) for (a, x), (b, y) in pairwise(places) if x != y]
            for number in counts if gaps else ():
                score += 0.3 * weights[number] / (1 + min(gap for gap, pair in gaps if number in pair) / 80)
            results.append((-round(score, 9), inside.start))
    return sorted(results)


@pytest.mark.parametrize("seed", range(6))
def test_equal_to_bm25_in_memory(seed: int) -> None:
    dice = Random(seed)
    text = "".join(dice.choice(WORDS) + dice.choice(["", " ", " ", ". ", "." * 300, "\n"]) for _ in range(3_000))
    publish(text, "memory://bm25", replace=True, frame_bytes=dice.choice([512, 4096]), filters=seed % 3 > 0)
    for _ in range(8):
        query = " ".join(dice.choice(["", "", "-"]) + word for word in ["error", *dice.sample(WORDS, 2)])
        query += dice.choice(["", ' "error id"', ' "to"'])
        with Monocontext.open("memory://bm25") as context:
            expected = best_passages(context, text, query)[: (k := dice.choice([1, 5, 500]))]
            result = context.search(query, k=k, max_bytes=1 << 40)
            assert [(-passage.score, passage.start) for passage in result] == expected, query
