"""Needs in, values out: what is stored is looked up, requested, verified, decoded and kept.

A need is looked up (cache), scheduled (which requests, when), carried out (workers), verified and decoded. Only bytes
that passed every check enter the cache.

Invariants:
- every object is pinned to the ETag first seen or recorded;
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold;
- no lock is held while a request runs or a caller waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Protocol, runtime_checkable

from monocontext.cache import Cache
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, ForeignObject, StoreFailure
from monocontext.hedging import Hedge, Hedging
from monocontext.plan import Need, Request
from monocontext.scheduler import Fetch, Priority, Scheduler
from monocontext.stats import Stats
from monocontext.store import Blob, RangeReader
from monocontext.workers import Workers

MIN_WINDOW_BYTES = 24 << 20
"""Requests in flight may take this much memory whatever the cache's size: without it an uncached reader of a far store
would fetch one frame after another."""

Places = Callable[[str], tuple[RangeReader, str]]
"""From a foreign object's URL to a store and key; raises `ForeignObject` for what the caller does not allow."""


@runtime_checkable
class Keeping(RangeReader, Protocol):
    """A store that may answer from what it kept."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """What was kept of these bytes, under the ETag that was asked for, is not what it should be."""
        ...


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    raise ForeignObject(f"{url} lies outside the context; open it with allow=[...] to read there")


class Fetcher:
    """Fetches for one reader. Safe for use by many threads."""

    def __init__(
        self,
        store: RangeReader,
        workers: Workers,
        *,
        url: str = "",
        cache_bytes: int = 256 << 20,
        places: Places = refuse_foreign,
        stats: Stats | None = None,
        hedge: Hedge | None = None,
    ):
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes)
        self._store = store
        self._places = places
        self._workers = workers
        self._lock = workers.condition
        self._quick_lock = workers.lock
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)
        self._scheduler = Scheduler(workers.max_running, self.window_bytes, self.stats.prefetch)
        self._hedging = Hedging(hedge, self._scheduler.pressure)
        self._etags: dict[str, str] = {}
        self._closed = False
        self._pid = os.getpid()

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        with self._lock:
            self._closed = True
            self.cache.clear()
            for fetch in self._scheduler.drop_queued():  # nobody will start them, and threads may wait for them
                fetch.error = self._closed_error()
            self._lock.notify_all()
        self._workers.close()

    def in_memory(self, key: Hashable) -> Any:
        """What is in memory under a key, or None (no GET)."""
        with self._quick_lock:
            return self.cache.get(key)

    @property
    def closed(self) -> bool:
        return self._closed

    def unwanted(self) -> list[Request]:
        """Requests that are under way for a caller who has given up (no GET)."""
        with self._lock:
            return [fetch.request for fetch in self._scheduler.unwanted()]

    def under_way(self) -> tuple[int, int]:
        """Requests under way, and the bytes that they reserve."""
        return self._scheduler.running, self._scheduler.reserved_bytes

    def _want(self, needs: Sequence[Need]) -> list[Any]:
        """What each need asks for, where it is cached, else the `Fetch` that will bring it."""
        self._resume()
        with self._lock:
            self._check_open()
            cached = [self.cache.get(need.key) for need in needs]
            missing = [need for need, entry in zip(needs, cached, strict=True) if entry is None]
            self.stats.hits += len(needs) - len(missing)
            self.stats.misses += len(missing)
            fetches = self._scheduler.want(missing, Priority.DEMAND)
            started = self._start()
        self._send(started)
        return [fetches[need.key] if entry is None else entry for need, entry in zip(needs, cached, strict=True)]

    def _all(self, needs: Sequence[Need]) -> list[Any]:
        """What all needs ask for, fetched at once."""
        wanted = self._want(needs)
        waiting = [one for one in wanted if isinstance(one, Fetch)]
        try:
            return [
                self._await(need.key, one) if isinstance(one, Fetch) else one
                for need, one in zip(needs, wanted, strict=True)
            ]
        finally:
            with self._lock:
                self._scheduler.release([fetch for fetch in waiting if not fetch.done])

    def _demand(self, need: Need) -> Any:
        """One thing, now. A request that can start at once runs in the caller's own thread, unless it may be hedged:
        that takes somebody who watches."""
        self._resume()
        with self._lock:
            self._check_open()
            if (found := self.cache.get(need.key)) is not None:
                return found  # another thread has brought it since the caller looked
            fetch = self._scheduler.want([need], Priority.DEMAND)[need.key]
            started = self._start()
            alone = started == [fetch] and self._hedging.trigger(fetch.request.stored_bytes) is None
        if alone:
            began = self._workers.now()
            self._workers.run(fetch.request, lambda: self._carry(fetch, began))
            self._waited(began)
        else:
            self._send(started)
        try:
            return self._await(need.key, fetch)
        finally:
            if not fetch.done:  # the wait was interrupted
                with self._lock:
                    self._scheduler.release([fetch])

    def _await(self, key: Hashable, fetch: Fetch) -> Any:
        if not fetch.done:
            self._resume()
            began = self._workers.now()
            while not self._workers.wait(lambda: fetch.done, self._hedging.next_due):
                self._hedge()
            self._waited(began)
        if fetch.error is not None:
            raise fetch.error
        assert fetch.values is not None
        return fetch.values[key]

    def _resume(self) -> None:
        """In the child of a fork: carry out what was under way in threads of the parent, which did not come along."""
        if self._pid == os.getpid():
            return
        with self._lock:
            lost = self._scheduler.restart() if self._pid != os.getpid() else []
            if self._pid != os.getpid():
                self._lost()
            self._pid = os.getpid()
            for fetch in lost:
                self._hedging.sent(fetch, self._workers.now())
        self._send(lost)

    def _start(self) -> list[Fetch]:
        """Under the lock: what may start now, to be sent after it."""
        idle = not self._scheduler.running
        started = self._scheduler.start()
        if idle and started:
            self._setting_out()
        for fetch in started:
            if fetch.attempts == 1:
                self._hedging.sent(fetch, self._workers.now())
            else:
                self.stats.hedges += 1
        return started

    def _hedge(self) -> None:
        """Ask once more for what is late."""
        with self._lock:
            for fetch in self._hedging.overdue(self._workers.now()):
                self._scheduler.again(fetch)
            started = [] if self._closed else self._start()
        self._send(started)

    def _waited(self, began: float) -> None:
        with self._lock:
            self.stats.wait_seconds += self._workers.now() - began

    def _send(self, fetches: Iterable[Fetch]) -> None:
        now = self._workers.now()
        for fetch in fetches:
            self._workers.submit(fetch.request, lambda fetch=fetch: self._carry(fetch, now))  # type: ignore[misc]

    def _carry(self, fetch: Fetch, began: float) -> None:
        """Carry out one attempt, file what it brought, and start what may start after it. Never raises."""
        values: dict[Hashable, Any] = {}
        failed: BaseException | None = None
        try:
            try:
                values = self._get(fetch, began)
            except DamagedData:  # once more: what was damaged on the way is whole in the store
                values = self._get(fetch)
        except BaseException as error:  # handed to whoever waits
            failed = error
        with self._lock:
            if isinstance(failed, StoreFailure) and failed.refusals:
                self._heed(failed.refusals, began)
            if fetch.done:
                pass  # the other attempt was faster
            elif failed is None:
                for key, value in values.items():
                    self._keep(fetch, key, value)
                fetch.values = values
            elif fetch.attempts == 1:  # else the other may still bring it
                fetch.error = failed
            self._hedging.forget(fetch)
            self._scheduler.finish(fetch)
            self._lock.notify_all()
            if not self._closed and fetch.done:
                self._landed(fetch)
            started = [] if self._closed else self._start()
        self._send(started)

    def _get(self, fetch: Fetch, began: float | None = None) -> dict[Hashable, Any]:
        """One GET: read, compare the ETag, verify and decode; nothing where another attempt has come before."""
        request = fetch.request
        store, key = (self._places if "://" in request.object else self._own)(request.object)
        recorded = request.needs[0].etag
        etag = recorded or self._etags.get(request.object)
        blob = store.get_range(key, request.start, request.stored_bytes, etag=etag)
        with self._lock:
            self._count(fetch, blob)
            if not blob.local:
                self._heed(blob.refusals, began)
            if began is not None and not blob.local:
                self._hedging.answered(fetch, self._workers.now() - began)
            if fetch.done:
                return {}
            if self._closed and (fetch.speculative or not fetch.waiters):
                raise self._closed_error()  # decoding for nobody would start the threads again that were given back
        if etag and (recorded or not blob.local):
            _check_version(request, etag, blob)
        if len(blob.data) != request.stored_bytes:
            raise DamagedData(
                f"{request.object}: expected {request.stored_bytes} bytes from {request.start}, found {len(blob.data)}"
            )
        body = memoryview(blob.data)

        def decode() -> dict[Hashable, Any]:
            offsets = ((need, need.offset - request.start) for need in request.needs)
            return {need.key: need.decode(body[at : at + need.stored_bytes]) for need, at in offsets}

        try:
            values = decode() if request.is_in_place else self._workers.decode(decode)
        except DamagedData:
            if isinstance(store, Keeping):
                store.forget(key, request.start, request.stored_bytes, etag=etag)
            raise
        if not recorded and not blob.local:  # only what proved right is the version to hold on to
            with self._lock:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        return values

    def _keep(self, fetch: Fetch, key: Hashable, value: Any) -> None:
        """Under the lock: a value has come."""
        self.cache.put(key, value)

    def _landed(self, fetch: Fetch) -> None:
        """Under the lock: a fetch has ended, and what it brought is filed."""

    def _setting_out(self) -> None:
        """Under the lock: requests are sent while none is under way."""

    def _lost(self) -> None:
        """Under the lock, in the child of a fork: what nobody waited for is not under way any more."""

    def _count(self, fetch: Fetch, blob: Blob) -> None:
        if blob.local:
            self.stats.disk_hits += 1
            self.stats.disk_bytes += len(blob.data)
            return
        for counted in (self.stats, self.stats.prefetch) if fetch.sent_ahead else (self.stats,):
            counted.gets += 1
            counted.bytes_fetched += len(blob.data)
        if fetch.request.object.startswith("filters/"):
            self.stats.search.filter_gets += 1
            self.stats.search.filter_bytes += len(blob.data)

    def _heed(self, refusals: int, sent: float | None) -> None:
        """Under the lock: what the answer to a request says of how many the store can take."""
        now, pressure = self._workers.now(), self._scheduler.pressure
        self.stats.throttled += refusals
        if refusals:
            pressure.refused(now if sent is None else sent, now, self._scheduler.running)
        else:
            pressure.answered(now)

    def _own(self, key: str) -> tuple[RangeReader, str]:
        return self._store, key

    def _check_open(self) -> None:
        if self._closed:
            raise self._closed_error()

    def _closed_error(self) -> ContextClosed:
        return ContextClosed(f"{self.url or 'this context'} is closed")


def _check_version(request: Request, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced while it was read: expected ETag {expected}, found {blob.etag}"
        )
