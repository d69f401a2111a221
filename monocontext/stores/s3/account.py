"""Keep the settings, keys and learnt routes of one environment and profile, for all stores of the process.

A second store with the same environment, files and profile reads no file and sends no request. A change of a
variable, or of one of the files, makes a new account; stores that are open keep theirs.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from monocontext.records import NamedTuple
from monocontext.stores.http.route import Route
from monocontext.stores.s3.identity.keys import Anonymous, Identity, find_identity
from monocontext.stores.s3.identity.reasons import UnsupportedBySigner
from monocontext.stores.s3.identity.settings import Settings, read_environment
from monocontext.stores.s3.identity.shared_files import locate
from monocontext.stores.s3.identity.trust import make_tls_context
from monocontext.stores.s3.native_route import native_route
from monocontext.stores.s3.options import S3Options

if TYPE_CHECKING:
    from ssl import SSLContext

_MOST_ACCOUNTS = 64
_Key = tuple[object, ...]


class Way(NamedTuple):
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
        self._learnt: dict[tuple[S3Options, str], Way | None] = {}

    def way(self, options: S3Options, bucket: str, by_botocore: Callable[[str], Way | None]) -> Way | None:
        """The way to a bucket; where only botocore knows it, what `by_botocore` learns for the reason that it is given.

        Sends nothing: keys that lie elsewhere are fetched when they are first used.
        """
        with self._lock:
            learnt = options, bucket
            if learnt not in self._learnt:
                try:
                    route = native_route(self.settings, options, bucket)
                    identity = self._signer() if route.signed else Anonymous()
                    self._learnt[learnt] = Way(route, identity, "")
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
