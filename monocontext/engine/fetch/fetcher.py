"""Fetch stored items: look each up in the cache, request the missing ones, verify, decode and keep them.

Only bytes that passed every check enter the cache. Invariants:

- every object is pinned to the ETag first seen or recorded
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold
- no lock is held while a request runs or a caller waits
- a registered request is carried out or withdrawn, even if its caller is interrupted: one `change` registers and sends
  it, and requests left to callers belong to calls that hold a token (`scheduler`)
- an exception may interrupt a change at any moment: Ctrl-C, the time limit of a cell, a signal handler that raises. It
  can strike between any two lines, also in a `finally`, so nothing relies on later lines. The next change notices and
  first resets the state; requests that were in flight then no longer count towards the window
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, runtime_checkable

from monocontext.engine.fetch.cache import Cache, StoredBytes, forget_warm, keep_warm
from monocontext.engine.fetch.congestion import Pressure
from monocontext.engine.fetch.hedging import Hedge, Hedging
from monocontext.engine.fetch.link import Link
from monocontext.engine.fetch.listeners import Counting, Listener
from monocontext.engine.fetch.requests import FetchItem, RangeRequest
from monocontext.engine.fetch.scheduler import Fetch, Priority, Scheduler, Token
from monocontext.engine.fetch.threads import LOCK
from monocontext.engine.fetch.workers import Workers
from monocontext.engine.frame import FrameText
from monocontext.engine.stats import Stats
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, ForeignObject, MonocontextError, StoreFailure
from monocontext.stores import log
from monocontext.stores.protocol import Blob, RangeReader

MIN_WINDOW_BYTES = 24 << 20
"""Requests in flight may take this much memory whatever the cache's size: without it an uncached reader of a far store
would fetch one frame after another."""

Places = Callable[[str], tuple[RangeReader, str]]
"""Maps a foreign object's URL to a store and key; raises `ForeignObject` for a place that the caller does not allow."""

P = ParamSpec("P")
T = TypeVar("T")


@runtime_checkable
class InvalidatableStore(RangeReader, Protocol):
    """A store that may answer from memory."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Report that the kept copy of these bytes, under the requested ETag, is damaged."""
        ...


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    raise ForeignObject(f"{url} lies outside the context; open it with allow=[...] to read there")


