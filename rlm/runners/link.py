"""The worker's end of the channel: calls of many threads, and the commands of the host, over one stream.

One of the waiting threads reads for all. The main thread runs the cells, and a signal interrupts it when their time is
up. While it moves bytes it is `shielded` from that, or half a message would be lost.
"""

from __future__ import annotations

import itertools
import select
import threading
from collections import deque
from contextlib import suppress
from typing import Any

from rlm.runners.channel import MOST_HEAD_BYTES, MOST_MESSAGE_BYTES, Channel, ChannelClosed, Message

_MOST_CALLS = 32  # the most calls at once; more wait here. The host ends a worker that has many more
_COMMAND = 0  # the number under which the main thread waits for a command; calls have numbers from 1
_WAKE_SECONDS = 0.5  # the longest wait for another thread before the link looks again


class _Slot:
    """A thread that waits, and the message it waits for."""

    def __init__(self) -> None:
        self.message: Message | None = None
        self._gate = threading.Lock()
        self._gate.acquire()

    def wake(self) -> None:
        with suppress(RuntimeError):  # it is awake already
            self._gate.release()

    def sleep(self) -> None:
        self._gate.acquire(timeout=_WAKE_SECONDS)


class WorkerLink(Channel):
    """A channel that passes each answer to the thread that asked. Safe for use by many threads."""

    _sent_head_bytes, _sent_message_bytes = MOST_HEAD_BYTES, MOST_MESSAGE_BYTES

    def __init__(self, read_fd: int, write_fd: int) -> None:
        super().__init__(read_fd, write_fd)
        self.shielded = False  # whether the main thread must not be interrupted now
        self._main = threading.get_ident()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, _Slot] = {}
        self._commands: deque[Message] = deque()
        self._reading = threading.Lock()
        self._room = threading.BoundedSemaphore(_MOST_CALLS)
        self._is_interrupt_wanted = False

    def call(self, head: dict[str, Any], body: list[bytes]) -> Message:
        """The host's answer to a request. Waits for it."""
        with self._room:
            number, slot = next(self._numbers), _Slot()
            try:
                self._shield(True)
                self._waiting[number] = slot
                self.send({**head, "id": number}, body)
                while slot.message is None:
                    self._read_or_sleep(slot)
                return slot.message
            finally:
                self._waiting.pop(number, None)
                self._shield(False)

    def command(self) -> Message:
        """The next command of the host. Waits for it. For the main thread, between cells."""
        self._shield(True)
        slot = _Slot()
        self._waiting[_COMMAND] = slot
        try:
            while not self._commands:
                self._read_or_sleep(slot)
            return self._commands.popleft()
        finally:
            del self._waiting[_COMMAND]
            self._shield(False)

    def begin_cell(self) -> None:
        """Forget an interrupt that came too late for the cell before."""
        self._is_interrupt_wanted = False

    def interrupted(self) -> bool:
        """Whether the host wants the running cell to end. First takes the messages that have arrived; does not wait.
        For the main thread, also in a signal handler."""
        was_shielded = self.shielded
        if self._reading.acquire(blocking=False):
            try:
                while not self._is_interrupt_wanted and (message := self.receive(0)) is not None:
                    self._deliver(message)
            except ChannelClosed:
                pass  # the next call raises it
            finally:
                self._reading.release()
                self._shield(was_shielded)
        return self._is_interrupt_wanted

    def wait(self, fd: int, events: int, deadline: float | None) -> bool:
        if threading.get_ident() != self._main or events != select.POLLIN:
            return super().wait(fd, events, deadline)  # stays shielded: half of a message cannot be taken back
        self._shield(False)
        try:
            return super().wait(fd, events, deadline)
        finally:
            self._shield(True)

    def _shield(self, shielded: bool) -> None:
        """Forbid or allow interrupts, if this is the main thread."""
        if threading.get_ident() == self._main:
            self.shielded = shielded

    def _read_or_sleep(self, slot: _Slot) -> None:
        """Read messages for all threads until this slot has one. If another thread reads, sleep once instead."""
        if not self._reading.acquire(blocking=False):
            self._shield(False)
            try:
                slot.sleep()
            finally:
                self._shield(True)
            return
        try:
            while slot.message is None:
                message = self.receive()
                assert message is not None  # it waits without a limit
                self._deliver(message)
        finally:
            self._reading.release()
            for other in list(self._waiting.values()):
                if other is not slot and other.message is None:
                    other.wake()  # that thread reads from now on
                    break

    def _deliver(self, message: Message) -> None:
        """Give a message to the thread that waits for it."""
        head, _ = message
        if head.get("op") == "interrupt":
            self._is_interrupt_wanted = True
            return
        if "op" in head:
            self._commands.append(message)
        slot = self._waiting.get(_COMMAND if "op" in head else head["id"])
        if slot is not None:  # else its caller is gone: the cell was interrupted
            slot.message = message
            slot.wake()
