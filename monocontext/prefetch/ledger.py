"""What was fetched ahead and not used yet: the budget of speculation. Pure.

Bytes count from the moment they are planned until a caller looks at them or nobody expects them any more.

Invariants:
- of each kind no more is outstanding than its share of the cache, and of all no more than the largest share;
- a frame is in the ledger once.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from enum import Enum

GUESSED_SHARE = 0.25
"""Of the cache, for what follows from reads before: windows that grow without a common limit are worse than none as
soon as they are larger than the cache together (simulated: 14 s of stall, and 10 GB moved for 126 MB of need)."""
NAMED_SHARE = 0.5
"""The same for what code or its caller says will be read; all of the cache where the text fits in, since nothing is
flushed then."""
STALE_READS = 64
"""Reads elsewhere after which a guess was wrong: four for each of 16 streams."""


class Kind(Enum):
    """Why a frame is expected."""

    KNOWN = "known"
    """Code says so."""
    ASKED = "asked"
    """The caller did, by `prefetch`."""
    GUESSED = "guessed"
    """Reads before it do."""


@dataclass(slots=True)
class _Entry:
    size_bytes: int
    stream: int | None
    since: int


class Ledger:
    """The books of one reader. Its owner holds the lock."""

    def __init__(self, capacity_bytes: int, text_bytes: int):
        named = capacity_bytes if text_bytes <= capacity_bytes else int(capacity_bytes * NAMED_SHARE)
        guessed = int(capacity_bytes * GUESSED_SHARE)
        self.share_bytes = {Kind.KNOWN: named, Kind.ASKED: named, Kind.GUESSED: guessed}
        self.outstanding_bytes = dict.fromkeys(Kind, 0)
        self._entries: dict[Kind, OrderedDict[int, _Entry]] = {kind: OrderedDict() for kind in Kind}
        self._reads = 0

    def __contains__(self, frame: int) -> bool:
        return any(frame in entries for entries in self._entries.values())

    def __len__(self) -> int:
        return sum(map(len, self._entries.values()))

    def room_bytes(self, kind: Kind) -> int:
        """How much more may be outstanding."""
        outstanding = sum(self.outstanding_bytes.values())
        return min(self.share_bytes[kind] - self.outstanding_bytes[kind], max(self.share_bytes.values()) - outstanding)

    def expect(self, frame: int, kind: Kind, size_bytes: int, stream: int | None = None) -> None:
        """A frame is about to be fetched ahead."""
        assert frame not in self
        self._entries[kind][frame] = _Entry(size_bytes, stream, self._reads)
        self.outstanding_bytes[kind] += size_bytes

    def settle(self, frame: int) -> bool:
        """It was used, or will not come; whether it was expected."""
        for kind, entries in self._entries.items():
            entry = entries.pop(frame, None)
            if entry is not None:
                self.outstanding_bytes[kind] -= entry.size_bytes
                return True
        return False

    def read(self) -> tuple[list[int], set[int]]:
        """A read has ended: guesses that are stale now, and their streams. They are settled."""
        self._reads += 1
        guesses = self._entries[Kind.GUESSED]
        stale = []
        for frame, entry in guesses.items():
            if entry.since + STALE_READS > self._reads:
                break
            stale.append(frame)
        streams = {stream for frame in stale if (stream := guesses[frame].stream) is not None}
        for frame in stale:
            self.settle(frame)
        return stale, streams

    def frames(self, kind: Kind) -> list[int]:
        """Those that are outstanding."""
        return list(self._entries[kind])

    def drop(self, kind: Kind) -> None:
        """Nothing of this kind will come or be used."""
        self._entries[kind].clear()
        self.outstanding_bytes[kind] = 0
