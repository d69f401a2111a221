"""Stop a pattern that does not end: `(a+)+$` over a line of a hundred letters takes years."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from monocontext.errors import MonocontextError

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats


@contextmanager
def pattern_limit(seconds: float, stats: Stats) -> Iterator[None]:
    """Raise `MonocontextError` where a search takes this many seconds without going on in the text; 0 for no limit.

    These are seconds of the processor: a slow network, or a pager at the other end of the pipe, is no slow pattern.
    `re` runs C code that only a signal can stop, so there is no limit on Windows, and outside the main thread.
    """
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    used = stats.bytes_used

    def ring(*_: object) -> None:
        nonlocal used
        if used == stats.bytes_used:
            raise MonocontextError(
                f"a pattern took more than {seconds:g} seconds on one piece of the text: avoid a repeat in a repeat, "
                "such as (a+)+, or allow more with --max-seconds"
            )
        used = stats.bytes_used

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