def change(method: Callable[Concatenate[Fetcher, P], T]) -> Callable[Concatenate[Fetcher, P], T]:
    """Carry out a method under the lock, over a state that is whole. An error of ours leaves it whole: such errors are
    raised before anything is changed.

    On CPython 3.11 to 3.13 `with` on a lock of `_thread` itself neither misses the body's end nor keeps the lock, since
    nothing is interrupted between the lock's C function and the block (tests/faults/test_interrupts.py). It is not so
    with `threading.Condition`, whose methods are Python.
    """

    @wraps(method)
    def changed(self: Fetcher, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            if self._inside.locked():  # by this very thread, further up
                return method(self, *args, **kwargs)
            with self._inside:
                if self._is_dirty:
                    self._begin_anew()
                self._is_dirty = True
                try:
                    done = method(self, *args, **kwargs)
                except MonocontextError:
                    self._is_dirty = False
                    raise
                self._is_dirty = False
                return done

    return changed


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
        round_trip_seconds: float | None = None,
        kept_bytes: int = 0,
    ):
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes - kept_bytes)
        self.stored = StoredBytes(kept_bytes)
        """The part of the cache that holds frames as they are stored."""
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)
        pressure = Pressure(workers.max_running)
        self.scheduler = Scheduler(workers.max_running, self.window_bytes, self.stats.prefetch, pressure)
        self.hedging = Hedging(hedge, pressure) if hedge is not None else None
        self.link = Link(round_trip_seconds)
        self.listeners: list[Listener] = [Counting(self.stats), self.link, *([self.hedging] if self.hedging else [])]
        self.expected: Container[Hashable] = ()
        """Keys that were planned ahead of any caller and are not used yet: the cache keeps such an entry as unused."""
        self.workers = workers
        self.lock = workers.lock
        """Held while a state of the reader is touched, and over a fork. Who holds it may take it again: the collector
        closes iterators where it likes."""
        self.is_closed = False
        self._inside = threading.Lock()
        """Held during a change, by a `with`: so it is free after one that was cut short."""
        self._is_dirty = False
        self._store = store
        self._holds: Callable[[str, int, int], bool] | None = getattr(store, "holds", None)
        """Tells whether a store has these bytes in memory; None for a store without memory. `isinstance` with a
        protocol would import `inspect` on Python 3.12."""
        self._places = places
        self._etags: dict[str, str] = {}
        self._pid = os.getpid()

    # -- what callers do -------------------------------------------------------------------------------------------

    def fetch_all(self, items: Sequence[FetchItem]) -> list[Any]:
        """All items, fetched at once."""
        token = Token()
        with token:
            wanted = self.want(items, token, is_all=len(items) == 1)
            try:
                return [
                    self.wait(item.key, one, token) if isinstance(one, Fetch) else one
                    for item, one in zip(items, wanted, strict=True)
                ]
            finally:
                if any(isinstance(one, Fetch) and not one.done for one in wanted):  # the wait was interrupted
                    self.release(wanted)

    def fetch_some(self, items: Sequence[FetchItem]) -> list[Any | None]:
        """Like `fetch_all`, until one item more has come; None for each that is still under way."""
        token = Token()
        with token:
            wanted = self.want(items, token)
            fetches = [one for one in wanted if isinstance(one, Fetch)]

            def has_moved() -> bool:
                return any(map(self._has_moved, fetches))

            try:
                while fetches and not has_moved():
                    if not self.workers.wait(has_moved, self.hedging.next_due if self.hedging else None):
                        self.hedge()
                return [
                    one
                    if not isinstance(one, Fetch)
                    else self.wait(item.key, one, token)
                    if self._has_moved(one)
                    else None
                    for item, one in zip(items, wanted, strict=True)
                ]
            finally:
                if not all(one.done for one in fetches):
                    self.release(wanted)

    def fetch_one(self, item: FetchItem) -> Any:
        """Fetch one item now."""
        [value] = self.fetch_all([item])
        return value

    def want(self, items: Sequence[FetchItem], token: Token, *, is_all: bool = False) -> list[Any]:
        """The value of each cached item, and the `Fetch` of each other one.

        The call holds `token` until it needs none of them any more. `is_all`: it waits only for these. Then a request
        that can start at once runs in the caller's own thread, unless it may be hedged, which needs a second thread to
        watch it.
        """
        self.resume()
        return self._register(items, token, is_all)

    def wait(self, key: Hashable, fetch: Fetch, token: Token) -> Any:
        """The value that a fetch gives for one of its keys.

        No other thread needs to act: the caller carries out requests left to callers, and asks again for a fetch that
        is no longer active.
        """
        if not fetch.done:
            self.resume()
            began = self.workers.now()
            while not fetch.done:
                if fetch.claimed_by is token:
                    self._carry_here(fetch)
                elif not self._is_active(fetch):
                    item = next(item for item in fetch.request.items if item.key == key)
                    [again] = self.want([item], token, is_all=True)
                    if not isinstance(again, Fetch):
                        return again
                    fetch = again
                elif not self._take(fetch, token) and not self.workers.wait(
                    lambda: self._has_moved(fetch),  # noqa: B023
                    self.hedging.next_due if self.hedging else None,
                ):
                    self.hedge()
            with self.lock:
                self.stats.wait_seconds += self.workers.now() - began
        if log.pending:
            log.emit()
        if fetch.error is not None:
            raise fetch.error
        assert fetch.values is not None
        return fetch.values[key]

    def wait_for_frame(self, number: int, fetch: Fetch, token: Token) -> FrameText:
        """The same for a frame that the caller looks at then."""
        text: FrameText = self.wait(number, fetch, token)
        if not text.used:
            self.use(text)
        return text

    @change
    def release(self, wanted: Iterable[Any]) -> None:
        """Release what a call wanted and did not receive, since it has ended. On an event loop, other tasks may run
        here, as wherever the lock is taken."""
        self.scheduler.release([one for one in wanted if isinstance(one, Fetch) and not one.done])

    @change
    def use(self, text: FrameText, step: Callable[[], None] | None = None) -> None:
        """A caller looks at a frame; then take a step as `act` does."""
        if not text.used:
            text.used = True
            self.stats.bytes_used += text.frame.stored_bytes
            if text.ahead:
                self.stats.prefetch.bytes_used += text.frame.stored_bytes
            for listener in self.listeners:
                listener.used(text)
        if step and not self.is_closed:
            step()
        self._start()

    @change
    def act(self, step: Callable[[], T]) -> T | None:
        """Run a step that changes the plan, and send the requests that it starts. A closed reader runs none."""
        self.resume()
        if self.is_closed:
            return None
        done = step()
        self._start()
        return done

    @change
    def hedge(self) -> None:
        """Send late requests a second time."""
        for fetch in self.hedging.overdue(self.workers.now()) if self.hedging else ():
            self.scheduler.again(fetch)
            log.note(log.DEBUG, "%s is late: bytes %d to %d asked for twice", *_place(fetch.request))
        self._start()

    def unwanted(self) -> list[RangeRequest]:
        """The number of running requests whose callers have given up (no GET)."""
        with self.lock:
            return [fetch.request for fetch in self.scheduler.unwanted()]

    @change
    def under_way(self) -> tuple[int, int]:
        """Requests under way, and the bytes that they reserve."""
        self._sweep()
        return self.scheduler.running, self.scheduler.reserved_bytes

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        self.is_closed = True
        self._end()
        self.workers.close()

    def check_open(self) -> None:
        if self.is_closed:
            raise self._closed_error()

    def resume(self) -> None:
        """In the child of a fork: carry out the requests of the parent's threads, which do not exist here."""
        if self._pid != os.getpid():
            self._carry_on()

    # -- changes ---------------------------------------------------------------------------------------------------

    @change
    def _register(self, items: Sequence[FetchItem], token: Token, is_all: bool) -> list[Any]:
        self.check_open()
        self._sweep()
        found: list[Any] = []
        missing: list[FetchItem] = []
        for item in items:
            entry = self.cache.get(item.key)
            found.append(entry)
            if entry is None:
                missing.append(item)
        self.stats.hits += len(items) - len(missing)
        self.stats.misses += len(missing)
        if not missing:
            return found
        fetches = self.scheduler.want(missing, Priority.DEMAND, token)
        is_first = not self.scheduler.running
        started = self.scheduler.start()
        # A request that started alone is carried out by the call that waits for it, unless it may be hedged.
        alone = started[0] if is_all and len(started) == 1 and self.workers.runs_inline else None
        if alone and self.hedging and self.hedging.late_after(alone.request.stored_bytes) is not None:
            alone = None
        if alone and token in alone.wanted_by:
            self.scheduler.run_in_caller(alone, token)
            for listener in self.listeners:
                listener.sent(started, self.workers.now(), is_first)
        elif started:
            self._send(started, is_first)
            self._start()
        return [fetches[item.key] if entry is None else entry for item, entry in zip(items, found, strict=True)]

    def _has_moved(self, fetch: Fetch) -> bool:
        if log.pending:  # a wait may be long
            log.emit()
        if fetch.done or not self._is_active(fetch):
            return True
        return fetch in self.scheduler.left and self.scheduler.may_take(fetch)

    def _is_active(self, fetch: Fetch) -> bool:
        """Whether it is queued, left to callers, or running. A fetch that is none of these and not done will never be
        done."""
        return fetch.home is self.scheduler and not fetch.forgotten

    def _take(self, fetch: Fetch, token: Token) -> bool:
        """Whether the caller now carries it out itself."""
        return fetch in self.scheduler.left and self._take_left(fetch, token)

    @change
    def _take_left(self, fetch: Fetch, token: Token) -> bool:
        self.check_open()
        if not self.scheduler.may_take(fetch):
            return False
        is_first = not self.scheduler.running
        self.scheduler.take(fetch, token)
        for listener in self.listeners:
            listener.sent([fetch], self.workers.now(), is_first)
        return True

    @change
    def _unclaim(self, fetch: Fetch) -> None:
        self.scheduler.unclaim(fetch)
        self.workers.notify()
        self._start()

    @change
    def _end(self) -> None:
        self.cache.clear()
        self.stored.clear()
        forget_warm(self.cache)
        for fetch in self.scheduler.drop_queued():  # they will never start, and threads may wait for them
            fetch.error = self._closed_error()
            fetch.done = True
        for listener in self.listeners:
            listener.reset_state()
        self.listeners.clear()  # they hold this, which is to go with its last reference
        self.workers.notify()

    @change
    def _carry_on(self) -> None:
        if self._pid == os.getpid():
            return  # another thread of the child was faster
        lost = self.scheduler.restart()
        for listener in self.listeners:
            listener.forked()
        self._send(lost, False)
        self._pid = os.getpid()

    def _begin_anew(self) -> None:
        """Reset the state after an interrupted change, since it may be half done.

        Running requests of the old state end there, and callers that wait for them ask again. A reset may be
        interrupted too; then it runs again.
        """
        self.scheduler = self.scheduler.restarted()
        self.cache.expect_nothing()
        for listener in self.listeners:
            listener.reset_state()
        self.workers.notify()

    def _sweep(self) -> None:
        """Within a change: remove what interrupted calls left behind."""
        if self.scheduler.left:
            for fetch in self.scheduler.sweep():
                for listener in self.listeners:
                    listener.ended(fetch, self.workers.now(), not self.scheduler.running)

    def _start(self) -> None:
        """Within a change: start and send every request that may start now."""
        while self.scheduler.queue and not self.is_closed:
            is_first = not self.scheduler.running
            started = self.scheduler.start()
            if not started:
                return
            self._send(started, is_first)

    def _send(self, fetches: Iterable[Fetch], is_first: bool) -> None:
        """Within a change: have attempts carried out, or leave them to callers."""
        now, away = self.workers.now(), []
        for fetch in fetches:
            if self._is_cached(fetch.request):
                self.scheduler.leave(fetch)
            else:
                away.append(fetch)
        if not away:
            return
        taken = self.workers.submit_all([(fetch.request, partial(self._carry, fetch, now)) for fetch in away])
        for fetch in away[taken:]:
            self.scheduler.leave(fetch)
        if sent := away[:taken]:
            if self.hedging is not None:
                self.stats.hedges += sum(fetch.attempts > 1 for fetch in sent)
            for listener in self.listeners:
                listener.sent(sent, now, is_first)

    def _is_cached(self, request: RangeRequest) -> bool:
        """Whether a request needs no waiting. Then its caller is faster than a thread that has to wake up."""
        holds = self._holds
        return holds is not None and holds(request.object, request.start, request.stored_bytes)

    # -- carrying out ----------------------------------------------------------------------------------------------

    def _carry(self, fetch: Fetch, began: float) -> None:
        """In a worker: carry out one attempt, keep its values, and start what may start after it. Never raises."""
        try:
            values, failed = self._get_again(fetch, began), None
        except BaseException as error:  # handed to the waiting callers
            values, failed = {}, error
        self._file(fetch, values, failed, began)

    def _carry_here(self, fetch: Fetch) -> None:
        """Like `_work`, in the caller's thread. An interrupt of the caller is not an error of the fetch."""
        began = self.workers.now()
        failed: BaseException | None = None
        try:
            values = self._get_again(fetch, began)
        except MonocontextError as error:
            values, failed = {}, error
        except BaseException:
            self._unclaim(fetch)
            raise
        self._file(fetch, values, failed, began)

    def _get_again(self, fetch: Fetch, began: float) -> dict[Hashable, Any]:
        try:
            return self._get(fetch, began)
        except DamagedData:  # a second read: damage in transit leaves the stored object whole
            log.note(log.INFO, "%s came damaged: bytes %d to %d read once more", *_place(fetch.request))
            return self._get(fetch, None)

    @change
    def _file(self, fetch: Fetch, values: dict[Hashable, Any], failed: BaseException | None, began: float) -> None:
        """Keep the values of an attempt that has ended, wake its callers, and start what may start after it."""
        if isinstance(failed, StoreFailure) and failed.refusals:
            self._apply_backpressure(failed.refusals, began)
        if fetch.done:
            pass  # the other attempt was faster
        elif failed is None:
            for key, value in values.items():
                if isinstance(value, FrameText):
                    value.ahead = fetch.sent_ahead
                    value.late = fetch.ahead is None or not fetch.speculative
                self.cache.put(key, value, used=key not in self.expected)
            if self.lock is LOCK:
                keep_warm(self.cache)
            fetch.values = values
            fetch.done = True
        elif fetch.attempts == 1:  # otherwise the other attempt may still succeed
            fetch.error = failed
            fetch.done = True
        if fetch.home is self.scheduler:  # else it started before the state was reset
            self.scheduler.finish(fetch)
            for listener in self.listeners:
                listener.ended(fetch, self.workers.now(), not self.scheduler.running)
        self.workers.notify()
        self._start()

    def _get(self, fetch: Fetch, began: float | None) -> dict[Hashable, Any]:
        """One GET: read, compare the ETag, verify and decode. Returns nothing if another attempt was first."""
        request = fetch.request
        items, size = request.items, request.stored_bytes
        store, key = self._places(request.object) if "://" in request.object else (self._store, request.object)
        recorded = items[0].etag
        etag = recorded or self._etags.get(request.object)
        kept = None
        if self.stored.limit_bytes:
            with self.lock:
                kept = self.stored.body_of(request)
        if kept is not None:
            blob = Blob(kept, etag or "", len(kept), local=True)
        else:
            blob = store.get_range(key, request.start, size, etag=etag)
            self._answered(fetch, blob, began)
        if fetch.done:
            return {}
        if self.is_closed and (fetch.speculative or not fetch.waiters):
            raise self._closed_error()  # decoding now would start the released threads again
        if etag and (recorded or not blob.local):
            _check_version(request, etag, blob)
        if len(blob.data) != size:
            raise DamagedData(f"{request.object}: expected {size} bytes from {request.start}, found {len(blob.data)}")
        body = memoryview(blob.data)

        offsets = ((item, item.offset - request.start) for item in items)
        parts = [(item, body[at : at + item.stored_bytes]) for item, at in offsets]

        def decode_here() -> dict[Hashable, Any]:
            return {item.key: item.decode(part) for item, part in parts}

        def decode() -> dict[Hashable, Any]:
            if len(parts) == 1:
                return decode_here()
            works = [item.begin(part) if item.begin else partial(item.decode, part) for item, part in parts]
            values = self.workers.share(works)
            return {item.key: value for item, value in zip(items, values, strict=True)}

        try:
            # Text in a root is small, and a thread is not started for it.
            values = decode_here() if request.is_in_place or blob.in_root else self.workers.decode(decode)
        except DamagedData:
            with self.lock:
                self.stored.forget(items)
            if isinstance(store, InvalidatableStore):
                store.forget(key, request.start, size, etag=etag)
            raise
        if not recorded and not blob.local:  # only verified bytes pin the version
            with self.lock:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        if kept is None and self.stored.limit_bytes and not self.is_closed:
            with self.lock:
                self.stored.keep(request, body)
        return values

    @change
    def _answered(self, fetch: Fetch, blob: Blob, began: float | None) -> None:
        if not blob.local:
            self._apply_backpressure(blob.refusals, began)
        seconds = None if began is None else self.workers.now() - began
        for listener in self.listeners:
            listener.answered(fetch, blob, seconds)

    def _apply_backpressure(self, refusals: int, sent: float | None) -> None:
        """Within a change: adapt the limit of concurrent requests to an answer of the store."""
        pressure = self.scheduler.pressure
        self.stats.throttled += refusals
        if refusals:
            now = self.workers.now()
            if pressure.refused(now if sent is None else sent, now, self.scheduler.running):
                log.note(log.WARNING, "%s asks for fewer requests: %d at once now", self.url, pressure.limit)
        elif pressure.is_throttled:
            pressure.answered(self.workers.now())

    def _closed_error(self) -> ContextClosed:
        return ContextClosed(f"{self.url or 'this context'} is closed")


def _place(request: RangeRequest) -> tuple[str, int, int]:
    """For a log: where a request reads; of a URL without its query, which may sign it."""
    name = request.object.partition("?")[0] if "://" in request.object else request.object
    return name, request.start, request.stop


def _check_version(request: RangeRequest, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced while it was read: expected ETag {expected}, found {blob.etag}"
        )
