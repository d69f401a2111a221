"""Take a lease, so that only one of several machines compiles and pays.

The lease only saves money: the commit of the state keeps the data correct. Its holder renews it from a thread, three
times in its length. A machine that dies delays the others for one lease at most. Clocks must agree to a minute.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from monocontext.errors import AlreadyExists, MonocontextError, NotFound
from monocontext.stores.protocol import Store, get_bounded, put_own

_MOST_BYTES = 64 << 10
"""The largest lease that is read."""
LEASE_SECONDS = 180.0
"""Longer than clocks differ, and than a store fails."""


class Lease:
    """A lease for a `with` block. `is_held` says whether this machine has it, else `holder` does."""

    def __init__(self, store: Store, key: str, owner: str, seconds: float = LEASE_SECONDS) -> None:
        self._store = store
        self._key = key
        self._owner = owner
        self._seconds = seconds
        self._etag: str | None = None
        self._lock = threading.Lock()
        self.holder = ""
        """The owner, if it is another machine."""

    @property
    def is_held(self) -> bool:
        return self._etag is not None

    def __enter__(self) -> Self:
        """Take it if it is free or has expired (1 GET, 1 PUT)."""
        etag, owner, until = None, "", 0.0
        try:
            blob = get_bounded(self._store, self._key, _MOST_BYTES)
            etag = blob.etag
            fields = json.loads(blob.data)
            owner, until = str(fields["owner"]), float(fields["until"])
        except NotFound:
            pass  # it is free
        except (ValueError, KeyError, TypeError, OverflowError, RecursionError):  # damaged: it counts as expired
            etag = etag or self._store.head(self._key).etag
        if until >= time.time():
            self.holder = owner
        else:
            self._take(etag)
        return self

    def renew(self) -> bool:
        """Extend it (1 PUT); False when another machine has taken it."""
        with self._lock:
            if self._etag is not None:
                self._take(self._etag)
            return self.is_held

    @contextmanager
    def beating(self) -> Iterator[None]:
        """Renew the lease from a thread while the block runs. If the store fails, the next renewal tries again."""
        ended = threading.Event()

        def beat() -> None:
            while not ended.wait(self._seconds / 3 or None):
                try:
                    if not self.renew():
                        return
                except (MonocontextError, OSError):
                    continue  # if another machine takes it meanwhile, the next renewal finds out

        thread = threading.Thread(target=beat, name="rlm-lease", daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def __exit__(self, *_: object) -> None:
        """Give it back, if this machine still has it (1 PUT)."""
        if self._etag is not None:
            self._seconds = -1.0
            self._take(self._etag)
            self._etag = None

    def _take(self, etag: str | None) -> None:
        """Write the lease over this version, or create it. If another machine was faster, that machine has it."""
        try:
            self._etag = put_own(self._store, self._key, self._body(), if_match=etag)
        except (AlreadyExists, NotFound):
            self._etag, self.holder = None, "another machine"

    def _body(self) -> bytes:
        until = time.time() + self._seconds
        return json.dumps({"owner": self._owner, "until": until, "token": uuid.uuid4().hex}).encode()
