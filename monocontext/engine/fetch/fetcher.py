"""Fetch stored items: look each up in the cache, request, verify and decode the missing ones, and keep them.

Invariants:

- no value is returned or kept whose bytes did not pass every check. Every object is pinned to the ETag that is
  recorded, or else to the one first seen with verified bytes
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold
- single flight: an item is in at most one request that is queued or running
- requests start by priority, then in order of arrival, so demand never waits for speculation (requests for which no
  caller waits yet). A caller that wants an item of a speculative request raises its priority. Speculation has half of
  the connections and half of the window
- every request runs in a thread of the workers, and only these threads count what runs. A caller only queues requests
  and waits. If an exception interrupts a caller at any line, its requests vanish with its last reference to them. If
  an exception interrupts a thread between taking a request and sending it, the next waiting caller queues it again,
  after `LOOK_SECONDS`
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
from monocontext.engine.fetch.link import ConcurrencyLimit, Link
from monocontext.engine.fetch.requests import FAN_OUT, PART_BYTES, FetchItem, FetchRequest, Priority, coalesce
from monocontext.engine.fetch.workers import CALL, LOCK, Workers, run_in_decoder
from monocontext.engine.frame import FrameText
from monocontext.engine.malloc import give_back_memory
from monocontext.engine.stats import Stats
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, StoreFailure
from monocontext.records import NamedTuple
from monocontext.stores import log
from monocontext.stores.protocol import Blob, CopyKeeper, RangeReader
from monocontext.stores.secrets_in_urls import without_secrets

NEAR_SECONDS = 0.001  # a store that answers faster is near: there a round trip costs nothing. S3 Express takes 2.2 ms.
FIRST_WAVE_BYTES = 8 << 20
"""One wave carries at least this much before any transfer was measured, a text of 20 to 40 MB: at 100 MB/s it takes 80
ms, as long as the three round trips of a search by filters from another zone."""
MIN_WINDOW_BYTES = 24 << 20  # the least memory for requests in flight, so that several frames come at once
GIVEN_BACK_BYTES = 16 << 20  # a closed reader returns memory to the system if it had this much or more

FindForeign = Callable[[str], tuple[RangeReader, str]]
"""Returns the store and key of an object outside the context, by its URL. Raises `ForeignObject` if not allowed."""


class _QueueEntry(NamedTuple):
    """An entry of the queue, which is a heap. It is obsolete once its request has started or is no longer wanted."""

    priority: int
    arrival: int
    request: ref[FetchRequest]


class Fetcher:
    """Fetches stored ranges for one reader, or takes them from its cache. Safe for use by many threads."""

    def __init__(
        self,
        store: RangeReader,
        workers: Workers,
        *,
        url: str,
        cache_bytes: int,
        find_foreign: FindForeign,
        stats: Stats | None,
        round_trip_seconds: float | None,
    ):
        """`find_foreign`: finds the objects outside `store`. `round_trip_seconds`: see `Link`."""
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes)
        self.link = Link(round_trip_seconds)
        self.workers = workers
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)  # the most memory for requests in flight
        self.is_closed = False
        self.refill: Callable[[], None] | None = None
        """Called under the lock before a request is taken from the queue: the read-ahead queues what it wants next."""
        self._store = store
        self._find_foreign = find_foreign
        self._etags: dict[str, str] = {}  # the version of each object that was first seen with verified bytes
        self._most_request_bytes = max(self.window_bytes // FAN_OUT, PART_BYTES)  # so that many fit a small window
        self._limit = ConcurrencyLimit(maximum=workers.max_running, current=workers.max_running)
        self._arrivals = count()
        self._forget_requests()

    def _forget_requests(self) -> None:
        """Begin without requests, in a new reader or in the child of a fork."""
        self._requests: WeakValueDictionary[Hashable, FetchRequest] = WeakValueDictionary()
        """Each request that is queued or running, by the keys of its items."""
        self._queue: list[_QueueEntry] = []
        self._running: set[FetchRequest] = set()
        self._pid = os.getpid()

    # -- for callers -----------------------------------------------------------------------------------------------

    def fetch_one(self, item: FetchItem) -> Any:
        """The value of one item (at most 1 GET)."""
        return self.fetch_all([item])[0]

    def fetch_all(self, items: Sequence[FetchItem]) -> list[Any]:
        """The values of all items, fetched in parallel (at most 1 GET each; one for several that are close together).

        Raises the errors of the store, `DamagedData` and `ContextChanged`.
        """
        return [
            self.wait(item, result) if isinstance(result, FetchRequest) else result
            for item, result in zip(items, self.begin_fetch(items), strict=True)
        ]

    def begin_fetch(self, items: Sequence[FetchItem]) -> list[Any]:
        """For each item its value if it is cached, else the `FetchRequest` that brings it. Does not wait."""
        with LOCK:
            self.check_open()
            results: list[Any] = [self.cache.get(item.key) for item in items]
            missing = [item for item, value in zip(items, results, strict=True) if value is None]
            self.stats.hits += len(items) - len(missing)
            self.stats.misses += len(missing)
            if missing:
                CALL.raise_if_abandoned()
                requests = self.queue_requests(missing, Priority.DEMAND)
                results = [
                    requests[item.key] if value is None else value for item, value in zip(items, results, strict=True)
                ]
        return results

    def wait(self, item: FetchItem, request: FetchRequest) -> Any:
        """Wait for a request, and return its value for an item. Raises the error of the request."""
        began = self.workers.now()
        while not request.is_done:
            if request.pid != os.getpid():  # this is the child of a fork, and threads of the parent carry it out
                return self.fetch_one(item)
            if not self.workers.wait(request):
                CALL.raise_if_abandoned()
                with LOCK:  # an interrupted thread may have taken it out of the queue
                    self._enqueue(request, starts_worker=True)
        with LOCK:
            self.stats.wait_seconds += self.workers.now() - began
        if log.pending:
            log.emit()
        if request.error is not None:
            raise request.error
        return request.values[item.key]

    def queue_requests(self, items: Iterable[FetchItem], priority: Priority) -> dict[Hashable, FetchRequest]:
        """Queue requests for items that are not in memory, or join requests under way. Returns the request of each item
        by its key.

        The caller holds the lock. A queued request to which nobody refers any longer is never sent.
        """
        if self._pid != os.getpid():
            self._forget_requests()
        results: dict[Hashable, FetchRequest] = {}
        missing = []
        for item in items:
            request = self._requests.get(item.key)
            if request is None:
                missing.append(item)
                continue
            results[item.key] = request
            if priority < request.priority:
                request.priority = priority
                self._enqueue(request, starts_worker=True)
        new_requests = coalesce(missing, self._most_request_bytes, self._limit.current)
        for request in new_requests:
            request.priority = priority
            for item in request.items:
                self._requests[item.key] = results[item.key] = request
            self._enqueue(request, starts_worker=False)
        self.workers.start(self, len(new_requests))
        return results

    def is_fetching(self, key: Hashable) -> bool:
        """Whether a request for this key is queued or running."""
        return key in self._requests

    def under_way(self) -> tuple[int, int]:
        """The number of running requests, and the bytes of memory that they may take."""
        with LOCK:
            return len(self._running), sum([request.memory_bytes for request in self._running])

    def __repr__(self) -> str:
        requests = {entry.request() for entry in self._queue}
        queued = [request for request in requests if request is not None and not request.is_started]
        return f"<Fetcher {len(self._running)} running, {len(queued)} queued, {self._limit!r}>"

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        with LOCK:
            self.is_closed = True
            freed_bytes = self.cache.used_bytes
            self.cache.clear()
            self._queue.clear()
            for request in set(self._requests.values()):  # threads may wait for those that will never start
                if not request.is_started and not request.is_done:
                    request.finish({}, self._closed_error())
            self.refill = None  # it refers to this object, which is to go with its last reference
        if freed_bytes >= GIVEN_BACK_BYTES:
            give_back_memory()

    def check_open(self) -> None:
        """Raise `ContextClosed` after `close`."""
        if self.is_closed:
            raise self._closed_error()

    def _closed_error(self) -> ContextClosed:
        return ContextClosed(f"{self.url or 'this context'} is closed")

    def _enqueue(self, request: FetchRequest, *, starts_worker: bool) -> None:
        """Put a request into the queue unless it has started, even if it has an entry with another priority."""
        if not request.is_started and not request.is_done:
            heapq.heappush(self._queue, _QueueEntry(request.priority, next(self._arrivals), ref(request)))
            if starts_worker:
                self.workers.start(self, 1)

    # -- for the workers -------------------------------------------------------------------------------------------

    def next_request(self) -> FetchRequest | None:
        """Take the next request that may start now; None if none may."""
        with LOCK:
            if self.refill is not None:
                try:
                    self.refill()
                except BaseException:
                    self.refill = None  # what callers wait for is taken next time
                    raise
            request = self._pop_startable()
            if request is None:
                return None
            request.is_started = True
            request.was_speculative = request.priority > Priority.DEMAND
            request.sent_at = self.workers.now()
            if not self._running:
                self.link.begin_busy_period(request.sent_at)
            self._running.add(request)
            if self._queue:
                self.workers.start(self, 1)
            return request

    def _pop_startable(self) -> FetchRequest | None:
        """Take the first request out of the queue if it may run beside those that run now; None if not."""
        while self._queue and len(self._running) < self._limit.current:
            request = self._queue[0].request()
            if request is None or request.is_started or request.is_done:  # the entry is obsolete
                heapq.heappop(self._queue)
                continue
            if not self._has_room(request):
                return None
            heapq.heappop(self._queue)
            return request
        return None

    def _has_room(self, request: FetchRequest) -> bool:
        """Whether a request may run beside those that run now. If none runs, it may, whatever its size."""
        if not self._running:
            return True
        size_bytes = request.memory_bytes
        if sum([other.memory_bytes for other in self._running]) + size_bytes > self.window_bytes:
            return False
        if request.priority == Priority.DEMAND:
            return True
        if self._limit.is_throttled:
            return False  # the few requests that the store takes are for demand
        speculative = [other.memory_bytes for other in self._running if other.priority > Priority.DEMAND]
        if not speculative:
            return True
        has_connection = len(speculative) < self._limit.current // 2
        return has_connection and sum(speculative) + size_bytes <= self.window_bytes // 2

    def carry_out(self, request: FetchRequest) -> None:
        """Send a request (1 GET, 2 if the first answer is damaged), and give its callers the values or the error."""
        values: dict[Hashable, Any] = {}
        error: BaseException | None = None
        try:
            try:
                values = self._get_verified(request)
            except DamagedData:  # read again: damage in transit leaves the stored object whole
                name = _name_for_log(request)
                log.note(log.INFO, "%s came damaged: bytes %d to %d are read again", name, request.start, request.stop)
                values = self._get_verified(request)
        except BaseException as raised:  # handed to the waiting callers
            error = raised
        with LOCK:
            try:
                self._end_request(request, values, error)
            finally:  # whatever happens, no caller waits for ever
                request.finish(values, error)

    def _end_request(self, request: FetchRequest, values: dict[Hashable, Any], error: BaseException | None) -> None:
        """Count a request as ended, and keep its values in the cache."""
        if isinstance(error, StoreFailure) and error.refusals:
            self._note_refusals(error.refusals, request)
        self._running.discard(request)
        for item in request.items:
            if self._requests.get(item.key) is request:
                del self._requests[item.key]
        is_awaited = request.priority == Priority.DEMAND
        for key, value in values.items():
            if isinstance(value, FrameText):
                value.is_prefetched, value.was_awaited = request.was_speculative, is_awaited
            if not self.is_closed:
                self.cache.put(key, value, used=is_awaited)

    def _get_verified(self, request: FetchRequest) -> dict[Hashable, Any]:
        """The verified values of a request by key (1 GET).

        Every answer is checked against the ETag that an item records. Without one, answers from the network are checked
        against the ETag that came with the first verified bytes of the object.
        """
        is_foreign = "://" in request.object
        store, key = self._find_foreign(request.object) if is_foreign else (self._store, request.object)
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
        """Count an answer of the store, measure the link, and adapt how many requests may run at once."""
        stats, size_bytes, now = self.stats, len(blob.data), self.workers.now()
        with LOCK:
            if blob.in_root:  # counted with the root
                return
            if blob.local:
                stats.disk_hits += 1
                stats.disk_bytes += size_bytes
                return
            self._note_refusals(blob.refusals, request)
            self.link.note_answer(size_bytes, request.sent_at, now)
            stats.gets += 1
            stats.bytes_fetched += size_bytes
            if request.was_speculative:
                stats.prefetch.gets += 1
                stats.prefetch.bytes_fetched += size_bytes
            if request.object.startswith("filters/"):
                stats.search.filter_gets += 1
                stats.search.filter_bytes += size_bytes

    def _note_refusals(self, refusals: int, request: FetchRequest) -> None:
        """Adapt how many requests may run at once to an answer that came after `refusals` refusals, perhaps none."""
        self.stats.throttled += refusals
        now = self.workers.now()
        if not refusals:
            self._limit.note_answer(now)
        elif self._limit.note_refusal(request.sent_at, now, len(self._running)):
            log.note(log.WARNING, "%s asks for fewer requests: now at most %d at once", self.url, self._limit.current)


def wave_bytes(link: Link) -> int:
    """The most stored bytes that a wave of requests transfers in a round trip; 0 if the store is near or unmeasured."""
    if link.round_trip_seconds is None or link.round_trip_seconds < NEAR_SECONDS:
        return 0
    result = int(link.round_trip_seconds * link.bytes_per_second)
    return result if link.is_rate_measured else max(result, FIRST_WAVE_BYTES)


def _check_version(request: FetchRequest, expected: str, blob: Blob) -> None:
    """Raise `ContextChanged` unless an answer has the expected ETag."""
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced: expected ETag {expected}, found {blob.etag}; refresh() opens the newest"
        )


def _decode_items(request: FetchRequest, data: bytes) -> dict[Hashable, Any]:
    """The value of each item of a request, by key. Raises `DamagedData`."""
    if len(data) != request.stored_bytes:
        raise DamagedData(
            f"{request.object}: expected {request.stored_bytes} bytes from byte {request.start}, found {len(data)}; "
            "`monocontext verify` lists all damage"
        )
    body, start = memoryview(data), request.start
    return {item.key: item.decode(body[item.offset - start :][: item.stored_bytes]) for item in request.items}


def _name_for_log(request: FetchRequest) -> str:
    """The object of a request; a URL without its login and its query, which may be a signature."""
    shown = without_secrets(request.object)  # before it is cut, since a password may contain `?`
    return shown.partition("?")[0] if "://" in shown else request.object
