"""Pick the names out of a passage that a model has just read: it may look for one of them next. Pure.

A text leads on by names: `see warehouse Alkonost`, `txn=ab12cd34`, `spline_table`. What stands once in a whole frame of
the text is rarely a word of the language.
"""

from __future__ import annotations

import re

BEFORE, AFTER = 200, 1_500
"""Characters of the passage around a hit: what models print of it."""
MOST_NAMES = 4
"""Names looked up from one passage: each costs a few filter rows, one request each."""
_WORD = re.compile(r"[^\W_](?:\w{4,30})\w(?!\w)")
"""Names of at least six characters: shorter ones set few grams."""


def names_in(passage: str, frame: bytes) -> list[str]:
    """Words of the passage that stand once in the frame that holds it, those with capitals or digits first; where more
    than `MOST_NAMES` of these do, as in a log, none is likelier than the next, and there are none."""
    words = [word for word in dict.fromkeys(_WORD.findall(passage)) if frame.count(word.encode()) == 1]
    likely = [word for word in words if not _is_plain(word)]
    if len(likely) > MOST_NAMES:
        return []
    return [*likely, *sorted(filter(_is_plain, words), key=len, reverse=True)][:MOST_NAMES]


def rarest_in(needle: str) -> str | None:
    """The word of a needle that a text of another kind may have too: code that has found `def spline_table(` looks for
    `spline_table` next."""
    words = [word for word in _WORD.findall(needle) if not _is_plain(word)]
    return max(words, key=len, default=None)


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.islower()
