"""Renew keys before they expire, as botocore does: 15 minutes ahead if that works, 10 at the latest.

| left of the keys | who asks for them |
|---|---|
| 15 minutes or more | gets them |
| 10 to 15 minutes | one thread renews them, others get them; where renewing fails all get them for another minute |
| less | waits for new ones, or gets the error |

Keys that live for less than half an hour are renewed after half of their life, and by two thirds of it at the latest:
botocore would ask for new ones before each request.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Protocol

from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.identity.keys import FoundKeys
from monocontext.stores.s3.identity.reasons import NoIdentity

_ADVISED_SECONDS = 15 * 60
_NEEDED_SECONDS = 10 * 60
_PAUSE_SECONDS = 60


class Identity(Protocol):
    """Gives the keys that sign. Safe for use by many threads and after a fork."""

    @property
    def source(self) -> str:
        """Where the keys come from, in words."""
        ...

    def get(self) -> Credentials:
        """Valid keys. Raises `NoIdentity`, `AskBotocore`, and what botocore raises where that is asked."""
        ...


class NativeIdentity:
    """The keys of a source of ours; `look_up` asks it again."""

    def __init__(self, look_up: Callable[[], FoundKeys], wall_clock: Callable[[], float] = time.time) -> None:
        self._look_up = look_up
        self._clock = wall_clock
        self._process, self._lock = os.getpid(), threading.Lock()
        self._not_before = 0.0
        self._take(look_up())

    @property
    def source(self) -> str:
        return self._found.source

    def get(self) -> Credentials:
        found = self._found
        if found.expires is None or found.expires - self._clock() >= self._advised:
            return found.credentials
        return self._renewed()

    def _take(self, found: FoundKeys) -> None:
        life = float("inf") if found.expires is None else found.expires - self._clock()
        if life <= 0:
            raise NoIdentity(f"{found.source} gave keys that have expired")
        self._advised, self._needed = min(_ADVISED_SECONDS, life / 2), min(_NEEDED_SECONDS, life / 3)
        self._found = found

    def _left(self) -> float:
        expires = self._found.expires
        return float("inf") if expires is None else expires - self._clock()

    def _renewed(self) -> Credentials:
        if self._process != os.getpid():  # a thread that did not survive the fork may have held the lock
            self._process, self._lock = os.getpid(), threading.Lock()
        lock = self._lock
        if not lock.acquire(blocking=self._left() < self._needed):
            return self._found.credentials
        try:
            left = self._left()
            if left < self._needed:
                self._take(self._look_up())
            elif left < self._advised and self._clock() >= self._not_before:
                self._not_before = self._clock() + _PAUSE_SECONDS
                try:
                    self._take(self._look_up())
                except (NoIdentity, OSError):
                    pass  # the keys that we hold are still good; who asks after them is told
            return self._found.credentials
        finally:
            lock.release()
