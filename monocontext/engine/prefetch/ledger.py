"""Account for the bytes that are fetched ahead and not used yet: the budget of speculation.

Bytes count from the moment they are planned until a caller reads them or they are no longer expected.

Invariants:
- at most the share of each kind is outstanding, and in all at most the largest share: callers ask `room_bytes` before
  `expect`
- a frame is in the ledger once
"""

from __future__ import annotations

from collections import OrderedDict
from enum import Enum

from monocontext.records import dataclass

GUESSED_SHARE = 0.25
"""The share of the cache for predictions from earlier reads. Without a common limit, growing read-ahead is worse than
none once it exceeds the cache (simulated: 14 s of stall, and 10 GB moved for 126 MB of need)."""
NAMED_SHARE = 0.5
"""The share of the cache for reads that code or a caller announces; all of it if the text fits, since nothing is
evicted then."""
STALE_READS = 64
"""The number of reads after which an unused guess counts as wrong: four for each of 16 streams."""


class Kind(Enum):
    """The source of an expectation."""

    KNOWN = "known"
    """Code announces the read."""
    ASKED = "asked"
    """A caller asked for it with `prefetch`."""
    GUESSED = "guessed"
    """Earlier reads or searches suggest it."""


@dataclass(slots=True)
class _LedgerEntry:
    size_bytes: int
    stream: int | None
    since: int
    """The value of `_reads` when the frame was expected."""


class Ledger:
    """The frames that one reader expects a caller to use. Its owner holds the lock."""

    def __init__(self, capacity_bytes: int, text_bytes: int):
        named = capacity_bytes if text_bytes <= capacity_bytes else int(capacity_bytes * NAMED_SHARE)
        guessed = int(capacity_bytes * GUESSED_SHARE)
        self.share_bytes = {Kind.KNOWN: named, Kind.ASKED: named, Kind.GUESSED: guessed}
        """The most outstanding bytes of each kind."""
        self.kinds: dict[int, Kind] = {}
        """The kind of each outstanding frame."""
        self.outstanding_bytes = dict.fromkeys(Kind, 0)
        """Bytes expected and not yet settled, by kind."""
        self._largest_share = max(self.share_bytes.values())
        self._entries: dict[Kind, OrderedDict[int, _LedgerEntry]] = {kind: OrderedDict() for kind in Kind}
        self._reads = 0

    def __contains__(self, frame: int) -> bool:
        return frame in self.kinds

    def __len__(self) -> int:
        return len(self.kinds)

    def room_bytes(self, kind: Kind) -> int:
        """How many more bytes may be expected; may be 0 or less."""
        outstanding = sum(self.outstanding_bytes.values())
        return min(self.share_bytes[kind] - self.outstanding_bytes[kind], self._largest_share - outstanding)

    def expect(self, frame: int, kind: Kind, size_bytes: int, stream: int | None = None) -> None:
        """Record that a frame is fetched ahead. It must not be in the ledger.

        `stream`: the number of the stream that predicted it.
        """
        assert frame not in self.kinds
        self.kinds[frame] = kind
        self._entries[kind][frame] = _LedgerEntry(size_bytes, stream, self._reads)
        self.outstanding_bytes[kind] += size_bytes

    def settle(self, frame: int) -> bool:
        """Record that a frame was used, or will not arrive. Returns whether it was expected."""
        kind = self.kinds.pop(frame, None)
        if kind is None:
            return False
        self.outstanding_bytes[kind] -= self._entries[kind].pop(frame).size_bytes
        return True

    def read(self) -> tuple[list[int], set[int]]:
        """Record that a read has ended.

        Settles the guesses that have become stale; returns their frames, and the streams that made them.
        """
        self._reads += 1
        guesses = self._entries[Kind.GUESSED]
        stale = []
        for frame, entry in guesses.items():  # oldest first
            if entry.since + STALE_READS > self._reads:
                break
            stale.append(frame)
        streams = {stream for frame in stale if (stream := guesses[frame].stream) is not None}
        for frame in stale:
            self.settle(frame)
        return stale, streams

    def frames(self, kind: Kind) -> list[int]:
        """The outstanding frames of a kind, oldest first."""
        return list(self._entries[kind])
