"""Log events of stores through the standard `logging`, under the name `monocontext`; silent by default.

| level | event |
|---|---|
| WARNING | the store throttles; a disk cache stops writing |
| INFO | a request is sent again; a broken body is resumed; botocore prepares reads, or boto3 sends them |
| INFO | damaged bytes are read again; a disk cache lacks room; two writers conflict; a response was lost |
| DEBUG | the server closed an idle connection, and the request uses a new one |

Messages name the object, never a header, a query or a credential. boto3 and obstore log their own requests. Invariants:

- a handler runs neither under a lock of this package nor in one of its threads. It formats messages under its own lock,
  and a lazy text in a message reads from the store, so both could deadlock. Therefore `note` only appends to a queue,
  and a thread of the program that waits for a read calls `emit`
- in a program that has not imported `logging`, an event costs one lookup in `sys.modules`
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import time
from collections import deque
from collections.abc import Collection

DEBUG, INFO, WARNING = 10, 20, 30

_MOST_NOTES = 1000  # the most events in the queue; when it is full, the oldest are dropped
_notes: deque[tuple[float, str, int, str, tuple[object, ...]]] = deque(maxlen=_MOST_NOTES)
"""Time, thread, level, message and arguments of each event."""
pending: Collection[object] = _notes
"""The same queue for callers. It is nearly always empty, so a thread that reads in a loop tests it before `emit`."""


def note(level: int, message: str, *arguments: object) -> None:
    """Queue an event. Never waits, so any thread may call it under any lock."""
    if "logging" in sys.modules:  # otherwise nothing can have configured a handler
        this_thread = threading.get_ident()  # `current_thread` would remember a thread that `threading` did not start
        name = next((thread.name for thread in threading.enumerate() if thread.ident == this_thread), "monocontext")
        _notes.append((time.time(), name, level, message, arguments))


def emit() -> None:
    """Pass the queued events to `logging`. Call it from a thread of the program, without a lock of this package."""
    if not _notes:
        return
    import logging

    logger = logging.getLogger("monocontext")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # otherwise `logging` prints warnings to stderr
    while _notes:
        try:
            seconds, thread, level, message, arguments = _notes.popleft()
        except IndexError:
            return  # another thread took it
        if logger.isEnabledFor(level):
            record = logger.makeRecord(logger.name, level, __file__, 0, message, arguments, None)
            record.created, record.msecs, record.threadName = seconds, float(int(seconds % 1 * 1000)), thread
            logger.handle(record)


atexit.register(emit)  # events after the last read
if hasattr(os, "register_at_fork"):  # not on Windows, where nothing forks
    os.register_at_fork(after_in_child=_notes.clear)  # the parent reports them
