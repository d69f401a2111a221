"""Give the transport the route to a bucket and the keys that sign for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from monocontext.records import replace
from monocontext.stores.http.route import Route
from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.account import Way, account_of
from monocontext.stores.s3.options import S3Options

if TYPE_CHECKING:
    from ssl import SSLContext

Learn = Callable[[S3Options, str, str], Way | None]
"""Learns a way from botocore: for options, a bucket, and the reason why it is asked."""


class S3Origin:
    """The `Origin` of the transport to one bucket: who signs, and where requests go, as learnt for these options."""

    def __init__(self, options: S3Options, bucket: str, learn: Learn) -> None:
        self._options = options
        self._bucket = bucket
        self._learn = learn
        self._lock = threading.Lock()
        self._account = account_of(options.profile)
        self.way = self._find(options)
        """`None` where our transport cannot follow botocore."""

    def _find(self, options: S3Options) -> Way | None:
        return self._account.way(options, self._bucket, lambda reason: self._learn(options, self._bucket, reason))

    def _known(self) -> Way:
        assert self.way is not None
        return self.way

    def tls(self) -> SSLContext:
        return self._account.tls()

    def route(self) -> Route:
        return self._known().route

    def move(self, region: str) -> Route | None:
        with self._lock:
            if self._known().route.region != region:
                options = replace(self._options, region=region)
                found = self._find(options)
                if found is None:
                    return None
                self.way, self._options = found, options
            return self._known().route

    def credentials(self) -> Credentials:
        return self._known().identity.get()

    def renew(self, refused: Credentials) -> None:
        if self.credentials() != refused:
            return
        with self._lock:  # of many threads with refused credentials, one looks for newer ones
            if self._known().identity.get() == refused:
                self._account = account_of(self._options.profile, refused=self._account)
                self.way = self._find(self._options) or self.way
