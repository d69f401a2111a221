"""Exceptions that strike work at random moments, as Ctrl-C, a time limit or a signal's handler do.

Three ways: a signal whose handler raises (main thread only); `PyThreadState_SetAsyncExc` from another thread; and the
same from a profiler, at the n-th call or return in our packages, which meets each as likely as any other, those
included that take no time.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from queue import SimpleQueue
from random import Random
from types import FrameType
from typing import Any

import monocontext
import rlm

WAYS = ("signal", "async", "call")
SOON_SECONDS = 60.0
_PACKAGES = tuple(os.path.dirname(str(package.__file__)) + os.sep for package in (monocontext, rlm))


class Interrupted(BaseException):
    """No `Exception`, as `KeyboardInterrupt` is none."""


class Interrupter:
    """Strikes the work of one thread. What it does follows from its seed, but for what the machine's clock does."""

    def __init__(self, way: str, seed: int):
        self.way = way
        self.random = Random(seed)
        self.struck = 0
        self._armed = self._fired = False
        self._gate = threading.Lock()
        self._orders: SimpleQueue[tuple[int, float]] = SimpleQueue()  # of C: what is struck in it leaves it whole
        self._lengths: dict[Any, int] = {}
        """Of each kind of work, in calls or microseconds: an interrupt after its end would strike nothing."""

    @contextmanager
    def ready(self) -> Iterator[Interrupter]:
        """Entered by the thread that is to be struck."""
        # What strikes a finalizer, or a thread that is just being started (CPython 3.11), ends there.
        unraisable, sys.unraisablehook = sys.unraisablehook, lambda unraisable: None
        try:
            with nullcontext(self) if self.way == "call" else self._sending():
                yield self
        finally:
            sys.unraisablehook = unraisable

    @contextmanager
    def _sending(self) -> Iterator[Interrupter]:
        before = signal.signal(signal.SIGUSR1, self._signalled) if self.way == "signal" else None
        sender = threading.Thread(target=self._send, name="interrupter", daemon=True)
        switching = sys.getswitchinterval()
        sys.setswitchinterval(1e-4)  # so that the sender is heard at once
        sender.start()
        try:
            yield self
        finally:
            self._orders.put((0, 0.0))
            sender.join()
            sys.setswitchinterval(switching)
            if self.way == "signal":
                signal.signal(signal.SIGUSR1, before)

    def strike(self, work: Callable[[], Any], kind: Any = None) -> Any:
        """Do some work and interrupt it at a random moment; what it returned, or `Interrupted` itself.

        `kind` names work of about the same length.
        """
        if self.way == "call":
            return self._strike_call(work, kind)
        began = time.perf_counter()
        done: Any = Interrupted
        try:
            self._armed = True
            self._orders.put((threading.get_ident(), self.random.uniform(0, self._lengths.get(kind, 2_000) * 1e-6)))
            done = work()
        except Interrupted:
            pass
        while True:
            try:
                with self._gate:
                    self._armed = False
                _await_pending(self._fired and done is not Interrupted)
                self._fired = False
                break
            except Interrupted:
                done = Interrupted
        if done is Interrupted:
            self.struck += 1
        else:
            self._lengths[kind] = max(100, min(int((time.perf_counter() - began) * 1e6), 200_000))
        return done

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise Interrupted

    def _send(self) -> None:
        while True:
            thread, seconds = self._orders.get()
            if not thread:
                return
            time.sleep(seconds)
            with self._gate:
                if not self._armed:
                    continue
                if self.way == "signal":
                    signal.pthread_kill(thread, signal.SIGUSR1)
                else:
                    self._fired = True
                    _raise_in(thread, Interrupted)

    def _strike_call(self, work: Callable[[], Any], kind: Any) -> Any:
        left = self.random.randint(1, self._lengths.get(kind, 500))
        calls = 0

        def count(frame: FrameType, event: str, about: Any) -> None:
            nonlocal calls
            # What is raised in here comes before the call. Nothing real strikes between a block's end and `__exit__`.
            if frame.f_code.co_filename.startswith(_PACKAGES) and getattr(about, "__name__", "") != "__exit__":
                calls += 1
                if calls == left:
                    _raise_in(threading.get_ident(), Interrupted)

        done: Any = Interrupted
        before = sys.getprofile()
        try:
            sys.setprofile(count)
            done = work()
        except Interrupted:
            pass
        while True:
            try:
                sys.setprofile(before)
                _await_pending(calls >= left and done is not Interrupted)
                break
            except Interrupted:
                done = Interrupted
        if done is Interrupted:
            self.struck += 1
        else:
            self._lengths[kind] = max(calls, 50)
        return done


def _await_pending(is_pending: bool) -> None:
    """Let what is to be raised here be raised. Taken back instead, CPython 3.11 would look for it at every step from
    then on, and not end a call that is traced."""
    for _ in range(10_000 if is_pending else 0):
        pass


def _raise_in(thread: int, error: type[BaseException] | None) -> None:
    """Raise in a thread at the next moment at which CPython looks for that; None takes back what was not raised yet."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(error) if error else None)


@contextmanager
def soon() -> Iterator[None]:
    """What does not end at all, the limit of the test ends."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < SOON_SECONDS
