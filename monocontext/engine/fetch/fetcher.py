"""Fetch stored items: look each up in the cache, request, verify and decode the missing ones, and keep them.

Invariants:

- no value is returned or kept whose bytes did not pass every check. Every object is pinned to the ETag that is
recorded, or else to the one first seen with verified bytes
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold
- single flight: an item is in at most one request that is queued or running
- requests start by priority, then in order of arrival, so demand never waits for speculation. A caller that wants a
  queued request of lower priority raises it. Speculation has half of the connections and half of the window
- every request runs in a thread of the workers, and only these threads count what runs. A caller only queues requests
  and waits. If an exception interrupts it at any line, its requests vanish with its last reference to them. A request
  that it took out of the queue and did not start is queued again by the next waiting caller, after `LOOK_SECONDS`
- no lock is held while a request runs or a caller waits
"""

from __future__ import annotations

import heapq
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial
from itertools import count
from typing import Any
from weakref import WeakValueDictionary, ref

from monocontext.engine.fetch.cache import Cache
from monocontext.engine.fetch.requests import FAN_OUT, PART_BYTES, FetchItem, FetchRequest, Priority, coalesce
from monocontext.engine.fetch.workers import CALL, LOCK, Workers, run_in_decoder
from monocontext.engine.frame import FrameText
from monocontext.engine.malloc import give_back_memory
from monocontext.engine.stats import Stats
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, ForeignObject, StoreFailure
from monocontext.records import dataclass
from monocontext.stores import log
from monocontext.stores.protocol import Blob, CopyKeeper, RangeReader

MIN_WINDOW_BYTES = 24 << 20  # the least memory for requests in flight, so that several frames come at once

GIVEN_BACK_BYTES = 16 << 20  # a closed reader returns memory to the system if it had this much or more
NEAR_SECONDS = 0.001  # a store that answers faster is near: there a round trip costs nothing. S3 Express takes 2.2 ms.
FIRST_BYTES_PER_SECOND = 100e6  # the assumed rate before a transfer was measured: a laptop's or a container's link
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before any transfer was measured, a text of 20 to 40 MB: at 100 MB/s it takes 80
ms, as long as the three round trips of a search by filters from another zone."""
_SMALL_BYTES = 64 << 10  # answers up to this size measure round trips: the body takes under 1 ms at 90 MB/s
_TRANSFER_BYTES = 2 << 20  # the least bytes of a busy spell that measure the rate; fewer measure round trips
DECREASE = 0.5  # the factor of the limit after a refusal
GROWTH_PER_SECOND = 1.0
"""The limit also grows by this much a second, if the answers raise it less: a reader that asks for a frame now and then
is back at its maximum after half a minute instead of 1,500 answers."""

Places = Callable[[str], tuple[RangeReader, str]]
"""Maps a foreign object's URL to a store and key; raises `ForeignObject` for a place that the caller does not allow."""


def _do_nothing() -> None:
    pass


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    """A `Places` function that refuses each object outside of the context."""
    raise ForeignObject(f"{url} is outside of the context: to read it, open the context with allow=[...]")


