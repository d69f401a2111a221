"""Represent queries: the literals that a text must contain to match, joined by AND and OR.

A text that does not satisfy the query of a pattern has no match, so filters and windows are tested for literals before
a regex engine runs. A query has no false negatives: only certain literals are part of it. The idea is from Cox,
"Regular Expression Matching with a Trigram Index", 2012, with substrings of any length instead of trigrams.
"""

from __future__ import annotations

from monocontext.records import dataclass

INFINITE = 1 << 62  # no limit


@dataclass(frozen=True, slots=True)
class Literal:
    """A string that occurs in every match, or in the text that a look-ahead sees after it."""

    text: str
    flags: int = 0
    """`re.I` if the literal may occur in another case, with `re.A` if the pattern has it; else 0. With `re.I` alone,
    U+212A matches k, U+017F s, U+0130 and U+0131 i."""
    earliest: int = 0
    """The least number of characters from the start of the match to the literal."""
    latest: int = 0
    """The most characters from the start of the match to the literal; `INFINITE` for no limit."""


@dataclass(frozen=True, slots=True)
class FrequencyQuery:
    """A query for frames in which one of some words occurs often. It ranks frames, and rules out none."""

    words: tuple[str, ...]
    """The words, in folded form."""
    level: int
    """How often one of them must occur, as an index of `grams.LEVELS`."""


@dataclass(frozen=True, slots=True)
class All:
    """A query that a text satisfies if it satisfies all of these queries."""

    queries: tuple[Query, ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A query that a text satisfies if it satisfies at least one of these queries."""

    queries: tuple[Query, ...]


Query = Literal | FrequencyQuery | All | AnyOf


def leaves(query: Query | None) -> tuple[Literal | FrequencyQuery, ...]:
    """The literals and frequency queries in a query, in order; none for None."""
    if isinstance(query, All | AnyOf):
        return tuple(leaf for part in query.queries for leaf in leaves(part))
    return () if query is None else (query,)


def requires(query: Query | None, text: str) -> bool:
    """Whether the query says that every match contains this text."""
    match query:
        case Literal():
            return text in query.text
        case All(parts):
            return any(requires(part, text) for part in parts)
        case AnyOf(parts):
            return all(requires(part, text) for part in parts)
        case _:
            return False


def longest_literal(query: Query | None, within: int = 2 * INFINITE) -> Literal | None:
    """The longest required literal that ends at most `within` characters after the start of a match, or `None`."""
    parts = query.queries if isinstance(query, All) else (query,)
    results = [part for part in parts if isinstance(part, Literal) and part.latest + len(part.text) <= within]
    return max(results, key=lambda literal: len(literal.text), default=None)
