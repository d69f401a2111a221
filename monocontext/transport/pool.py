"""Connections that wait for their next request, for one process.

What holds:
- a connection is in the pool or with one borrower, never both;
- it comes back only when its last answer was read to the end (`Body.leaves_connection_usable`);
- a process uses connections that it opened itself: after a fork the child closes its copies and starts empty. Two
  processes that read from one socket receive each other's objects.

There is no thread: what has waited too long is closed when the pool is next used. With `max_idle=0` nothing is alive
between calls.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict, deque
from weakref import WeakSet

from monocontext.transport.connection import Address, Connection
from monocontext.transport.dial import Dialler
from monocontext.transport.patience import Wait
from monocontext.transport.route import Endpoint

MAX_IDLE = 64
"""As many as there are threads that fetch."""
_IDLE_SECONDS = 20.0
"""Load balancers close after 20 to 60 s; a request that meets the closing is sent twice."""
_AGE_SECONDS = 300.0
"""After this a connection is replaced, so that requests follow the addresses of the name and leave slow paths."""


class Pool:
    """Lends connections. Safe for use by many threads and after a fork."""

    def __init__(self, dialler: Dialler, max_idle: int = MAX_IDLE) -> None:
        self._dialler = dialler
        self._max_idle = max_idle
        self.opened = 0
        self.reused = 0
        self._start_empty()

    def __repr__(self) -> str:
        return f"<Pool {self.idle} idle, {self.lent} lent | {self.opened} opened, {self.reused} reused>"

    @property
    def idle(self) -> int:
        return sum(map(len, self._idle.values()))

    @property
    def lent(self) -> int:
        return len(self._all) - self.idle

    def _start_empty(self) -> None:
        # The lock is new as well: a thread that did not survive the fork may have held it.
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._idle: defaultdict[Endpoint, deque[Connection]] = defaultdict(deque)
        self._all: WeakSet[Connection] = WeakSet()

    def borrow(
        self, endpoint: Endpoint, wait: Wait, *, fresh: bool = False, avoid: Address | None = None
    ) -> Connection:
        """A connection, new if none waits or a `fresh` one is asked for, which goes elsewhere than `avoid` if it can.

        Raises `OSError` when none can be opened.
        """
        if self._process != os.getpid():
            self._abandon()
        while not fresh and (found := self._take(endpoint)):
            if found.is_quiet():
                self.reused += 1
                found.begin(wait)
                return found
            self.discard(found)
        connection = self._dialler.open(endpoint, wait, avoid)
        with self._lock:
            self._all.add(connection)
            self.opened += 1
        connection.begin(wait)
        return connection

    def give_back(self, connection: Connection) -> None:
        """After an answer was read to its end: keep the connection for the next request."""
        connection.exchanges += 1
        now = connection.idle_since = time.monotonic()
        closing: list[Connection] = []
        with self._lock:
            kept = self._idle[connection.endpoint]
            if connection not in self._all or now - connection.opened > _AGE_SECONDS:
                closing.append(connection)
            else:
                kept.append(connection)
            for waiting in self._idle.values():
                while waiting and (len(waiting) > self._max_idle or now - waiting[0].idle_since > _IDLE_SECONDS):
                    closing.append(waiting.popleft())
        for each in closing:
            self.discard(each)

    def discard(self, connection: Connection) -> None:
        """Close a connection that is with its borrower."""
        with self._lock:
            self._all.discard(connection)
        connection.close()

    def _take(self, endpoint: Endpoint) -> Connection | None:
        # The one that came back last: its path is warm, and the others grow old enough to be closed.
        with self._lock:
            waiting = self._idle.get(endpoint)
            if not waiting:
                return None
            if time.monotonic() - waiting[-1].idle_since <= _IDLE_SECONDS:
                return waiting.pop()
            expired = list(waiting)
            waiting.clear()
        for each in expired:
            self.discard(each)
        return None

    def close(self) -> None:
        """Close what waits; what is lent is closed when it comes back. Idempotent, and the pool stays usable."""
        if self._process != os.getpid():
            self._abandon()
        with self._lock:
            idle = [each for waiting in self._idle.values() for each in waiting]
            self._idle.clear()
            self._all.clear()
        for each in idle:
            each.close()

    def _abandon(self) -> None:
        """In the child of a fork: close our copies of the parent's connections. Only the copies: no goodbye is sent."""
        inherited = list(self._all)
        self._start_empty()
        self._dialler.start_anew()
        for each in inherited:
            each.close()
