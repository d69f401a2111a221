"""Send and receive messages over file descriptors: a socket pair to a process, pipes to a container.

A message is two lengths (4 bytes each, big endian), a JSON object, and raw bytes:

    total of what follows the lengths | length of the object | object | bytes

The host trusts nothing that arrives. It bounds both lengths before it allocates memory, parses the object with `json`
alone, and raises `ChannelAbuse` for anything malformed. Reading has a time limit and resumes where it stopped, so a
message that never ends blocks nothing.
"""

from __future__ import annotations

import json
import os
import select
import struct
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from rlm.errors import ChannelAbuse

PROTOCOL = 4  # the version of the messages; a worker in a container may have another than its host
MOST_HEAD_BYTES = 1 << 20  # the limit of a worker's JSON object: to parse a megabyte of brackets takes 100 MB
MOST_MESSAGE_BYTES = 64 << 20  # the limit of a whole message from a worker, such as a batch of prompts
UNBOUNDED = (1 << 32) - 1  # the largest length that four bytes can hold
_LENGTHS = struct.Struct(">II")


class Message(NamedTuple):
    """A message that has arrived."""

    head: dict[str, Any]  # the JSON object
    body: memoryview  # the bytes behind it


class ChannelClosed(Exception):
    """The other side is gone."""


class Channel:
    """The host's end of a channel. Many threads may send, one at a time may receive."""

    _most_head_bytes = MOST_HEAD_BYTES  # the limits of messages that arrive
    _most_message_bytes = MOST_MESSAGE_BYTES
    _most_sent_head_bytes = _most_sent_message_bytes = UNBOUNDED  # the limits of messages that are sent

    def __init__(self, read_fd: int, write_fd: int) -> None:
        """Takes over the descriptors, which `close` closes."""
        self._read_fd, self._write_fd = read_fd, write_fd
        self._sending = threading.Lock()
        self._closed = False
        for fd in {read_fd, write_fd}:
            os.set_blocking(fd, False)
        self._buffer, self._filled = memoryview(bytearray(_LENGTHS.size)), 0
        self._head_bytes_announced: int | None = None  # bytes of JSON of the next message; None before its lengths

    def send(
        self, head: dict[str, Any], body: Sequence[bytes | memoryview] = (), *, seconds: float | None = None
    ) -> None:
        """Send a whole message. Raises ChannelClosed, also if the other side does not read it within `seconds` (None:
        no limit), and ValueError, with nothing sent, for a message above the limits of the other side."""
        text = json.dumps(head, separators=(",", ":")).encode()
        total = len(text) + sum(map(len, body))
        if total > self._most_sent_message_bytes or len(text) > self._most_sent_head_bytes:
            raise ValueError(
                f"a message of {total:,} bytes, {len(text):,} of them JSON, is too large to leave the sandbox (limits: "
                f"{self._most_sent_message_bytes:,} and {self._most_sent_head_bytes:,} bytes): send it in parts"
            )
        unsent = [memoryview(part) for part in (_LENGTHS.pack(total, len(text)) + text, *body) if len(part)]
        deadline = None if seconds is None else time.monotonic() + seconds
        with self._sending:
            try:
                while unsent:
                    if self._closed:
                        raise ChannelClosed("the channel is closed")
                    try:
                        written = os.writev(self._write_fd, unsent[:64])
                    except BlockingIOError:
                        if not self.wait(self._write_fd, select.POLLOUT, deadline):
                            raise ChannelClosed("the other side does not read") from None
                        continue
                    except OSError as exc:
                        raise ChannelClosed(str(exc)) from None
                    while unsent and written >= len(unsent[0]):
                        written -= len(unsent.pop(0))
                    if unsent:
                        unsent[0] = unsent[0][written:]
            except BaseException:
                self._closed = True  # half a message may be out, after a Ctrl-C for example: nothing can follow it
                raise

    def receive(self, seconds: float | None = None) -> Message | None:
        """The next message; None if it is incomplete after `seconds` (None: no limit). Raises ChannelClosed and
        ChannelAbuse."""
        deadline = None if seconds is None else time.monotonic() + seconds
        if self._head_bytes_announced is None:
            if not self._fill(deadline):
                return None
            total, head_bytes = _LENGTHS.unpack(self._buffer)
            if total > self._most_message_bytes or head_bytes > self._most_head_bytes or head_bytes > total:
                raise ChannelAbuse(
                    f"the worker announced a message of {total:,} bytes with a JSON object of {head_bytes:,} bytes: "
                    f"at most {self._most_message_bytes:,} and {self._most_head_bytes:,} are allowed"
                )
            self._buffer, self._filled = memoryview(bytearray(total)), 0
            self._head_bytes_announced = head_bytes
        if not self._fill(deadline):
            return None
        data, head_bytes = self._buffer, self._head_bytes_announced
        self._buffer, self._filled = memoryview(bytearray(_LENGTHS.size)), 0
        self._head_bytes_announced = None
        try:
            head = json.loads(bytes(data[:head_bytes]))
        except (ValueError, RecursionError) as exc:
            raise ChannelAbuse(f"the worker sent a message whose head is not JSON: {type(exc).__name__}") from None
        if not isinstance(head, dict):
            raise ChannelAbuse(f"the worker sent a JSON {type(head).__name__}, expected an object")
        return Message(head, data[head_bytes:])

    def _fill(self, deadline: float | None) -> bool:
        """Read until the buffer is full; False if it is not by the deadline."""
        while self._filled < len(self._buffer):
            if self._closed:
                raise ChannelClosed("the channel is closed")
            try:
                count = os.readv(self._read_fd, [self._buffer[self._filled :]])
            except BlockingIOError:
                if not self.wait(self._read_fd, select.POLLIN, deadline):
                    return False
                continue
            except OSError as exc:
                raise ChannelClosed(str(exc)) from None
            if not count:
                raise ChannelClosed("the other side is gone")
            self._filled += count
        return True

    def wait(self, fd: int, events: int, deadline: float | None) -> bool:
        """Wait until a descriptor is ready; False if it is not by the deadline."""
        poll = select.poll()
        poll.register(fd, events)
        return bool(poll.poll(None if deadline is None else max(0, (deadline - time.monotonic()) * 1000)))

    def close(self) -> None:
        """Close the descriptors. Idempotent."""
        if self._read_fd < 0:
            return
        self._closed = True
        with self._sending:
            for fd in {self._read_fd, self._write_fd}:
                os.close(fd)
            self._read_fd = self._write_fd = -1
