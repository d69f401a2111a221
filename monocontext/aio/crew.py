"""Carries the engine's work out on an event loop: callers and requests are tasks, and no thread waits for anything.

The engine is written for threads that wait. Each call of it runs in a greenlet, a stack of its own within the loop's
thread; where the engine waits, the greenlet is left, the task awaits, and goes back in with what came. So planning,
scheduling, verifying and caching are those of the synchronous path, line by line.

Invariants:
- everything but `decode` happens in the loop's thread;
- no greenlet is left while the lock is held, so the lock need not lock anything.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar, cast

from greenlet import getcurrent, greenlet

from monocontext.plan import Request
from monocontext.workers import MAX_THREADS

T = TypeVar("T")

HOLD_SECONDS = 0.005
"""A call that finds all it wants in memory lets others go on after so long: a scan looks at 5 MB meanwhile."""

_TURN = object()
"""What a greenlet hands to its task to let others go on."""


class Abandoned(BaseException):
    """Thrown into a request that nobody waits for any more."""


class Crew:
    """The `Workers` of an asynchronous text. Belongs to the loop that made it."""

    def __init__(self, max_running: int = MAX_THREADS):
        self.max_running = max_running
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._lock = _Lock(self)
        self.lock: Any = self._lock
        self.condition = cast(threading.Condition, self._lock)
        self._waiting: set[asyncio.Future[None]] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._running: dict[int, list[tuple[greenlet, asyncio.Task[None]]]] = {}
        """Attempts under way, by the identity of their request."""
        self._decoding: ThreadPoolExecutor | None = None
        self._since = time.monotonic()
        """When others last had their turn."""
        self._is_ending = False

    # -- for the asynchronous side ---------------------------------------------------------------------------------

    async def call(self, work: Callable[[], T]) -> T:
        """Carry out `work`, which may wait; cancelling the task raises `CancelledError` where it waits."""
        self._check_thread()
        return cast(T, await self._drive(greenlet(work)))

    def wait_for(self, awaitable: Awaitable[T]) -> T:
        """Inside `call`: what `awaitable` gives."""
        above = getcurrent().parent
        if above is None:
            if isinstance(awaitable, Coroutine):
                awaitable.close()
            raise RuntimeError("an asynchronous text is read by awaiting its methods")
        told: T = above.switch(awaitable)
        self._since = time.monotonic()
        return told

    def pause(self, seconds: float) -> None:
        """Inside `call`: go on after so long."""
        self.wait_for(asyncio.sleep(seconds))

    def end(self, requests: Iterable[Request], error: BaseException) -> bool:
        """End requests that are under way by an error, now: what they reserved is free when this returns. False where
        some have not begun, as their tasks have not had a turn: ask again after that."""
        have_begun = True
        self._is_ending = True
        try:
            for request in list(requests):
                have_begun &= id(request) in self._running
                for inside, task in self._running.pop(id(request), []):
                    inside.throw(error)
                    task.cancel()  # it waits for what the greenlet does not want any more
        finally:
            self._is_ending = False
        return have_begun

    async def aclose(self, error: BaseException) -> None:
        """End all that is under way, by an error, and wait until it has ended."""
        self._is_ending = True
        for attempts in list(self._running.values()):
            for inside, task in attempts:
                inside.throw(error)
                task.cancel()
        self._is_ending = False
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._decoding is not None:
            self._decoding.shutdown(wait=False)
            self._decoding = None

    # -- what the engine asks of its workers -----------------------------------------------------------------------

    def submit(self, request: Request, job: Callable[[], None]) -> None:
        self._check_thread()
        task = self._loop.create_task(self._carry(request, job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def run(self, request: Request, job: Callable[[], None]) -> None:
        """As `submit`: a request belongs to all who wait for it, so a cancelled caller must not take it along."""
        self.submit(request, job)

    def decode(self, work: Callable[[], T]) -> T:
        """In a thread, since it takes the processor for milliseconds: one, as in the synchronous path."""
        if self._decoding is None:
            self._decoding = ThreadPoolExecutor(1, "monocontext-aio-decode")
        return self.wait_for(self._loop.run_in_executor(self._decoding, work))

    def wait(self, ready: Callable[[], bool], until: Callable[[], float | None] | None = None) -> bool:
        while not ready():
            moment = until() if until else None
            left = None if moment is None else moment - self.now()
            if left is not None and left <= 0:
                return False
            self.wait_for(self._something(left))
        return True

    def now(self) -> float:
        return time.monotonic()

    def close(self) -> None:
        """What is under way ends by itself; `aclose` ends it."""

    # -- how ---------------------------------------------------------------------------------------------------------

    def notify_all(self) -> None:
        for waiter in self._waiting:
            _wake(waiter)

    def give_way(self) -> None:
        """Inside `call`, holding nothing: let others go on, if this has had its turn."""
        if self._is_ending or time.monotonic() - self._since < HOLD_SECONDS:
            return
        above = getcurrent().parent
        if above is not None:
            above.switch(_TURN)
            self._since = time.monotonic()

    async def _drive(self, inside: greenlet) -> Any:
        """Run a greenlet to its end, awaiting what it waits for."""
        cancelled: BaseException | None = None
        self._since = time.monotonic()
        asked = inside.switch()
        while not inside.dead:
            if asked is _TURN:
                # Not where the engine waits, so it is not where it may be interrupted: that comes when it does.
                try:
                    await asyncio.sleep(0)
                except asyncio.CancelledError as error:
                    cancelled = error
                asked = inside.switch()
                continue
            try:
                if cancelled is not None:
                    if isinstance(asked, Coroutine):
                        asked.close()
                    pending, cancelled = cancelled, None
                    raise pending
                told = await asked
            except BaseException as error:
                if inside.dead:  # ended meanwhile
                    raise
                asked = inside.throw(error)
            else:
                if inside.dead:
                    return None
                asked = inside.switch(told)
        if cancelled is not None:
            raise cancelled
        return asked

    async def _carry(self, request: Request, job: Callable[[], None]) -> None:
        inside = greenlet(job)
        attempts = self._running.setdefault(id(request), [])
        mine = (inside, cast("asyncio.Task[None]", asyncio.current_task()))
        attempts.append(mine)
        try:
            await self._drive(inside)
        finally:
            attempts.remove(mine)
            if not attempts and self._running.get(id(request)) is attempts:
                del self._running[id(request)]

    async def _something(self, most_seconds: float | None) -> None:
        """Until something has happened, or so long."""
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
    """Stands where threads need a lock and a condition. Entering it is where a call may give way to others."""

    def __init__(self, crew: Crew):
        self._crew = crew
        self._depth = 0
        self.notify_all = crew.notify_all

    def __enter__(self) -> None:
        if not self._depth:
            self._crew.give_way()
        self._depth += 1

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._depth -= 1


def _wake(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
