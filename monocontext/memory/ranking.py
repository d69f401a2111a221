"""Rank the entries of a memory by how well they match some words. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from monocontext.globs import Globs
from monocontext.memory.entry import Entry, Ranked
from monocontext.options import check_int
from monocontext.text.search.scoring import Scorer, weigh
from monocontext.text.search.terms import parse


def rank(entries: Iterable[Entry], query: str, k: int) -> list[Ranked]:
    """The best `k` entries, each with its best passage; of equal scores the first.

    The key counts as a line above its value, and `doc:GLOB` in a query matches keys.
    """
    k = check_int("k", k, 1)
    terms = parse(query)
    scoring = terms.scoring
    count, holding = 0, Counter[int]()
    passages: list[tuple[str, int, str, list[tuple[int, int]]]] = []
    globs = Globs(terms.documents)
    finder = Scorer(terms, dict.fromkeys(scoring, 1.0))
    for entry in entries:
        if not globs.select(entry.key):
            continue
        count += 1
        has: set[int] = set()
        text = f"{entry.key}\n{entry.value}"
        for one in finder.score(text):
            has |= {term for _, term in one.places}
            shown = text[one.start or len(entry.key) + 1 : one.stop]
            passages.append((entry.key, text.count("\n", 0, one.start), shown, one.places))
        holding.update(has)
    scorer = Scorer(terms, {term: weigh(count, holding[number]) for number, term in enumerate(scoring)})
    best: dict[str, Ranked] = {}
    for key, line, shown, places in passages:
        score = scorer.add_up(places)
        if key not in best or score > best[key].score:
            best[key] = Ranked(key, max(line, 1), shown, score)
    return sorted(best.values(), key=lambda one: -one.score)[:k]
