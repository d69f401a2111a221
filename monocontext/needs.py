"""What a text must contain to be worth looking at: literals, joined by AND and OR. Pure.

A search says what it needs, a filter says where that may be. A text without what is needed has no match, so a frame or
a window can be asked for it before an engine is. Never false negative: what is not certain is left out. (The idea is
that of the index filters in Cox, "Regular Expression Matching with a Trigram Index", 2012; here with substrings of any
length in place of trigrams.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass

INFINITE = 1 << 62
"""No limit."""


@dataclass(frozen=True, slots=True)
class Literal:
    """A string that occurs in every match, or in what look-ahead sees after it."""

    text: str
    flags: int = 0
    """0, or `re.I` (with `re.A`, if that was in force): then it may occur in another case.

    Other than ASCII letters can stand for one: under `re.I` U+212A for k, U+017F for s, U+0130 and U+0131 for i.
    """
    earliest: int = 0
    """At least so many characters after the start of the match."""
    latest: int = 0
    """At most so many; `INFINITE` if there is no limit."""

    def occurs_in(self, text: str) -> bool:
        """Whether the text has it, as `re` compares."""
        return bool(re.search(re.escape(self.text), text, self.flags)) if self.flags else self.text in text


@dataclass(frozen=True, slots=True)
class All:
    """Each of these."""

    needs: tuple[Need, ...]


@dataclass(frozen=True, slots=True)
class Any:
    """At least one of these."""

    needs: tuple[Need, ...]


Need = Literal | All | Any


def may_match(need: Need | None, text: str) -> bool:
    """False only if what has this need matches nowhere in the text."""
    match need:
        case None:
            return True
        case Literal():
            return need.occurs_in(text)
        case All(needs):
            return all(may_match(one, text) for one in needs)
        case Any(needs):
            return any(may_match(one, text) for one in needs)


def literals(need: Need | None) -> tuple[Literal, ...]:
    """Every literal in it, in order."""
    match need:
        case None:
            return ()
        case Literal():
            return (need,)
        case All(needs) | Any(needs):
            return tuple(literal for one in needs for literal in literals(one))


def longest(need: Need | None, within: int = 2 * INFINITE) -> Literal | None:
    """The one literal that is best looked for first, of those that end `within` so many characters of the start."""
    needs = need.needs if isinstance(need, All) else (need,)
    found = [one for one in needs if isinstance(one, Literal) and one.latest + len(one.text) <= within]
    return max(found, key=lambda literal: len(literal.text), default=None)
