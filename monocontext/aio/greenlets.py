"""Run the synchronous engine on an event loop, without threads that wait.

The engine is written for threads, which block where they wait. Here each call of the engine runs in a greenlet, which
has its own stack in the loop's thread. To wait, the greenlet passes an awaitable to its asyncio task, which awaits it
and switches back with the result. So the asynchronous reader shares all code of the synchronous one.

Invariants:

- all code runs in the loop's thread, except the jobs of `decode`
- no greenlet switches to another while it has the lock, so the lock does not have to exclude anything
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

from monocontext.engine.fetch.scheduler import RangeRequest
from monocontext.engine.fetch.threads import LOCK, ThreadPools, shared_pools
from monocontext.engine.fetch.workers import MAX_THREADS, Job, Workers

T = TypeVar("T")

HOLD_SECONDS = 0.005
"""The longest time that a call may run without a wait, before it lets other tasks run. A scan reads 5 MB in it."""

_YIELD = object()
"""A greenlet passes this to its task instead of an awaitable, to let other tasks run."""


class RequestAbandoned(BaseException):
    """Thrown into a request that no caller waits for any longer."""


class GreenletWorkers(Workers):
    """The `Workers` of an asynchronous text. They belong to the event loop that was running when they were made."""

    runs_inline = False
    """Callers share a request, so none runs it inline: its cancellation would end the request of the others."""

    def __init__(self, max_running: int = MAX_THREADS):
        self.max_running = max_running
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = _Lock(self)
        self.lock: Any = self._lock
        self._waiting: set[asyncio.Future[None]] = set()
        """Calls that wait for `notify`."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[int, list[tuple[greenlet, asyncio.Task[None]]]] = {}
        """The attempts in flight of each request, by the `id` of the request."""
        self._thread_pools: ThreadPools | None = None
        self._turn_began = time.monotonic()
        """When other tasks last ran."""
        self._is_ending = False
        """Whether `_end_attempts` runs, during which no greenlet may switch to another."""

    # -- for the asynchronous side ---------------------------------------------------------------------------------

    async def call(self, work: Callable[[], T]) -> T:
        """Run `work`, which may wait. A cancellation of the task raises `CancelledError` where it waits."""
        self._check_thread()
        return cast(T, await self._drive(greenlet(work)))

    def wait_for(self, awaitable: Awaitable[T]) -> T:
        """Await `awaitable` and return its result. Only inside `call`."""
        parent = getcurrent().parent
        if parent is None:
            if isinstance(awaitable, Coroutine):
                awaitable.close()
            raise RuntimeError("an asynchronous text is read by awaiting its methods")
        result: T = parent.switch(awaitable)
        self._turn_began = time.monotonic()
        return result

    def pause(self, seconds: float) -> None:
        """Sleep. Only inside `call`."""
        self.wait_for(asyncio.sleep(seconds))

    def end(self, requests: Iterable[RangeRequest], error: BaseException) -> bool:
        """End requests in flight with an error. The bytes that they reserved are free when this returns.

        Returns False if the tasks of some requests have not started: call again after the loop has run them.
        """
        keys = [id(request) for request in requests]
        have_begun = self._running.keys() >= set(keys)
        for key in keys:
            self._end_attempts(self._running.pop(key, []), error)
        return have_begun

    async def aclose(self, error: BaseException) -> None:
        """End all requests with an error, and wait until they have ended."""
        for attempts in list(self._running.values()):
            self._end_attempts(attempts, error)
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._thread_pools = None

    def _end_attempts(self, attempts: Iterable[tuple[greenlet, asyncio.Task[None]]], error: BaseException) -> None:
        self._is_ending = True
        try:
            for worker, task in attempts:
                worker.throw(error)
                task.cancel()  # it awaits something that the greenlet no longer needs
        finally:
            self._is_ending = False

    # -- what the engine calls ---------------------------------------------------------------------------------------

    def submit(self, request: RangeRequest, job: Job) -> bool:
        self._check_thread()
        task = self._loop.create_task(self._run_request(request, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    def decode(self, work: Callable[[], T]) -> T:
        """Run `work`, which takes milliseconds of CPU, in the process's decoding thread."""
        outcome: Future[T] = Future()

        def job() -> None:
            if outcome.set_running_or_notify_cancel():
                try:
                    outcome.set_result(work())
                except BaseException as error:  # raised in the waiting caller
                    outcome.set_exception(error)

        with LOCK:
            self._thread_pools = shared_pools()
            if not self._thread_pools.decoding.submit(job):
                return work()
        return self.wait_for(asyncio.wrap_future(outcome, loop=self._loop))

    def share(self, works: Sequence[Callable[[], T]]) -> list[T]:
        thread_pools = self._thread_pools
        return thread_pools.share(works) if thread_pools else [work() for work in works]

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        while not ready():
            moment = until() if until else None
            remaining = None if moment is None else moment - self.now()
            if remaining is not None and remaining <= 0:
                return False
            self.wait_for(self._wait_for_event(remaining))
        return True

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """Do nothing: requests end by themselves, or by `aclose`."""

    # -- internals -----------------------------------------------------------------------------------------------------

    def notify(self) -> None:
        for waiter in self._waiting:
            _wake(waiter)

    def yield_turn(self) -> None:
        """Let other tasks run if this one has run for `HOLD_SECONDS`. Only inside `call`, without the lock."""
        if self._is_ending or time.monotonic() - self._turn_began < HOLD_SECONDS:
            return
        parent = getcurrent().parent
        if parent is not None:
            parent.switch(_YIELD)
            self._turn_began = time.monotonic()

    async def _drive(self, worker: greenlet) -> Any:
        """Run a greenlet to its end, and await the awaitables that it passes."""
        cancelled: BaseException | None = None
        self._turn_began = time.monotonic()
        awaited = worker.switch()
        while not worker.dead:
            if awaited is _YIELD:
                # The engine expects interrupts only where it waits, so raise a cancellation at the next wait.
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error
                awaited = worker.switch()
                continue
            try:
                if cancelled is not None:
                    if isinstance(awaited, Coroutine):
                        awaited.close()
                    pending, cancelled = cancelled, None
                    raise pending
                result = await awaited
            except BaseException as error:
                if worker.dead:  # it ended during the await
                    raise
                awaited = worker.throw(error)
            else:
                if worker.dead:
                    return None
                awaited = worker.switch(result)
        if cancelled is not None:
            raise cancelled
        return awaited

    async def _run_request(self, request: RangeRequest, job: Callable[[], None]) -> None:
        worker = greenlet(job)
        attempts = self._running.setdefault(id(request), [])
        mine = (worker, cast("asyncio.Task[None]", asyncio.current_task()))
        attempts.append(mine)
        try:
            await self._drive(worker)
        finally:
            attempts.remove(mine)
            if not attempts and self._running.get(id(request)) is attempts:
                del self._running[id(request)]

    async def _wait_for_event(self, most_seconds: float | None) -> None:
        """Wait until `notify`, but at most `most_seconds`."""
        waiter = self._loop.create_future()
        self._waiting.add(waiter)
        later = None if most_seconds is None else self._loop.call_later(most_seconds, _wake, waiter)
        try:
            await waiter
        finally:
            self._waiting.discard(waiter)
            if later is not None:
                later.cancel()

    def _check_thread(self) -> None:
        if threading.get_ident() != self._thread:
            raise RuntimeError("an asynchronous text belongs to the event loop that opened it")


class _Lock:
    """Replaces the lock of the engine. To enter it lets other tasks run (see `yield_turn`)."""

    def __init__(self, workers: GreenletWorkers):
        self._workers = workers
        self._depth = 0

    def __enter__(self) -> None:
        if not self._depth:
            self._workers.yield_turn()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._depth -= 1


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
