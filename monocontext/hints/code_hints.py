"""Hints out of a reply as it streams in."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping

from monocontext.hints.hint import Hint, Ranges

_LITERAL = re.compile(r"\b(\w+)\[\s*(-?[\d_]+)?\s*:\s*(-?[\d_]+)?\s*\]")
_MOST_HINTS = 256


class CodeHints:
    """Hints of one conversation. Not thread-safe: one stream feeds it."""

    def __init__(
        self,
        characters: int,
        *,
        lines: int | None = None,
        names: Iterable[str] = ("context",),
        fenced: bool | None = None,
    ) -> None:
        self._characters = characters
        self._names = frozenset(names)
        self._text = ""
        self._seen: set[Hint] = set()

    def begin(self) -> None:
        """A new reply starts. What earlier blocks defined is still known."""
        self._text = ""
        self._seen = set()

    def feed(self, delta: str) -> list[Hint]:
        """What became known by this piece of the reply; each hint once a reply."""
        self._text = (self._text + delta)[-4096:]
        return self._fresh(_literals(self._text, self._characters, self._names))

    def end(self) -> list[Hint]:
        """The reply is complete: what a block without a closing fence still had to say."""
        return []

    def _fresh(self, hints: Iterable[Hint]) -> list[Hint]:
        fresh = [hint for hint in dict.fromkeys(hints) if hint not in self._seen][: _MOST_HINTS - len(self._seen)]
        self._seen.update(fresh)
        return fresh


def read_block(
    source: str | ast.Module,
    characters: int,
    *,
    lines: int | None = None,
    names: Iterable[str] = ("context",),
    known: Mapping[str, object] | None = None,
) -> list[Hint]:
    """Everything that a complete block says it will read, in the order of execution."""
    text = source if isinstance(source, str) else ast.unparse(source)
    return _literals(text, characters, frozenset(names))


def _literals(text: str, characters: int, names: frozenset[str]) -> list[Hint]:
    hints: list[Hint] = []
    for match in _LITERAL.finditer(text):
        if match[1] not in names:
            continue
        try:
            bounds = slice(*(int(group) if group else None for group in match.group(2, 3)))
        except ValueError:  # 4,300 digits and more
            continue
        start, stop, _ = bounds.indices(characters)
        if start < stop:
            hints.append(Ranges(start, stop - start, stop - start, 1, is_literal=True))
    return hints
