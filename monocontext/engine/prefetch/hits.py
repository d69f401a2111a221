"""Remember the hits of searches as windows of characters, which a model may read next."""

from __future__ import annotations

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
        found = list(self._windows)
        self._windows.clear()
        return found