class Fetcher:
    """Fetches stored ranges for one reader, or takes them from its cache. Safe for use by many threads."""

    def __init__(
        self,
        store: RangeReader,
        workers: Workers,
        *,
        url: str,
        cache_bytes: int,
        places: Places,
        stats: Stats | None,
        round_trip_seconds: float | None,
    ):
        """Parameters: see `Monocontext.open`."""
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes)
        self.link = Link(round_trip_seconds)
        self.workers = workers
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)
        self.is_closed = False
        self.refill: Callable[[], None] = _do_nothing
        """Called under the lock when a request may start: the read-ahead queues what it wants next."""
        self._store = store
        self._places = places
        self._etags: dict[str, str] = {}  # the version of each object that was first seen with verified bytes
        self._most_bytes = max(self.window_bytes // FAN_OUT, PART_BYTES)  # a small window still has many under way
        self._pressure = Pressure(workers.max_running)
        self._order = count()
        self._forget_requests()

    def _forget_requests(self) -> None:
        self._fetching: WeakValueDictionary[Hashable, FetchRequest] = WeakValueDictionary()
        """By key of its items, each request that is queued or running."""
        self._queue: list[tuple[int, int, ref[FetchRequest]]] = []
        """A heap of the requests that may start, by priority and arrival; an entry may be obsolete."""
        self._running: set[FetchRequest] = set()
        self._pid = os.getpid()

    # -- for callers -----------------------------------------------------------------------------------------------

    def fetch_one(self, item: FetchItem) -> Any:
        """The value of one item."""
        [value] = self.fetch_all([item])
        return value

    def fetch_all(self, items: Sequence[FetchItem]) -> list[Any]:
        """The values of all items, fetched in parallel."""
        return [
            self.wait(item, result) if isinstance(result, FetchRequest) else result
            for item, result in zip(items, self.want(items), strict=True)
        ]

    def want(self, items: Sequence[FetchItem]) -> list[Any]:
        """For each item its value if it is cached, else the request that brings it."""
        with LOCK:
            self.check_open()
            results: list[Any] = [self.cache.get(item.key) for item in items]
            missing = [item for item, value in zip(items, results, strict=True) if value is None]
            self.stats.hits += len(items) - len(missing)
            self.stats.misses += len(missing)
            if missing:
                CALL.raise_if_abandoned()
                requests = self.request(missing, Priority.DEMAND)
                for i, item in enumerate(items):
                    if results[i] is None:
                        results[i] = requests[item.key]
        return results

    def wait(self, item: FetchItem, request: FetchRequest) -> Any:
        """The value of an item that a request brings. Raises the error of the request."""
        began = self.workers.now()
        while not request.is_done:
            if request.pid != os.getpid():  # this is the child of a fork, and threads of the parent carry it out
                return self.fetch_one(item)
            if not self.workers.wait(request):
                CALL.raise_if_abandoned()
                with LOCK:
                    self._enqueue(request, 1)  # an interrupted thread may have taken it out of the queue
        with LOCK:
            self.stats.wait_seconds += self.workers.now() - began
        if log.pending:
            log.emit()
        if request.error is not None:
            raise request.error
        return request.values[item.key]

    def request(self, items: Iterable[FetchItem], priority: Priority) -> dict[Hashable, FetchRequest]:
        """Queue requests for items that are not in memory, or join requests under way; returns them by key. The caller
        holds the lock. A queued request to which nobody refers any longer is never sent."""
        if self._pid != os.getpid():
            self._forget_requests()
        results: dict[Hashable, FetchRequest] = {}
        missing = []
        for item in items:
            request = self._fetching.get(item.key)
            if request is None:
                missing.append(item)
                continue
            results[item.key] = request
            if priority < request.priority:
                request.priority = priority
                self._enqueue(request, 1)
        fresh = coalesce(missing, self._most_bytes, self._pressure.limit)
        for request in fresh:
            request.priority = priority
            for item in request.items:
                self._fetching[item.key] = results[item.key] = request
            self._enqueue(request, 0)
        self.workers.start(self, len(fresh))
        return results

    def is_fetching(self, key: Hashable) -> bool:
        """Whether a request for this key is queued or running."""
        return key in self._fetching

    def under_way(self) -> tuple[int, int]:
        """The number of running requests, and the bytes that they may take."""
        with LOCK:
            return len(self._running), sum([request.memory_bytes for request in self._running])

    def __repr__(self) -> str:
        queued = {request for *_, reference in self._queue if (request := reference()) and not request.is_started}
        return f"<Fetcher {len(self._running)} running, {len(queued)} queued, {self._pressure!r}>"

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        with LOCK:
            self.is_closed = True
            freed_bytes = self.cache.used_bytes
            self.cache.clear()
            self._queue.clear()
            for request in set(self._fetching.values()):  # threads may wait for those that will never start
                if not request.is_started and not request.is_done:
                    request.finish({}, self._closed_error())
            self.refill = _do_nothing  # it refers to this object, which is to go with its last reference
        if freed_bytes >= GIVEN_BACK_BYTES:
            give_back_memory()

    def check_open(self) -> None:
        if self.is_closed:
            raise self._closed_error()

    def _closed_error(self) -> ContextClosed:
        return ContextClosed(f"{self.url or 'this context'} is closed")

    def _enqueue(self, request: FetchRequest, threads: int) -> None:
        if not request.is_started and not request.is_done:
            heapq.heappush(self._queue, (request.priority, next(self._order), ref(request)))
            if threads:
                self.workers.start(self, threads)

    # -- for the workers -------------------------------------------------------------------------------------------

    def next_request(self) -> FetchRequest | None:
        """Take the next request that may start now; None if none may."""
        with LOCK:
            try:
                self.refill()
            except BaseException:
                self.refill = _do_nothing  # what callers wait for is taken next time
                raise
            request = self._pop_startable()
            if request is None:
                return None
            request.is_started = True
            request.was_ahead = request.priority > Priority.DEMAND
            request.began = self.workers.now()
            if not self._running:
                self.link.begin_spell(request.began)
            self._running.add(request)
            if self._queue:
                self.workers.start(self, 1)
            return request

    def _pop_startable(self) -> FetchRequest | None:
        """Take the first request out of the queue if it may run beside those that do."""
        while self._queue and len(self._running) < self._pressure.limit:
            request = self._queue[0][2]()
            if request is None or request.is_started or request.is_done:  # nobody wants it, or another entry was first
                heapq.heappop(self._queue)
                continue
            if not self._has_room(request):
                return None
            heapq.heappop(self._queue)
            return request
        return None

    def _has_room(self, request: FetchRequest) -> bool:
        """Whether a request may run beside those that do; one always may."""
        if not self._running:
            return True
        size = request.memory_bytes
        if sum([other.memory_bytes for other in self._running]) + size > self.window_bytes:
            return False
        if request.priority == Priority.DEMAND:
            return True
        if self._pressure.is_throttled:
            return False  # the few requests that the store takes are for demand
        ahead = [other.memory_bytes for other in self._running if other.priority > Priority.DEMAND]
        return not ahead or (len(ahead) < self._pressure.limit // 2 and sum(ahead) + size <= self.window_bytes // 2)

    def carry_out(self, request: FetchRequest) -> None:
        """Send a request, and deliver its values or its error to all that wait."""
        values: dict[Hashable, Any] = {}
        error: BaseException | None = None
        try:
            try:
                values = self._get(request)
            except DamagedData:  # a second read: damage in transit leaves the stored object whole
                log.note(log.INFO, "%s came damaged: bytes %d to %d are read again", *_place(request))
                values = self._get(request)
        except BaseException as raised:  # handed to the waiting callers
            error = raised
        with LOCK:
            try:
                self._keep_values(request, values, error)
            finally:  # whatever happens, no caller waits for ever
                request.finish(values, error)

    def _keep_values(self, request: FetchRequest, values: dict[Hashable, Any], error: BaseException | None) -> None:
        """Keep the values of a request that has ended."""
        if isinstance(error, StoreFailure) and error.refusals:
            self._apply_backpressure(error.refusals, request)
        self._running.discard(request)
        for item in request.items:
            if self._fetching.get(item.key) is request:
                del self._fetching[item.key]
        is_ahead = request.priority > Priority.DEMAND
        for key, value in values.items():
            if isinstance(value, FrameText):
                value.is_prefetched, value.was_awaited = request.was_ahead, not is_ahead
            if not self.is_closed:
                self.cache.put(key, value, used=not is_ahead)

    def _get(self, request: FetchRequest) -> dict[Hashable, Any]:
        """The verified values of a request (1 GET).

        Every answer is checked against the ETag that an item records. Without one, answers from the network are checked
        against the ETag that came with the first verified bytes of the object.
        """
        store, key = self._places(request.object) if "://" in request.object else (self._store, request.object)
        recorded = request.items[0].etag
        etag = recorded or self._etags.get(request.object)
        blob = store.get_range(key, request.start, request.stored_bytes, etag=etag)
        self._note_answer(request, blob)
        if etag and (recorded or not blob.local):
            _check_version(request, etag, blob)
        try:
            values = run_in_decoder(partial(_decode_items, request, blob.data))
        except DamagedData:
            if isinstance(store, CopyKeeper):
                store.forget(key, request.start, request.stored_bytes, etag=etag)
            raise
        if not recorded and not blob.local:  # only verified bytes pin the version
            with LOCK:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        return values

    def _note_answer(self, request: FetchRequest, blob: Blob) -> None:
        """Count an answer of the store, measure the link, and adapt the number of requests at once."""
        size, now = len(blob.data), self.workers.now()
        with LOCK:
            if blob.in_root:  # counted with the root
                return
            if blob.local:
                self.stats.disk_hits += 1
                self.stats.disk_bytes += size
                return
            self._apply_backpressure(blob.refusals, request)
            self.link.answered(size, request.began, now)
            for counted in (self.stats, self.stats.prefetch) if request.was_ahead else (self.stats,):
                counted.gets += 1
                counted.bytes_fetched += size
            if request.object.startswith("filters/"):
                self.stats.search.filter_gets += 1
                self.stats.search.filter_bytes += size

    def _apply_backpressure(self, refusals: int, request: FetchRequest) -> None:
        """Adapt the limit of concurrent requests to an answer of the store."""
        pressure, now = self._pressure, self.workers.now()
        self.stats.throttled += refusals
        if not refusals:
            pressure.answered(now)
        elif pressure.refused(request.began, now, len(self._running)):
            log.note(log.WARNING, "%s asks for fewer requests: %d at once now", self.url, pressure.limit)


def _check_version(request: FetchRequest, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced: expected ETag {expected}, found {blob.etag}; refresh() reads the newest"
        )


def _decode_items(request: FetchRequest, data: bytes) -> dict[Hashable, Any]:
    """The value of each item of a request. Raises `DamagedData`."""
    if len(data) != request.stored_bytes:
        raise DamagedData(
            f"{request.object}: expected {request.stored_bytes} bytes from {request.start}, found {len(data)}; "
            "`monocontext verify` lists all damage"
        )
    body, start = memoryview(data), request.start
    return {item.key: item.decode(body[item.offset - start :][: item.stored_bytes]) for item in request.items}


def _place(request: FetchRequest) -> tuple[str, int, int]:
    """The object, start and stop of a request, for a log; a URL without its query, which may be a signature."""
    name = request.object.partition("?")[0] if "://" in request.object else request.object
    return name, request.start, request.stop


# -- the measured store ------------------------------------------------------------------------------------------------


@dataclass(slots=True, eq=False)
class Link:
    """The measured link from one reader to its store. A spell lasts from a request on an idle link until it is idle."""

    round_trip_seconds: float | None
    """The time of the quickest small answer; 0 for a near store; None before one was measured."""
    _measured_rate: float | None = None
    _spell_began: float = 0.0
    _spell_bytes: int = 0
    _spell_rate: float = 0.0

    @property
    def bytes_per_second(self) -> float:
        """The rate of the last long spell without its first round trip."""
        return self._measured_rate or FIRST_BYTES_PER_SECOND

    def carries(self, stored_bytes: int) -> bool:
        """Whether one wave of requests transfers this many bytes about as fast as a small answer arrives."""
        if self.round_trip_seconds is None or self.round_trip_seconds < NEAR_SECONDS:  # no round trip to save
            return stored_bytes <= 0
        wave_bytes = int(self.round_trip_seconds * self.bytes_per_second)
        return stored_bytes <= (wave_bytes if self._measured_rate else max(wave_bytes, FIRST_WAVE_BYTES))

    def begin_spell(self, now: float) -> None:
        """Begin to measure the rate: a request is sent while no other is running."""
        self._spell_began, self._spell_bytes, self._spell_rate = now, 0, 0.0

    def answered(self, size_bytes: int, began: float, now: float) -> None:
        """Note an answer of the store to a request that was sent at `began`."""
        seconds = now - began
        if size_bytes <= _SMALL_BYTES and (self.round_trip_seconds is None or seconds < self.round_trip_seconds):
            self.round_trip_seconds = seconds
        self._spell_bytes += size_bytes
        if self._spell_bytes >= _TRANSFER_BYTES:
            transfer_seconds = now - self._spell_began - (self.round_trip_seconds or 0.0)
            # The first of concurrent answers counts in full, and nothing of those that have partly arrived.
            self._spell_rate = max(self._spell_rate, self._spell_bytes / max(transfer_seconds, 1e-3))
            self._measured_rate = self._spell_rate


class Pressure:
    """The limit of concurrent requests of one fetcher, by the answers of the store. Its owner holds the lock.

    As in TCP, a wave of refusals (503 SlowDown) halves it once, and answers raise it slowly to its maximum (AIMD: Chiu
    and Jain, 1989).
    """

    __slots__ = ("_decreased", "_exact", "_grown", "is_throttled", "limit", "maximum")

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum  # the most requests at once when nothing is refused
        self.limit = maximum  # the most requests that may run now
        self.is_throttled = False  # whether a recent refusal still limits speculative requests
        self._exact = float(maximum)
        self._decreased = float("-inf")
        self._grown = float("-inf")

    def refused(self, sent: float, now: float, running: int) -> bool:
        """Record that the store refused a request sent at the time `sent`, since `running` requests were too many.

        The limit falls to half of `running`, or of the limit if that is lower. Returns whether it fell.
        """
        if sent < self._decreased:
            return False
        self._decreased = self._grown = now
        self._set(max(1.0, min(self._exact, float(running)) * DECREASE))
        return True

    def answered(self, now: float) -> None:
        """Record an answer without a refusal: the limit grows by one for each `limit` answers."""
        if self.is_throttled:
            seconds = max(0.0, now - self._grown)
            self._set(min(self.maximum, self._exact + max(1 / self._exact, seconds * GROWTH_PER_SECOND)))
        self._grown = now

    def _set(self, limit: float) -> None:
        self.is_throttled = True  # in case an exception interrupts this
        self._exact = limit
        self.limit = int(limit)
        self.is_throttled = limit < self.maximum

    def __repr__(self) -> str:
        return f"<Pressure {self.limit}/{self.maximum} requests at once>"
