"""A reader's workers on a virtual clock, behind a link that all requests share."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from random import Random

from monocontext.engine.fetch.scheduler import RangeRequest
from monocontext.stores.http.connection import SilenceTimeout
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import SimulatedWorkers, VirtualClock, WrappedStore, profile
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND, SimulatedLink

LONGEST_SILENCE_SECONDS = 10.0
"""The default of the transport."""
CONNECTIONS = 64
PIECE_BYTES = 256 << 10
"""A body travels in pieces, so that requests share the link fairly; larger pieces hog it."""


@dataclass(frozen=True, slots=True)
class Distance:
    """How far away a store is."""

    profile: str
    nic_bytes_per_second: float

    @property
    def first_byte_seconds(self) -> float:
        """Of most requests: the median of the profile's first part."""
        return profile(self.profile).parts[0].median_seconds

    @property
    def mean_seconds(self) -> float:
        """To the first byte, on average: what one request after another pays."""
        parts = profile(self.profile).parts
        return sum(part.weight * part.median_seconds * math.exp(part.spread**2 / 2) for part in parts)

    @property
    def bytes_per_second(self) -> float:
        """That many connections carry at most."""
        return min(self.nic_bytes_per_second, CONNECTIONS * CONNECTION_BYTES_PER_SECOND)


class LinkedCrew(SimulatedWorkers):
    """Carries each request out when its last byte would have arrived, and books who waited for how long.

    A request's time to the first byte is drawn from the profile, by the bytes that it asks for: whoever asks for them,
    and when, it takes the same, so that two policies differ by what they do and not by their luck. Asked for again they
    have another draw. The body then comes at the speed of its connection and of what others leave of the link.
    """

    def __init__(self, distance: Distance, seed: int, clock: VirtualClock | None = None) -> None:
        super().__init__(lambda request: 0.0, clock, CONNECTIONS)
        self._profile = profile(distance.profile)
        self._link = SimulatedLink(CONNECTION_BYTES_PER_SECOND, distance.nic_bytes_per_second)
        self._seed = seed
        self._timeout = SilenceTimeout(LONGEST_SILENCE_SECONDS)
        self._asked: Counter[tuple[str, int]] = Counter()
        self.stalled_seconds = 0.0
        """Of code that waited for storage."""

    def submit(self, request: RangeRequest, job: Callable[[], None]) -> bool:
        sent = self.clock.now()
        place = request.object, request.start
        first, silent = self._first_byte(place), 0.0
        silences = 0
        while first > (timeout := self._timeout.for_attempt(silences)) and timeout < LONGEST_SILENCE_SECONDS:
            silent += timeout
            silences += 1
            first = self._first_byte(place)

        def finish() -> None:
            self._timeout.learn(first)
            self._carry(request.stored_bytes, job, 0)

        self._at(sent + silent + first, finish)
        return True

    def _first_byte(self, place: tuple[str, int]) -> float:
        self._asked[place] += 1
        return self._profile.seconds(Random(f"{self._seed} {place} {self._asked[place]}"))

    def _carry(self, size: int, job: Callable[[], None], done: int) -> None:
        """The next piece of a body whose first `done` bytes are here."""
        piece = min(PIECE_BYTES, size - done)
        arrival = self._link.arrival(piece, self.clock.now())
        done += piece
        if done < size:
            self._at(arrival, lambda: self._carry(size, job, done))
        else:
            self._at(arrival, job)

    def _at(self, moment: float, event: Callable[[], None]) -> None:
        heapq.heappush(self._arrivals, (moment, next(self._order), event))

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        began = self.clock.now()
        try:
            return super().wait(ready, until)
        finally:
            self.stalled_seconds += self.clock.now() - began


class MeteredStore(WrappedStore):
    """Counts what is asked of a store, and what of it is no text; whole objects take time on the clock.

    Ranges are asked for by the crew, which has spent their time; roots are read by the caller.
    """

    def __init__(self, store: Store, distance: Distance, clock: VirtualClock, seed: int) -> None:
        super().__init__(store)
        self.is_near = False
        self._distance = distance
        self._profile = profile(distance.profile)
        self._random = Random(f"roots {seed}")
        self._clock = clock
        self.gets = 0
        self.bytes = 0
        self.index_bytes = 0
        """Of these, roots, index pages and blocks of filters."""

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        blob = super().get(key, most_bytes=most_bytes)
        self._clock.advance(
            self._profile.seconds(self._random)
            + len(blob.data) / min(CONNECTION_BYTES_PER_SECOND, self._distance.nic_bytes_per_second)
        )
        return self._count(key, blob)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._count(key, super().get_range(key, start, length, etag=etag))

    def _count(self, key: str, blob: Blob) -> Blob:
        self.gets += 1
        self.bytes += len(blob.data)
        if not key.startswith("segments/"):
            self.index_bytes += len(blob.data)
        return blob
