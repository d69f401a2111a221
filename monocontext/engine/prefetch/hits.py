"""Remember the hits of searches as windows, and the names around them, for which a model may look next.

A text leads on by names: `see warehouse Alkonost`, `txn=ab12cd34`, `spline_table`. A word that occurs only once in a
frame of the text is rarely a common word.
"""

from __future__ import annotations

import re

from monocontext.records import dataclass, field

HITS = 32
"""Hits that are remembered: a model looks at the first ones, not at ten thousand."""
WINDOW = 10_000
"""Characters on either side that such a window reaches: models take 300 to 1500 at first, and up to 9000 when that was
not enough. It costs a frame more where the hit is so near to the frame's end: 8 % of hits in ASCII."""


@dataclass(slots=True, eq=False)
class HitWindows:
    """The first hits since a model thought last, as windows of characters. Its owner holds the lock."""

    _characters: int
    _windows: dict[tuple[int, int], None] = field(default_factory=dict)

    def found(self, character: int) -> bool:
        """A search found something that begins here; whether it is remembered."""
        if len(self._windows) >= HITS:
            return False
        self._windows[max(0, character - WINDOW), min(character + WINDOW, self._characters)] = None
        return True

    def windows(self) -> list[tuple[int, int]]:
        """Return and forget the hits since the last call, in order."""
        found = list(self._windows)
        self._windows.clear()
        return found


BEFORE, AFTER = 200, 1_500
"""Characters of the passage around a hit that models usually print."""
MOST_NAMES = 4
"""Names looked up from one passage: each costs a few filter rows, one request each."""
_NAME = re.compile(r"[^\W_](?:\w{4,30})\w(?!\w)")
"""Names of at least six characters: shorter ones set few grams."""


def names_in(passage: str, frame: bytes) -> list[str]:
    """Words of the passage that occur once in its frame, those with capitals or digits first. If there are more than
    `MOST_NAMES`, as in a log, none is likelier than another, and the result is empty."""
    words = [word for word in dict.fromkeys(_NAME.findall(passage)) if frame.count(word.encode()) == 1]
    likely = [word for word in words if not _is_plain(word)]
    if len(likely) > MOST_NAMES:
        return []
    return [*likely, *sorted(filter(_is_plain, words), key=len, reverse=True)][:MOST_NAMES]


def rarest_in(needle: str) -> str | None:
    """The word of a needle that a text of another kind may have too: code that has found `def spline_table(` looks for
    `spline_table` next."""
    words = [word for word in _NAME.findall(needle) if not _is_plain(word)]
    return max(words, key=len, default=None)


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.islower()
