"""Keep decoded texts of cached frames that are read again and again, counted at their real size.

They take what room a cache has left, and go before anything else does: to decode a frame takes a tenth of a
millisecond, to fetch one takes many.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Hashable
from typing import Protocol

from monocontext.records import dataclass, field

MOST_BYTES = 4
"""Maximum bytes per character of a `str`."""


class Decodable(Protocol):
    """A frame: its decoded text, while it is kept, and what slices spent on decoding."""

    whole: str | None
    spent: int


@dataclass(slots=True)
class DecodedTexts:
    """The decoded texts of some frames, in the order in which they came. Not thread-safe: its cache is not either."""

    size_bytes: int = 0
    """A `str` takes one, two or four bytes a character, as its largest character asks for."""
    _kept: OrderedDict[Hashable, tuple[Decodable, int]] = field(default_factory=OrderedDict)

    def keep(self, key: Hashable, frame: Decodable, whole: str) -> None:
        self.drop(key)
        size_bytes = sys.getsizeof(whole)
        self._kept[key] = frame, size_bytes
        self.size_bytes += size_bytes
        frame.whole = whole

    def drop(self, key: Hashable) -> None:
        """Give up the text of a frame, if it is kept."""
        found = self._kept.pop(key, None)
        if found is not None:
            frame, size_bytes = found
            self.size_bytes -= size_bytes
            frame.whole, frame.spent = None, 0

    def drop_oldest(self) -> None:
        self.drop(next(iter(self._kept)))

    def clear(self) -> None:
        for key in list(self._kept):
            self.drop(key)
