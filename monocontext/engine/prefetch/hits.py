"""What searches found, as a guide to the next reads: windows of text around hits, and names to search for.

A text leads on by names: `see warehouse Alkonost`, `txn=ab12cd34`, `spline_table`. A word that occurs only once in a
frame of the text is rarely a common word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from monocontext.engine.frame import FrameText
from monocontext.records import dataclass, field

HITS = 32
"""The most hits that are remembered: a model looks at the first ones, not at ten thousand."""
WINDOW = 10_000
"""Characters of a window on either side of its hit: models take 300 to 1500 at first, and up to 9000 when that was not
enough. It costs a frame more if the hit is so near to the frame's end: 8 % of hits in ASCII."""


@dataclass(slots=True, eq=False)
class HitWindows:
    """The first hits since a model thought last. Its owner holds the lock."""

    _characters: int
    _windows: dict[tuple[int, int], None] = field(default_factory=dict)

    def found(self, character: int) -> bool:
        """Remember a hit that begins at this character, unless there are `HITS` already; returns whether it does."""
        if len(self._windows) >= HITS:
            return False
        self._windows[max(0, character - WINDOW), min(character + WINDOW, self._characters)] = None
        return True

    def windows(self) -> list[tuple[int, int]]:
        """Return and forget the windows of the hits, in the order in which they were found."""
        result = list(self._windows)
        self._windows.clear()
        return result


# -- names -------------------------------------------------------------------------------------------------------------

LOOK_UPS = 4
"""Names that are looked up before code has searched for any of them, and once more for each that it searches for: they
take some five requests each."""
NEEDLES = 2
"""The most needles with hits whose other places are looked up, in rows that are mostly in memory."""
FREE_BYTES = 64 << 10
"""Bytes of filter rows that may be fetched for names whatever callers used. A row of 10 GB of text is 5 KB long."""
BEFORE, AFTER = 200, 1_500
"""Characters of the passage around a hit that models usually print."""
MOST_NAMES = 4
"""Names looked up from one passage: each costs a few filter rows, one request each."""
_NAME = re.compile(r"[^\W_](?:\w{4,30})\w(?!\w)")
"""Names of 6 to 32 characters. Shorter ones have too few n-grams for a search filter to exclude much."""


class Names:
    """The names of one reader's text that may be searched for. Its owner holds the lock."""

    def __init__(self) -> None:
        self._needle = ""
        self._needles_with_hits: dict[str, None] = {}
        self._passages: list[tuple[int, int, int]] = []
        """Characters [start, stop) around each hit, and the number of its frame."""
        self._expected: set[str] = set()
        """Names that were looked up, and that no code has searched for."""
        self._look_ups_left = LOOK_UPS
        self._cost_bytes = 0

    def searched(self, needle: str) -> None:
        """Record that a search for this text has begun."""
        self._needle = needle
        if self._expected:
            results = {name for name in list(self._expected) if name in needle}
            self._expected -= results
            self._look_ups_left += LOOK_UPS * len(results)

    def hit(self, character: int, frame: int) -> None:
        """Record that the search has found its text here."""
        self._passages.append((character - BEFORE, character + AFTER, frame))
        self._needles_with_hits[self._needle] = None

    @property
    def has_hits(self) -> bool:
        """Whether a search has found something since `take`."""
        return bool(self._needles_with_hits)

    def take(
        self, text_of: Callable[[int], object], cost_of: Callable[[str], int], most_cost_bytes: int
    ) -> Iterator[str]:
        """The names to look up now: needles whose other places may be read, then names around the hits.

        `text_of`: the text of a frame by its number, if it is in memory. `cost_of`: the bytes that looking up a name
        takes; all look-ups take at most `most_cost_bytes` plus `FREE_BYTES`.
        """
        for needle in list(self._needles_with_hits)[:NEEDLES]:
            yield from filter(None, dict.fromkeys((needle, longest_name_in(needle))))
        self._needles_with_hits.clear()
        passages, self._passages = self._passages, []
        for start, stop, number in passages:
            text = text_of(number)
            if not isinstance(text, FrameText) or not self._look_ups_left:
                continue
            for name in names_in(text.part(start, stop), text.data):
                cost_bytes = cost_of(name)
                if self._look_ups_left and self._cost_bytes + cost_bytes <= FREE_BYTES + most_cost_bytes:
                    self._look_ups_left -= 1
                    self._cost_bytes += cost_bytes
                    self._expected.add(name)
                    yield name


def names_in(passage: str, frame: bytes) -> list[str]:
    """The names in a passage that occur once in its frame, those with capitals or digits first; at most `MOST_NAMES`.
    None if more have capitals or digits, as in a log: then none is likelier than another."""
    words = [word for word in dict.fromkeys(_NAME.findall(passage)) if frame.count(word.encode()) == 1]
    likely = [word for word in words if not _is_plain(word)]
    if len(likely) > MOST_NAMES:
        return []
    return [*likely, *sorted(filter(_is_plain, words), key=len, reverse=True)][:MOST_NAMES]


def longest_name_in(needle: str) -> str | None:
    """The longest name in a needle, with capitals, digits or underscores; None if there is none. Code that has found
    `def spline_table(` looks for `spline_table` next."""
    words = [word for word in _NAME.findall(needle) if not _is_plain(word)]
    return max(words, key=len, default=None)


def _is_plain(word: str) -> bool:
    return word.isalpha() and word.islower()
