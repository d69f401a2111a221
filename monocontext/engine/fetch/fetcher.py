"""Fetch stored items: look each up in the cache, request, verify and decode the missing ones, and keep them.

Invariants:

- no value is returned or kept whose bytes did not pass every check. Every object is pinned to the ETag that is
recorded, or else to the one first seen with verified bytes
- memory is the cache, plus at most `window_bytes` of requests in flight, plus what callers hold
- no lock is held while a request runs or a caller waits
- a registered request is carried out or withdrawn, even if its caller is interrupted: one `change` registers and sends
  it, and requests left to callers belong to calls that hold a token (`scheduler`)
- an exception may interrupt a change at any moment: Ctrl-C, the time limit of a cell, a signal handler that raises. It
  can strike between any two lines, also in a `finally`, so no line relies on a later one. The next change notices and
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
from monocontext.engine.fetch.listeners import Counting, Hedge, Hedging, Link, Listeners
from monocontext.engine.fetch.scheduler import Fetch, FetchItem, Priority, RangeRequest, Scheduler, Token
from monocontext.engine.fetch.threads import LOCK
from monocontext.engine.fetch.workers import Workers
from monocontext.engine.frame import FrameText
from monocontext.engine.stats import Stats
from monocontext.errors import ContextChanged, ContextClosed, DamagedData, ForeignObject, MonocontextError, StoreFailure
from monocontext.records import dataclass
from monocontext.stores import log
from monocontext.stores.protocol import Blob, RangeReader

MIN_WINDOW_BYTES = 24 << 20
"""Requests in flight may take this much memory whatever the cache's size: without it an uncached reader of a far store
would fetch one frame after another."""

# -- stored objects ----------------------------------------------------------------------------------------------------

Places = Callable[[str], tuple[RangeReader, str]]
"""Maps a foreign object's URL to a store and key; raises `ForeignObject` for a place that the caller does not allow."""


@runtime_checkable
class InvalidatableStore(RangeReader, Protocol):
    """A store that may answer from its own copies."""

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Drop the copy of these bytes, under the requested ETag, because it is damaged."""
        ...


def refuse_foreign(url: str) -> tuple[RangeReader, str]:
    raise ForeignObject(f"{url} is outside of the context: to read it, open the context with allow=[...]")


@dataclass(frozen=True, slots=True)
class Answer:
    """The bytes of a request, before they are verified."""

    request: RangeRequest
    blob: Blob
    store: RangeReader
    key: str
    """The name of the object in the store."""
    etag: str | None
    """The version that was requested, if one is recorded or was seen."""
    is_kept: bool
    """Whether the bytes were in memory, so no store was asked."""


class ObjectReader:
    """Reads the objects of one context. Safe for use by many threads."""

    def __init__(self, store: RangeReader, places: Places, workers: Workers, stored: StoredBytes):
        self._store = store
        self._places = places
        self._workers = workers
        self._stored = stored
        self._etags: dict[str, str] = {}

    def read(self, request: RangeRequest) -> Answer:
        """The bytes of a request (1 GET, none if they are kept)."""
        store, key = self._store, request.object
        if "://" in request.object:
            store, key = self._places(request.object)
        etag = request.items[0].etag or self._etags.get(request.object)
        kept = None
        if self._stored.limit_bytes:
            with self._workers.lock:
                kept = self._stored.body_of(request)
        if kept is not None:
            return Answer(request, Blob(kept, etag or "", len(kept), local=True), store, key, etag, True)
        blob = store.get_range(key, request.start, request.stored_bytes, etag=etag)
        return Answer(request, blob, store, key, etag, False)

    def decode(self, answer: Answer) -> dict[Hashable, Any]:
        """The values of an answer's items, by key. Raises `DamagedData`, or `ContextChanged` for another version."""
        request, blob, size = answer.request, answer.blob, answer.request.stored_bytes
        recorded = request.items[0].etag
        if answer.etag and (recorded or not blob.local):
            _check_version(request, answer.etag, blob)
        if len(blob.data) != size:
            raise DamagedData(f"{request.object}: expected {size} bytes from {request.start}, found {len(blob.data)}")
        try:
            values = self._decode_items(request, blob)
        except DamagedData:
            with self._workers.lock:
                self._stored.forget(request.items)
            if isinstance(answer.store, InvalidatableStore):
                answer.store.forget(answer.key, request.start, size, etag=answer.etag)
            raise
        if not recorded and not blob.local:  # only verified bytes pin the version
            with self._workers.lock:
                first_seen = self._etags.setdefault(request.object, blob.etag)
            _check_version(request, first_seen, blob)
        return values

    def _decode_items(self, request: RangeRequest, blob: Blob) -> dict[Hashable, Any]:
        items, body = request.items, memoryview(blob.data)
        parts = []
        for item in items:
            offset = item.offset - request.start
            parts.append((item, body[offset : offset + item.stored_bytes]))

        def decode() -> list[Any]:
            return [item.decode(part) for item, part in parts]

        def decode_on_all_cores() -> list[Any]:
            works = [item.begin(part) if item.begin else partial(item.decode, part) for item, part in parts]
            return self._workers.share(works)

        if request.is_in_place or blob.in_root:  # decoding text in a root takes less than starting a thread
            values = decode()
        else:
            values = self._workers.decode(decode if len(items) == 1 else decode_on_all_cores)
        return {item.key: value for item, value in zip(items, values, strict=True)}


