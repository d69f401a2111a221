"""Keep the settings, keys and learnt routes of one environment and profile, for all stores of the process.

A second store with the same environment, files and profile reads no file and sends no request. A change of a
variable, or of one of the files, makes a new account; stores that are open keep theirs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from monocontext.records import NamedTuple, replace
from monocontext.stores.http.route import Route
from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.keys import Anonymous, Identity, find_identity
from monocontext.stores.s3.native_route import native_route
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.settings import (
    Settings,
    UnsupportedBySigner,
    locate,
    make_tls_context,
    read_environment,
)

if TYPE_CHECKING:
    from ssl import SSLContext


_MOST_ACCOUNTS = 64
_Key = tuple[object, ...]


class RequestPlan(NamedTuple):
    """The route to a bucket, and the identity that signs."""

    route: Route
    identity: Identity
    asked: str
    """Why botocore was asked; empty where it was not."""


class Account:
    """One environment, one profile. Safe for use by many threads."""

    def __init__(self, environment: Mapping[str, str], profile: str | None) -> None:
        self.settings = Settings(environment, profile)
        self._lock = threading.Lock()
        self._identity: Identity | None = None
        self._learnt: dict[tuple[S3Options, str], RequestPlan | None] = {}

    def plan(
        self, options: S3Options, bucket: str, by_botocore: Callable[[str], RequestPlan | None]
    ) -> RequestPlan | None:
        """The plan for a bucket; where only botocore knows it, what `by_botocore` learns for the given reason.

        Sends nothing: keys that lie elsewhere are fetched when they are first used.
        """
        with self._lock:
            learnt = options, bucket
            if learnt not in self._learnt:
                try:
                    route = native_route(self.settings, options, bucket)
                    identity = self._signer() if route.signed else Anonymous()
                    self._learnt[learnt] = RequestPlan(route, identity, "")
                except UnsupportedBySigner as reason:
                    self._learnt[learnt] = by_botocore(str(reason))
            return self._learnt[learnt]

    def _signer(self) -> Identity:
        if self._identity is None:
            self._identity = find_identity(self.settings)
        return self._identity

    def tls(self) -> SSLContext:
        """The context with the trusted certificates; made once in a process."""
        return make_tls_context(self.settings.ca_bundle())


class _Accounts:
    """The accounts of one process."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.by_key: dict[_Key, Account] = {}


_accounts = _Accounts()


def account_of(profile: str | None, refused: Account | None = None) -> Account:
    """The account of a profile, as the environment and the files are now; another one than `refused`.

    Raises `NoIdentity` where a file cannot be parsed, or has no such profile.
    """
    global _accounts
    if _accounts.process != os.getpid():  # the lock is new as well: a thread that is lost may have held it
        _accounts = _Accounts()
    accounts, environment = _accounts, read_environment()
    key = (profile, tuple(sorted(environment.items())), *map(_signature, locate(environment)))
    with accounts.lock:
        found = accounts.by_key.get(key)
        if found is None or found is refused:
            found = accounts.by_key[key] = Account(environment, profile)
            while len(accounts.by_key) > _MOST_ACCOUNTS:
                del accounts.by_key[next(iter(accounts.by_key))]
        return found


def _signature(path: str) -> tuple[int, int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


Learn = Callable[[S3Options, str, str], RequestPlan | None]
"""Learns a plan from botocore: for options, a bucket, and the reason why it is asked."""


class S3Origin:
    """The `Origin` of the transport to one bucket: who signs, and where requests go, as learnt for these options."""

    def __init__(self, options: S3Options, bucket: str, learn: Learn) -> None:
        self._options = options
        self._bucket = bucket
        self._learn = learn
        self._lock = threading.Lock()
        self._account = account_of(options.profile)
        self.plan = self._find(options)
        """`None` where our transport cannot follow botocore."""

    def _find(self, options: S3Options) -> RequestPlan | None:
        return self._account.plan(options, self._bucket, lambda reason: self._learn(options, self._bucket, reason))

    def _known(self) -> RequestPlan:
        assert self.plan is not None
        return self.plan

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
                self.plan, self._options = found, options
            return self._known().route

    def credentials(self) -> Credentials:
        return self._known().identity.get()

    def renew(self, refused: Credentials) -> None:
        if self.credentials() != refused:
            return
        with self._lock:  # of many threads with refused credentials, one looks for newer ones
            if self._known().identity.get() == refused:
                self._account = account_of(self._options.profile, refused=self._account)
                self.plan = self._find(self._options) or self.plan
