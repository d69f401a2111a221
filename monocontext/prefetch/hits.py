"""Where searches found something: a window around a hit is what a model reads next. Pure."""

from __future__ import annotations

from collections import OrderedDict

HITS = 32
"""The last hits that are remembered: a model looks at some of them, not at ten thousand."""
WINDOW = 2_000
"""Characters on either side that such a window reaches: models take 300 to 1500."""


class Hits:
    """The last hits, as windows of characters. Its owner holds the lock."""

    def __init__(self, characters: int):
        self._characters = characters
        self._windows: OrderedDict[int, tuple[int, int]] = OrderedDict()

    def found(self, character: int) -> None:
        """A search found something that begins here. Of one search the first count, and it says so once each."""
        window = max(0, character - WINDOW), min(character + WINDOW, self._characters)
        self._windows[character] = window
        self._windows.move_to_end(character)
        if len(self._windows) > HITS:
            self._windows.popitem(last=False)

    def windows(self) -> list[tuple[int, int]]:
        """Those not given before, the newest first; then they are forgotten."""
        found = list(reversed(self._windows.values()))
        self._windows.clear()
        return found
