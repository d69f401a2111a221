"""Simulate the network of a reader on a virtual clock: workers whose requests share one link, and a metered store."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random

from monocontext.engine.fetch.requests import FetchRequest
from monocontext.stores.http.timer import Pace
from monocontext.stores.protocol import Blob, Store
from monocontext.stores.s3.client import READ_TIMEOUT_SECONDS
from monocontext.testing import WrappedStore, profile
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND, SimulatedLink
from tests.simulated import SimulatedWorkers, VirtualClock

CONNECTIONS = 64
PIECE_BYTES = 256 << 10  # bodies travel in pieces of this size, so that requests share the link fairly


@dataclass(frozen=True, slots=True)
class Distance:
    """The latency and the bandwidth between reader and store."""

    profile: str
    link_bytes_per_second: float


class LinkedWorkers(SimulatedWorkers):
    """Completes each request when its last byte would have arrived, and adds up the seconds that callers wait for it.

    The time to the first byte is drawn from the profile with the requested range as seed. So a range takes the same
    time under every policy, and policies differ by their choices, not by luck. A range that is requested again gets
    another draw. The body then arrives at the speed of its connection, or of its share of the link.
    """

    def __init__(self, distance: Distance, seed: int, clock: VirtualClock | None = None) -> None:
        super().__init__(lambda request: 0.0, clock, CONNECTIONS)
        self._profile = profile(distance.profile)
        self._link = SimulatedLink(CONNECTION_BYTES_PER_SECOND, distance.link_bytes_per_second)
        self._seed = seed
        self._timeouts = Pace(READ_TIMEOUT_SECONDS)
        self._gets_by_range: Counter[tuple[str, int]] = Counter()
        self.stalled_seconds = 0.0  # seconds that code waited for storage

    def submit(self, request: FetchRequest, job: Callable[[], None]) -> None:
        sent = self.clock.now()
        start = request.object, request.start
        first_byte_seconds, lost_seconds, attempts = self._draw_first_byte(start), 0.0, 0
        # A client that gets no byte within its timeout sends the GET again. Each attempt has a longer timeout; in the
        # attempt with the longest one, the client waits as long as it takes.
        while (timeout := self._timeouts.timeout_after(attempts)) < min(first_byte_seconds, READ_TIMEOUT_SECONDS):
            lost_seconds += timeout
            attempts += 1
            first_byte_seconds = self._draw_first_byte(start)

        def finish() -> None:
            self._timeouts.add_first_byte(first_byte_seconds)
            self._receive(request.stored_bytes, 0, job)

        self._at(sent + lost_seconds + first_byte_seconds, finish)

    def _draw_first_byte(self, start: tuple[str, int]) -> float:
        """The seconds to the first byte of the next GET from `start`: an object and an offset in it."""
        self._gets_by_range[start] += 1
        return self._profile.seconds(Random(f"{self._seed} {start} {self._gets_by_range[start]}"))

    def _receive(self, body_bytes: int, arrived_bytes: int, job: Callable[[], None]) -> None:
        """Receive the next piece of a body, then the rest of it; run `job` after the last piece."""
        piece_bytes = min(PIECE_BYTES, body_bytes - arrived_bytes)
        arrived_bytes += piece_bytes
        receive_rest = partial(self._receive, body_bytes, arrived_bytes, job)
        arrival_seconds = self._link.arrival(piece_bytes, self.clock.now())
        self._at(arrival_seconds, job if arrived_bytes == body_bytes else receive_rest)

    def wait(self, request: FetchRequest) -> bool:
        began = self.clock.now()
        try:
            return super().wait(request)
        finally:
            self.stalled_seconds += self.clock.now() - began


class MeteredStore(WrappedStore):
    """Counts the bytes of all GETs, and separately those of roots, index pages and filters.

    GETs of whole objects, which are roots, advance the clock. Ranges do not: `LinkedWorkers` times them.
    """

    def __init__(self, store: Store, distance: Distance, clock: VirtualClock, seed: int) -> None:
        super().__init__(store)
        self._profile = profile(distance.profile)
        self._bytes_per_second = min(CONNECTION_BYTES_PER_SECOND, distance.link_bytes_per_second)
        self._random = Random(f"roots {seed}")
        self._clock = clock
        self.bytes = 0
        self.index_bytes = 0  # those of roots, index pages and filters

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        blob = super().get(key, most_bytes=most_bytes)
        self._clock.advance(self._profile.seconds(self._random) + len(blob.data) / self._bytes_per_second)
        return self._count(key, blob)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        return self._count(key, super().get_range(key, start, length, etag=etag))

    def _count(self, key: str, blob: Blob) -> Blob:
        self.bytes += len(blob.data)
        if not key.startswith("segments/"):
            self.index_bytes += len(blob.data)
        return blob