def _check_version(request: RangeRequest, expected: str, blob: Blob) -> None:
    if blob.etag != expected:
        raise ContextChanged(
            f"{request.object} was replaced while it was read: expected ETag {expected}, found {blob.etag}"
        )


# -- the fetcher -------------------------------------------------------------------------------------------------------

P = ParamSpec("P")
T = TypeVar("T")


def change(method: Callable[Concatenate[Fetcher, P], T]) -> Callable[Concatenate[Fetcher, P], T]:
    """Run a method under the lock, and first reset the state if the change before was interrupted.

    A `MonocontextError` is raised before anything is changed, so it does not count as an interruption. Changes may
    nest.

    On CPython 3.11 to 3.13 `with` on a lock of `_thread` itself neither misses the body's end nor keeps the lock, since
    nothing is interrupted between the lock's C function and the block (tests/faults/test_interrupts.py). This does not
    hold for `threading.Condition`, whose methods are Python.
    """

    @wraps(method)
    def changed(self: Fetcher, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            if self._inside.locked():  # by this very thread, further up
                return method(self, *args, **kwargs)
            with self._inside:
                if self._is_dirty:
                    self._reset_state()
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
        url: str,
        cache_bytes: int,
        places: Places,
        stats: Stats | None,
        hedge: Hedge | None,
        round_trip_seconds: float | None,
        kept_bytes: int,
    ):
        """`kept_bytes`: the part of the cache for frames in their stored form. Other parameters: see
        `Monocontext.open`."""
        self.url = url
        self.stats = stats or Stats()
        self.cache = Cache(cache_bytes - kept_bytes)
        self.stored = StoredBytes(kept_bytes)
        self.window_bytes = max(cache_bytes * 3 // 8, MIN_WINDOW_BYTES)
        pressure = Pressure(workers.max_running)
        self.scheduler = Scheduler(workers.max_running, self.window_bytes, self.stats.prefetch, pressure)
        self.hedging = Hedging(hedge, pressure) if hedge is not None else None
        self.link = Link(round_trip_seconds)
        self.listeners = Listeners(Counting(self.stats), self.link, *([self.hedging] if self.hedging else []))
        self.expected: Container[Hashable] = ()
        """Keys that read-ahead expects a caller to use: the cache keeps their entries as unused."""
        self.workers = workers
        self.lock = workers.lock
        """Held while any state of the reader is touched, and during a fork. It is reentrant, because the garbage
        collector closes iterators at any line."""
        self.is_closed = False
        self._inside = threading.Lock()
        """Held during a change by a `with`, so it is free after an interrupted one."""
        self._is_dirty = False
        """Whether a change is running, or the last one was interrupted."""
        self._holds: Callable[[str, int, int], bool] | None = getattr(store, "holds", None)
        """Returns whether the store has a range in memory; None for a store without memory. `isinstance` with a
        protocol would import `inspect` on Python 3.12."""
        self._objects = ObjectReader(store, places, workers, self.stored)
        self._pid = os.getpid()

    # -- for callers -----------------------------------------------------------------------------------------------

    def fetch_all(self, items: Sequence[FetchItem]) -> list[Any]:
        """The values of all items, fetched in parallel."""
        token = Token()
        with token:
            wanted = self.want(items, token, inline=len(items) == 1)
            try:
                return [
                    self.wait(item.key, result, token) if isinstance(result, Fetch) else result
                    for item, result in zip(items, wanted, strict=True)
                ]
            finally:
                if any(isinstance(result, Fetch) and not result.done for result in wanted):  # the wait was interrupted
                    self.release(wanted)

    def fetch_some(self, items: Sequence[FetchItem]) -> list[Any | None]:
        """The values of cached items, and of at least one more; None for each that is still under way."""
        token = Token()
        with token:
            wanted = self.want(items, token)
            fetches = [result for result in wanted if isinstance(result, Fetch)]

            def is_one_ready() -> bool:
                return any(map(self._is_ready, fetches))

            try:
                while fetches and not is_one_ready():
                    self._wait_or_hedge(is_one_ready)
                values: list[Any | None] = []
                for item, outcome in zip(items, wanted, strict=True):
                    if not isinstance(outcome, Fetch):
                        values.append(outcome)
                    elif self._is_ready(outcome):
                        values.append(self.wait(item.key, outcome, token))
                    else:
                        values.append(None)
                return values
            finally:
                if not all(fetch.done for fetch in fetches):
                    self.release(wanted)

    def fetch_one(self, item: FetchItem) -> Any:
        """The value of one item."""
        [value] = self.fetch_all([item])
        return value

    def want(self, items: Sequence[FetchItem], token: Token, *, inline: bool = False) -> list[Any]:
        """The value of each cached item, and the `Fetch` of each other one.

        The call holds `token` until it needs none of them any more. `inline`: it waits for nothing else. Then a single
        request that can start at once runs in the caller's own thread, unless it may be hedged, which needs a second
        thread to watch it.
        """
        self.resume()
        return self._look_up_or_request(items, token, inline)

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
                    self._run_in_caller(fetch)
                elif not self._is_active(fetch):
                    item = next(item for item in fetch.request.items if item.key == key)
                    [result] = self.want([item], token, inline=True)
                    if not isinstance(result, Fetch):
                        return result
                    fetch = result
                elif fetch not in self.scheduler.left or not self._claim(fetch, token):
                    self._wait_or_hedge(partial(self._is_ready, fetch))
            with self.lock:
                self.stats.wait_seconds += self.workers.now() - began
        if log.pending:
            log.emit()
        if fetch.error is not None:
            raise fetch.error
        assert fetch.values is not None
        return fetch.values[key]

    def _wait_or_hedge(self, is_ready: Callable[[], bool]) -> None:
        """Wait until `is_ready()`, or until a request is late; then send late requests a second time."""
        if not self.workers.wait(is_ready, self.hedging.next_due if self.hedging else None):
            self.hedge()

    @change
    def release(self, wanted: Iterable[Any]) -> None:
        """Give up the fetches that a call did not wait for to the end. On an event loop, other tasks may run here, as
        wherever the lock is taken."""
        self.scheduler.release([result for result in wanted if isinstance(result, Fetch) and not result.done])

    @change
    def use(self, text: FrameText, step: Callable[[], None] | None = None) -> None:
        """Record that a caller looks at a frame, and run `step` as `act` does."""
        if not text.is_used:
            text.is_used = True
            self.stats.bytes_used += text.frame.stored_bytes
            if text.is_prefetched:
                self.stats.prefetch.bytes_used += text.frame.stored_bytes
            for used in self.listeners.used:
                used(text)
        if step and not self.is_closed:
            step()
        self._start()

    @change
    def act(self, step: Callable[[], T]) -> T | None:
        """Run a step that changes the plan of requests, send those that may start then, and return its result. A closed
        reader runs no step, and returns None."""
        self.resume()
        if self.is_closed:
            return None
        result = step()
        self._start()
        return result

    @change
    def hedge(self) -> None:
        """Send late requests a second time."""
        for fetch in self.hedging.overdue(self.workers.now()) if self.hedging else ():
            self.scheduler.repeat(fetch)
            log.note(log.DEBUG, "%s is late: bytes %d to %d asked for twice", *_place(fetch.request))
        self._start()

    def unwanted(self) -> list[RangeRequest]:
        """The running requests whose callers have given up (no GET)."""
        with self.lock:
            return [fetch.request for fetch in self.scheduler.unwanted()]

    @change
    def under_way(self) -> tuple[int, int]:
        """The number of running requests, and the bytes that they reserve."""
        self._withdraw_abandoned()
        return self.scheduler.running, self.scheduler.reserved_bytes

    def close(self) -> None:
        """Drop the cache; later reads raise `ContextClosed`. Idempotent."""
        self.is_closed = True
        self._drop_all()
        self.workers.close()

    def check_open(self) -> None:
        if self.is_closed:
            raise self._closed_error()

    def resume(self) -> None:
        """In the child of a fork: carry out the requests of the parent's threads, which do not exist here."""
        if self._pid != os.getpid():
            self._resume_after_fork()

    # -- changes ---------------------------------------------------------------------------------------------------

    @change
    def _look_up_or_request(self, items: Sequence[FetchItem], token: Token, inline: bool) -> list[Any]:
        self.check_open()
        self._withdraw_abandoned()
        cached: list[Any] = []
        missing: list[FetchItem] = []
        for item in items:
            entry = self.cache.get(item.key)
            cached.append(entry)
            if entry is None:
                missing.append(item)
        self.stats.hits += len(items) - len(missing)
        self.stats.misses += len(missing)
        if not missing:
            return cached
        fetches = self.scheduler.want(missing, Priority.DEMAND, token)
        is_first = not self.scheduler.running
        started = self.scheduler.start()
        if (
            inline
            and self.workers.runs_inline
            and len(started) == 1
            and token in started[0].wanted_by
            and not (self.hedging and self.hedging.late_after(started[0].request.stored_bytes) is not None)
        ):
            self.scheduler.run_in_caller(started[0], token)
            for sent in self.listeners.sent:
                sent(started, self.workers.now(), is_first)
        elif started:
            self._send(started, is_first)
            self._start()
        return [fetches[item.key] if entry is None else entry for item, entry in zip(items, cached, strict=True)]

    def _is_ready(self, fetch: Fetch) -> bool:
        """Whether a waiting caller has something to do: take the value, carry the fetch out, or ask again."""
        if log.pending:  # a wait may be long
            log.emit()
        return (
            fetch.done
            or not self._is_active(fetch)
            or (fetch in self.scheduler.left and self.scheduler.may_claim(fetch))
        )

    def _is_active(self, fetch: Fetch) -> bool:
        return fetch.home is self.scheduler and not fetch.forgotten

    @change
    def _claim(self, fetch: Fetch, token: Token) -> bool:
        """Let the caller carry out a fetch, if it may; returns whether it may."""
        self.check_open()
        if not self.scheduler.may_claim(fetch):
            return False
        is_first = not self.scheduler.running
        self.scheduler.claim(fetch, token)
        for sent in self.listeners.sent:
            sent([fetch], self.workers.now(), is_first)
        return True

    @change
    def _unclaim(self, fetch: Fetch) -> None:
        self.scheduler.unclaim(fetch)
        self.workers.notify()
        self._start()

    @change
    def _drop_all(self) -> None:
        self.cache.clear()
        self.stored.clear()
        forget_warm(self.cache)
        for fetch in self.scheduler.drop_queued():  # they will never start, and threads may wait for them
            fetch.error = self._closed_error()
            fetch.done = True
        for reset_state in self.listeners.reset_state:
            reset_state()
        self.listeners.clear()  # they refer to this object, which is to go with its last reference
        self.workers.notify()

    @change
    def _resume_after_fork(self) -> None:
        if self._pid == os.getpid():
            return  # another thread of the child was faster
        lost = self.scheduler.restart_after_fork()
        for forked in self.listeners.forked:
            forked()
        self._send(lost, False)
        self._pid = os.getpid()

    def _reset_state(self) -> None:
        """Reset the state after an interrupted change, since it may be half done.

        Running requests of the old state end there, and callers that wait for them ask again. A reset may be
        interrupted too; then it runs again.
        """
        self.scheduler = self.scheduler.emptied()
        self.cache.expect_nothing()
        for reset_state in self.listeners.reset_state:
            reset_state()
        self.workers.notify()

    def _withdraw_abandoned(self) -> None:
        """Within a change: withdraw the requests of interrupted calls."""
        if self.scheduler.left:
            for fetch in self.scheduler.withdraw_abandoned():
                for ended in self.listeners.ended:
                    ended(fetch, self.workers.now(), not self.scheduler.running)

    def _start(self) -> None:
        """Within a change: start and send every request that may start now."""
        while self.scheduler.queue and not self.is_closed:
            is_first = not self.scheduler.running
            started = self.scheduler.start()
            if not started:
                return
            self._send(started, is_first)

    def _send(self, fetches: Iterable[Fetch], is_first: bool) -> None:
        """Within a change: submit attempts to threads, or leave them to callers."""
        now, submitted = self.workers.now(), []
        for fetch in fetches:
            request, job = fetch.request, partial(self._run, fetch, now)
            if not self._is_cached(request) and self.workers.submit(request, job):
                submitted.append(fetch)
            else:
                self.scheduler.leave(fetch)
        if submitted:
            if self.hedging is not None:
                self.stats.hedges += sum(fetch.attempts > 1 for fetch in submitted)
            for sent in self.listeners.sent:
                sent(submitted, self.workers.now(), is_first)

    def _is_cached(self, request: RangeRequest) -> bool:
        """Whether the store has a request's bytes in memory. Then its caller is faster than a thread that has to wake
        up."""
        return self._holds is not None and self._holds(request.object, request.start, request.stored_bytes)

    # -- running an attempt ----------------------------------------------------------------------------------------

    def _run(self, fetch: Fetch, began: float) -> None:
        """In a worker: run one attempt, keep its values, and start the requests that may follow. Never raises."""
        values: dict[Hashable, Any] = {}
        error: BaseException | None = None
        try:
            values = self._get_with_retry(fetch, began)
        except BaseException as raised:  # handed to the waiting callers
            error = raised
        self._finish(fetch, values, error, began)

    def _run_in_caller(self, fetch: Fetch) -> None:
        """Like `_run`, in the caller's thread. An interrupt of the caller is not an error of the fetch."""
        began = self.workers.now()
        values: dict[Hashable, Any] = {}
        error: BaseException | None = None
        try:
            values = self._get_with_retry(fetch, began)
        except MonocontextError as raised:
            error = raised
        except BaseException:
            self._unclaim(fetch)
            raise
        self._finish(fetch, values, error, began)

    def _get_with_retry(self, fetch: Fetch, began: float) -> dict[Hashable, Any]:
        try:
            return self._get(fetch, began)
        except DamagedData:  # a second read: damage in transit leaves the stored object whole
            log.note(log.INFO, "%s came damaged: bytes %d to %d read once more", *_place(fetch.request))
            return self._get(fetch, None)

    @change
    def _finish(self, fetch: Fetch, values: dict[Hashable, Any], error: BaseException | None, began: float) -> None:
        """Keep the values of an attempt that has ended, wake its callers, and start the requests that may follow."""
        if isinstance(error, StoreFailure) and error.refusals:
            self._apply_backpressure(error.refusals, began)
        if fetch.done:
            pass  # the other attempt was faster
        elif error is None:
            for key, value in values.items():
                if isinstance(value, FrameText):
                    value.is_prefetched = fetch.sent_ahead
                    value.was_awaited = fetch.ahead is None or not fetch.speculative
                self.cache.put(key, value, used=key not in self.expected)
            if self.lock is LOCK:
                keep_warm(self.cache)
            fetch.values = values
            fetch.done = True
        elif fetch.attempts == 1:  # otherwise the other attempt may still succeed
            fetch.error = error
            fetch.done = True
        if fetch.home is self.scheduler:  # else it started before the state was reset
            self.scheduler.finish(fetch)
            for ended in self.listeners.ended:
                ended(fetch, self.workers.now(), not self.scheduler.running)
        self.workers.notify()
        self._start()

    def _get(self, fetch: Fetch, began: float | None) -> dict[Hashable, Any]:
        """The verified values of one attempt (1 GET); none if another attempt was faster.

        `began`: the time of the attempt's beginning; None for a second read.
        """
        answer = self._objects.read(fetch.request)
        if not answer.is_kept:
            self._note_answer(fetch, answer.blob, began)
        if fetch.done:
            return {}
        if self.is_closed and (fetch.speculative or not fetch.waiters):
            raise self._closed_error()  # decoding now would start the released threads again
        values = self._objects.decode(answer)
        if not answer.is_kept and self.stored.limit_bytes and not self.is_closed:
            with self.lock:
                self.stored.keep(fetch.request, memoryview(answer.blob.data))
        return values

    @change
    def _note_answer(self, fetch: Fetch, blob: Blob, began: float | None) -> None:
        if not blob.local:
            self._apply_backpressure(blob.refusals, began)
        seconds = None if began is None else self.workers.now() - began
        for answered in self.listeners.answered:
            answered(fetch, blob, seconds)

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
    """The object, start and stop of a request, for a log; a URL without its query, which may be a signature."""
    name = request.object.partition("?")[0] if "://" in request.object else request.object
    return name, request.start, request.stop
