"""Report events on the way to a store to the standard `logging`, as `monocontext`; silent by default.

| level | event |
|---|---|
| WARNING | the store asks for fewer requests; a cache on disk takes nothing any more |
| INFO | a request is sent again, a body that broke off is resumed, boto3 reads in place of our own transport |
| INFO | damaged bytes are read a second time; a cache on disk lacks room; writers met, or a reply was lost |
| DEBUG | a late request is sent a second time; an idle connection was closed, and the request uses a new one |

Messages name the object, never a header, a query or a key. boto3 and obstore log their own requests. Invariants:

- no lock of ours is held, and no thread of ours runs, while a handler does: a handler formats messages under its own
  lock, and a lazy text in a message reads. So `note` only appends, and the thread that waits for a read emits
- a program that has not imported `logging` pays for one lookup in `sys.modules`, and only when something happens
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

_MOST_NOTES = 1000
"""When notes are not read for a while, the oldest notes make room."""
_notes: deque[tuple[float, str, int, str, tuple[object, ...]]] = deque(maxlen=_MOST_NOTES)


pending: Collection[object] = _notes
"""Events to emit. There are nearly always none, so a thread that reads in a loop looks here first."""


def note(level: int, message: str, *arguments: object) -> None:
    """Remember an event, to be emitted soon. Never waits; any thread may, under any lock."""
    if "logging" in sys.modules:  # otherwise the caller cannot have asked for it
        _notes.append((time.time(), threading.current_thread().name, level, message, arguments))


def emit() -> None:
    """Pass the noted events to `logging`. Called by threads of the program while they hold no lock of ours."""
    if not _notes:
        return
    import logging

    logger = logging.getLogger("monocontext")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr
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
