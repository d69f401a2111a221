"""A lease: of several machines one compiles, so that they do not all pay for it.

It saves money and does not keep anything right: that is what the commit of the state is for. So clocks need not agree
to better than minutes, and a machine that dies costs the others no more than the lease is long.
"""

from __future__ import annotations

import json
import time
import uuid
from types import TracebackType
from typing import Self

from monocontext.errors import AlreadyExists, NotFound
from monocontext.store import Store

LEASE_SECONDS = 600.0
"""Longer than a digest takes; it is renewed after each."""


class Lease:
    """Held while a `with` block runs, if `is_held`; else `holder` says by whom."""

    def __init__(self, store: Store, key: str, owner: str, seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._key = key
        self._owner = owner
        self._seconds = seconds
        self._etag: str | None = None
        self.holder = ""
        """Who has it, where we do not."""

    @property
    def is_held(self) -> bool:
        return self._etag is not None

    def __enter__(self) -> Self:
        """Take it where it is free or has run out (1 PUT; 1 GET and 1 PUT where somebody had it)."""
        try:
            self._etag = self._store.put(self._key, self._body(), if_absent=True)
            return self
        except AlreadyExists:
            pass
        try:
            blob = self._store.get(self._key)
            told = json.loads(blob.data)
            self.holder, until = str(told["owner"]), float(told["until"])
        except NotFound:  # given back in between: next time
            self.holder = "another machine"
            return self
        except (ValueError, KeyError, TypeError):
            self.holder, until = "nobody who can be read", 0.0
        if until < time.time():
            self._take(blob.etag)
        return self

    def renew(self) -> bool:
        """Make it last anew (1 PUT); False when somebody has taken it over."""
        if self._etag is not None:
            self._take(self._etag)
        return self.is_held

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Give it back, if it is still ours (1 PUT)."""
        if self._etag is not None:
            self._seconds = -1.0
            self._take(self._etag)
            self._etag = None

    def _take(self, etag: str) -> None:
        try:
            self._etag = self._store.put(self._key, self._body(), if_match=etag)
        except (AlreadyExists, NotFound):
            self._etag = None

    def _body(self) -> bytes:
        until = time.time() + self._seconds
        return json.dumps({"owner": self._owner, "until": until, "token": uuid.uuid4().hex}).encode()
