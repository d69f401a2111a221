"""A pool of idle connections of one process.

Invariants:
- a connection is in the pool or with one borrower, never both;
- it comes back only when its last response was read to the end (`Body.leaves_connection_usable`);
- a process uses only connections that it opened itself: after a fork the child closes its copies and starts empty. Two
  processes that read from one socket receive each other's objects.

There is no thread: the next use of the pool closes connections that were idle too long. With `max_idle=0` none is open
between calls.
"""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict, deque
from weakref import WeakSet

from monocontext.stores.http.connection import Address, Connection, ExchangeTimer
from monocontext.stores.http.connector import Connector
from monocontext.stores.http.route import Endpoint

MAX_IDLE = 64
"""Idle connections at most: as many as there are fetching threads."""
_IDLE_SECONDS = 20.0
"""Load balancers close idle connections after 20 to 60 s; a request on a closed one is sent twice."""
_AGE_SECONDS = 300.0
"""Older connections are replaced, so that requests follow changes of the name's addresses and leave slow paths."""


class Pool:
    """Lends connections. Safe for use by many threads and after a fork."""

    def __init__(self, connector: Connector, max_idle: int = MAX_IDLE) -> None:
        self._connector = connector
        self._max_idle = max_idle
        self.opened = 0
        self.reused = 0
        self._reset()

    def __repr__(self) -> str:
        return f"<Pool {self.idle} idle, {self.lent} lent | {self.opened} opened, {self.reused} reused>"

    @property
    def idle(self) -> int:
        return sum(map(len, self._idle.values()))

    @property
    def lent(self) -> int:
        return len(self._all) - self.idle

    def _reset(self) -> None:
        # The lock is new as well: a thread that did not survive the fork may have held it.
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._idle: defaultdict[Endpoint, deque[Connection]] = defaultdict(deque)
        self._all: WeakSet[Connection] = WeakSet()

    def borrow(
        self, endpoint: Endpoint, timer: ExchangeTimer, *, fresh: bool = False, avoid: Address | None = None
    ) -> Connection:
        """An idle connection; a new one where there is none or with `fresh`, if possible to another address than
        `avoid`. Raises `OSError` where none can be opened."""
        if self._process != os.getpid():
            self._drop_inherited()
        while not fresh and (found := self._take_idle(endpoint)):
            if found.is_quiet():
                self.reused += 1
                found.begin(timer)
                return found
            self.discard(found)
        connection = self._connector.open(endpoint, timer, avoid)
        with self._lock:
            self._all.add(connection)
            self.opened += 1
        connection.begin(timer)
        return connection

    def give_back(self, connection: Connection) -> None:
        """Keep a connection for the next request, after its response was read to the end."""
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
        """Close a borrowed connection."""
        with self._lock:
            self._all.discard(connection)
        connection.close()

    def _take_idle(self, endpoint: Endpoint) -> Connection | None:
        # Take the one that came back last: its path is warm, and the others become old enough to be closed.
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
        """Close idle connections; borrowed ones are closed when they come back. Idempotent; the pool stays usable."""
        if self._process != os.getpid():
            self._drop_inherited()
        with self._lock:
            idle = [each for waiting in self._idle.values() for each in waiting]
            self._idle.clear()
            self._all.clear()
        for each in idle:
            each.close()

    def _drop_inherited(self) -> None:
        """Close the copies of the parent's connections in the child of a fork; nothing is sent on them."""
        inherited = list(self._all)
        self._reset()
        self._connector.reset()
        for each in inherited:
            each.close()
