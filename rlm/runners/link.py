"""Share the worker's end of the channel among its threads: their calls to the host, and the host's commands.

Of the waiting threads, one reads, and delivers messages to all. The main thread runs the cells. A signal interrupts it
when the time of a cell is up, but not while `is_shielded`: half of the message that it then moves would be lost.
"""

from __future__ import annotations

import itertools
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from rlm.runners.channel import MOST_HEAD_BYTES, MOST_MESSAGE_BYTES, UNBOUNDED, Channel, ChannelClosed, Message

_MOST_CALLS = 32  # the most calls at once; more wait here. The host ends a worker that has many more
_COMMAND = 0  # the number under which the main thread waits for a command; calls have numbers from 1
_WAKE_SECONDS = 0.5  # the longest sleep before a thread checks whether it must read itself


class _Waiter:
    """A waiting thread, and the message for it once that has arrived."""

    def __init__(self) -> None:
        self.message: Message | None = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def wake(self) -> None:
        """End the current or next `sleep`."""
        with suppress(RuntimeError):  # it is awake already
            self._gate.release()

    def sleep(self) -> None:
        """Wait for `wake`, at most half a second."""
        self._gate.acquire(timeout=_WAKE_SECONDS)


class WorkerLink(Channel):
    """The worker's end of a channel. It passes each answer to the thread that asked. Safe for use by many threads."""

    _most_head_bytes = _most_message_bytes = UNBOUNDED  # the worker trusts the host
    _most_sent_head_bytes = MOST_HEAD_BYTES
    _most_sent_message_bytes = MOST_MESSAGE_BYTES

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        self.is_shielded = False  # whether the main thread must not be interrupted now
        self.is_interrupt_wanted = False  # whether the host wants the running cell to end
        self._main = threading.get_ident()
        self._numbers = itertools.count(1)  # of calls
        self._waiting: dict[int, _Waiter] = {}  # by the number of the thread's call, or `_COMMAND`
        self._commands: deque[Message] = deque()  # that have arrived and wait for `next_command`
        self._reading = threading.Lock()  # held by the thread that reads for all
        self._call_slots = threading.BoundedSemaphore(_MOST_CALLS)

    def call(self, head: dict[str, Any], body: list[bytes]) -> Message:
        """Send a request, wait for the host's answer, and return it."""
        with self._call_slots:
            number = next(self._numbers)
            waiter = _Waiter()
            try:
                self._set_shielded(True)
                self._waiting[number] = waiter
                self.send({**head, "id": number}, body)
                while waiter.message is None:
                    self._read_or_sleep(waiter)
                return waiter.message
            finally:
                self._waiting.pop(number, None)
                self._set_shielded(False)

    def next_command(self) -> Message:
        """Wait for the next command of the host, and return it. Only the main thread calls this, between cells."""
        self._set_shielded(True)
        waiter = _Waiter()
        self._waiting[_COMMAND] = waiter
        try:
            while not self._commands:
                self._read_or_sleep(waiter)
            return self._commands.popleft()
        finally:
            del self._waiting[_COMMAND]
            self._set_shielded(False)

    def poll_interrupt(self) -> bool:
        """Deliver the messages that have arrived, and return whether the host wants the running cell to end. Never
        waits. Only the main thread calls this, also in a signal handler."""
        was_shielded = self.is_shielded
        if self._reading.acquire(blocking=False):
            try:
                while not self.is_interrupt_wanted and (message := self.receive(0)) is not None:
                    self._deliver(message)
            except ChannelClosed:
                pass  # the next call raises it
            finally:
                self._reading.release()
                self._set_shielded(was_shielded)
        return self.is_interrupt_wanted

    def wait(self, fd: int, events: int, deadline: float | None) -> bool:
        """Wait as `Channel.wait` does. The main thread may be interrupted while it waits for a message, but not while
        it waits to send the rest of a message, since half of it cannot be taken back."""
        if threading.get_ident() != self._main or events != select.POLLIN:
            return super().wait(fd, events, deadline)
        self._set_shielded(False)
        try:
            return super().wait(fd, events, deadline)
        finally:
            self._set_shielded(True)

    def _set_shielded(self, shielded: bool) -> None:
        """Forbid or allow interrupts, if this is the main thread."""
        if threading.get_ident() == self._main:
            self.is_shielded = shielded

    def _read_or_sleep(self, waiter: _Waiter) -> None:
        """Read and deliver messages until `waiter` has its own. If another thread reads, sleep once instead."""
        if not self._reading.acquire(blocking=False):
            self._set_shielded(False)
            try:
                waiter.sleep()
            finally:
                self._set_shielded(True)
            return
        try:
            while waiter.message is None:
                message = self.receive()
                assert message is not None  # it waits without a limit
                self._deliver(message)
        finally:
            self._reading.release()
            for other in list(self._waiting.values()):
                if other is not waiter and other.message is None:
                    other.wake()  # this thread reads from now on
                    break

    def _deliver(self, message: Message) -> None:
        """Give a message to the thread that waits for it."""
        if message.head.get("op") == "interrupt":
            self.is_interrupt_wanted = True
            return
        if "op" in message.head:
            self._commands.append(message)
        waiter = self._waiting.get(_COMMAND if "op" in message.head else message.head["id"])
        if waiter is not None:  # else its caller is gone: the cell was interrupted
            waiter.message = message
            waiter.wake()
