"""Find all occurrences of many words in a text, in one pass. Pure.

A search for the first letters of many words would stop at nearly every letter. This one stops at the rarest letter of
each word, and compares the letters before and after it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

_T = TypeVar("_T")

_COMMON = " etaoinsrlcdum.pfhgby0_12:w3kv"
"""Letters of source code and prose, the most frequent first. All others are rarer."""


class WordFinder(Generic[_T]):
    """Finds words in a text, and yields the values of each."""

    def __init__(self, rows: Iterable[tuple[str, _T]], before: str = "") -> None:
        """`rows`: words, each with a value. `before`: a zero-width pattern that must match where a word begins.

        A word that begins with a shorter one is not searched for by itself: its value goes to the shorter one.
        """
        rows = list(rows)
        words = {word for word, _ in rows}
        self._rows = defaultdict[str, list[_T]](list)
        for word, row in rows:
            short = next(word[:n] for n in range(1, len(word) + 1) if word[:n] in words)
            if row not in self._rows[short]:
                self._rows[short].append(row)
        ends = defaultdict[str, list[tuple[str, int]]](list)
        by_first = defaultdict[str, set[str]](set)
        for word in sorted(self._rows):
            at = min(range(max(1, len(word) - 1)), key=lambda i: (-_rarity(word[i]), i))
            ends[word[at:]].append((word, at))
            tail = re.escape(word[at + 1 :])
            by_first[word[at]].add(f"{tail}(?<={before}{re.escape(word)})" if at or before else tail)
        self._ends = {
            tail: [one for part in (tail[:n] for n in range(1, len(tail) + 1)) for one in ends.get(part, ())]
            for tail in ends
        }
        """The words that may be around a match, by its text: each with the offset of the match in the word. A match is
        a word from its rarest letter on."""
        self._pattern = re.compile(
            "|".join(
                f"{re.escape(first)}(?:{'|'.join(sorted(tails, key=len, reverse=True))})"
                for first, tails in sorted(by_first.items())
            )
        )

    def find(self, text: str, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int, list[_T]]]:
        """Yield the start, the stop and the values of each word found between `start` and `stop`."""
        at, end = start, len(text) if stop is None else stop
        while hit := self._pattern.search(text, at, end):
            at = hit.start() + 1  # words may overlap
            for word, lead in self._ends[hit[0]]:
                if text.startswith(word, begin := hit.start() - lead):
                    yield begin, begin + len(word), self._rows[word]


def _rarity(letter: str) -> int:
    """The rank of a letter in `_COMMON`; rarer letters have a greater one."""
    return _COMMON.find(letter) if letter in _COMMON else len(_COMMON)
