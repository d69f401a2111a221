"""Wrap a store to be far away: latency before the first byte, then the speed of a connection and of a shared link."""

from __future__ import annotations

import threading
from random import Random

from monocontext.stores.clock import Clock, SystemClock
from monocontext.stores.protocol import Blob, Store
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND, SimulatedLink
from monocontext.testing.profiles import Profile, profile
from monocontext.testing.stores import Request, WrappedStore


class ThrottledStore(WrappedStore):
    """Makes every request wait as a profile says, and the bytes of `get`, `get_range` and `put` travel over a link.

    Speeds are in bytes a second, `None` for no limit. On a `VirtualClock` the waits of several threads add up.
    """

    def __init__(
        self,
        store: Store,
        latency: Profile | str,
        clock: Clock | None = None,
        *,
        connection_bytes_per_second: float | None = CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second: float | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__(store)
        self.is_near = False
        self._profile = profile(latency) if isinstance(latency, str) else latency
        self._clock: Clock = clock or SystemClock()
        self._link = SimulatedLink(connection_bytes_per_second, link_bytes_per_second)
        self._random = Random(seed)
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<ThrottledStore {self._profile.name} before {self.store!r}>"

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        begun = self._first_byte()
        return self._deliver(super().get(key, most_bytes=most_bytes), begun)

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        begun = self._first_byte()
        return self._deliver(super().get_range(key, start, length, etag=etag), begun)

    def put(self, key: str, data: bytes, *, if_absent: bool = False, if_match: str | None = None) -> str:
        self._wait_until(self._link.arrival(len(data), self._clock.now()))
        return super().put(key, data, if_absent=if_absent, if_match=if_match)

    def _before(self, request: Request) -> None:
        if request.verb not in ("get", "get_range"):  # whose bytes travel while they wait
            self._wait_until(self._first_byte())

    def _first_byte(self) -> float:
        """The moment at which the answer to a request sent now begins."""
        with self._lock:
            return self._clock.now() + self._profile.seconds(self._random)

    def _deliver(self, blob: Blob, begun: float) -> Blob:
        self._wait_until(begun)
        self._wait_until(self._link.arrival(len(blob.data), begun))
        return blob

    def _wait_until(self, moment: float) -> None:
        self._clock.sleep(max(0.0, moment - self._clock.now()))
