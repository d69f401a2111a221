"""Score a text by the distinctive words of an answer that occur in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

_WORD = re.compile(r"\w+")
_THOUSANDS = re.compile(r"(?<=\d)[,_](?=\d{3}(?!\d))")
_MOST_WORDS = 200
"""The most words of an answer that are compared."""
_COMMON = frozenset((
    "about", "after", "also", "answer", "because", "been", "before", "between", "both", "context", "does", "each",
    "exactly", "false", "file", "final", "first", "found", "from", "have", "here", "into", "item", "items", "just",
    "last", "line", "lines", "more", "most", "none", "null", "only", "other", "over", "same", "second", "some",
    "string", "such", "text", "than", "that", "their", "them", "then", "there", "these", "they", "this", "those",
    "three", "true", "under", "value", "very", "were", "what", "when", "where", "which", "while", "whole", "will",
    "with", "word", "words", "would", "your",
))  # fmt: skip
"""Words that occur in any answer, so their places are no evidence."""


class Words:
    """The distinctive words of an answer: long or rare words, and numbers of two digits or more."""

    def __init__(self, answer: str) -> None:
        self._weights = dict(list(_weights(answer))[:_MOST_WORDS])

    @property
    def are_distinctive(self) -> bool:
        """Whether the answer has a distinctive word."""
        return bool(self._weights)

    @property
    def total(self) -> int:
        """The score of a text with all of these words."""
        return sum(self._weights.values())

    def score(self, text: str) -> int:
        """The count of distinct answer words in the text; a number counts three times."""
        return sum(self._weights.get(word, 0) for word in {word for word, _, _ in _words(text)})

    def places(self, text: str) -> list[tuple[int, int]]:
        """The ranges of the answer's words in the text, numbers first."""
        found = [(self._weights[word], start, stop) for word, start, stop in _words(text) if word in self._weights]
        return [(start, stop) for _, start, stop in sorted(found, key=lambda one: -one[0])]


def _weights(answer: str) -> Iterator[tuple[str, int]]:
    for word, _, _ in _words(answer):
        has_digit = any(map(str.isdecimal, word))
        if len(word) >= 2 if has_digit or not word.isascii() else len(word) >= 4 and word not in _COMMON:
            yield word, 3 if has_digit else 1


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    """Each word with its start and stop: in lower case, numbers also without their thousands separators.

    Scripts without spaces between words give pairs of characters instead.
    """
    for found in _WORD.finditer(text):
        word, start = found[0].casefold(), found.start()
        if any(character >= "\u2e80" for character in word):
            yield from ((word[i : i + 2], start + i, start + i + 2) for i in range(max(1, len(word) - 1)))
        else:
            yield word, start, found.end()
    for found in re.finditer(r"\d{1,3}(?:[,_]\d{3})+(?!\d)", text):
        yield _THOUSANDS.sub("", found[0]), found.start(), found.end()
