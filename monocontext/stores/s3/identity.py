"""Find the keys that sign requests, in the environment or the shared credentials file, else by botocore.

This module reads only keys without a recorded time of expiry. All other sources (roles, SSO, processes,
`~/.aws/config`, metadata) are left to botocore, which costs its import and its requests.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from monocontext.records import NamedTuple, dataclass
from monocontext.stores.http.route import Credentials, Route
from monocontext.stores.protocol import one_line
from monocontext.stores.s3.settings import ConfigurationError, NoCredentials, Settings

_BEFORE_FILES = ("role_arn", "login_session", "web_identity_token_file", "sso_role_name", "sso_account_id")
"""Settings of a profile that name a source of credentials. It precedes the shared files, and is left to botocore."""
_NOT_LOADED = object()  # the credentials of botocore before their first use in a process


@dataclass(frozen=True, slots=True)
class StaticIdentity:
    """Keys without a recorded time of expiry."""

    credentials: Credentials
    source: str
    """The origin of the keys, in words."""


ANONYMOUS = StaticIdentity(Credentials("", ""), "no keys: requests are not signed")


class BotocoreIdentity:
    """Keys that botocore fetches, and replaces before they expire. Safe for use by many threads and after a fork."""

    def __init__(self, load: Callable[[], Any], source: str, tried: str = "") -> None:
        """`load` returns the credentials of botocore or `None`; it is called at the first use in a process.

        `source` names the origin of the keys, and `tried` the sources without keys; both are for messages.
        """
        self.source = source
        self._load = load
        self._tried = tried
        self._process, self._lock = os.getpid(), threading.Lock()
        self._botocore_credentials: Any = _NOT_LOADED
        self._frozen: Any = None  # the last keys, as botocore returns them
        self._credentials = Credentials("", "")  # the same keys

    @property
    def credentials(self) -> Credentials:
        """Valid keys. Botocore may request them at the first use, and when they expire. Raises `ConfigurationError`."""
        if self._process != os.getpid():
            # A thread that did not survive the fork may have held a lock.
            self._process, self._lock, self._botocore_credentials = os.getpid(), threading.Lock(), _NOT_LOADED
        try:
            with self._lock:
                if self._botocore_credentials is _NOT_LOADED:
                    self._botocore_credentials = self._load()
            if self._botocore_credentials is None:
                raise NoCredentials(self._tried)
            frozen = self._botocore_credentials.get_frozen_credentials()
        except ConfigurationError:
            raise
        except Exception as error:  # errors of botocore and of the sources that it reads
            message = re.sub(r"\?\S+", "?...", one_line(error))  # the query of a URL may be a secret
            type_name = f"{type(error).__name__}: " if isinstance(error, LookupError | TypeError) else ""
            raise ConfigurationError(f"{self.source}: {type_name}{message}") from error
        if frozen != self._frozen:
            self._credentials = Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
            self._frozen = frozen
        return self._credentials


Identity = StaticIdentity | BotocoreIdentity
"""A source of keys that sign requests. The attribute `credentials` has valid keys, or raises `ConfigurationError`."""


class RequestPlan(NamedTuple):
    """The route to a bucket, and the identity that signs requests."""

    route: Route
    identity: Identity
    reason: str = ""
    """The reason why botocore made the plan; empty if it did not."""


def find_identity(settings: Settings) -> Identity:
    """The identity of a profile, found without a request."""
    # A profile that the caller named precedes the environment.
    environment = {} if settings.profile_is_explicit else settings.environment
    if reason := _reason_for_botocore(environment, settings):
        return _botocore_identity(settings, reason)
    if key := environment.get("AWS_ACCESS_KEY_ID"):
        token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN") or None
        return StaticIdentity(Credentials(key, environment["AWS_SECRET_ACCESS_KEY"], token), "the environment")
    section = settings.credentials
    token = section.get("aws_security_token", section.get("aws_session_token")) or None
    credentials = Credentials(section["aws_access_key_id"], section["aws_secret_access_key"], token)
    return StaticIdentity(credentials, f"{settings.credentials_path}, profile {settings.profile_name}")


def _reason_for_botocore(environment: Mapping[str, str], settings: Settings) -> str:
    """The reason why only botocore finds the keys; empty if the environment or the credentials file has them."""
    if environment.get("AWS_ACCESS_KEY_ID"):
        if not environment.get("AWS_SECRET_ACCESS_KEY"):
            return "AWS_SECRET_ACCESS_KEY is not set"
        return "AWS_CREDENTIAL_EXPIRATION is set" if environment.get("AWS_CREDENTIAL_EXPIRATION") else ""
    if "AWS_WEB_IDENTITY_TOKEN_FILE" in environment:
        return "AWS_WEB_IDENTITY_TOKEN_FILE is set"
    for name in _BEFORE_FILES:
        if name in settings.profile:
            return f"the profile {settings.profile_name} has {name}"
    has_keys = {"aws_access_key_id", "aws_secret_access_key"} <= settings.credentials.keys()
    return "" if has_keys else "the credentials file has no keys"


def _botocore_identity(settings: Settings, reason: str) -> BotocoreIdentity:
    profile = settings.profile_name if settings.profile_is_explicit else None
    tried = [] if settings.profile_is_explicit else ["the environment"]
    tried += settings.unreadable or [f"the profile {settings.profile_name} in {settings.credentials_path}"]
    tried.append("the metadata service of the container or instance")
    return BotocoreIdentity(
        lambda: load_botocore().session.Session(profile=profile).get_credentials(),
        f"botocore, because {reason}",
        ", ".join(tried),
    )


def load_botocore() -> Any:
    """Import botocore, which takes 0.2 s and most reads do not need. It has no types."""
    import botocore.config
    import botocore.session
    import botocore.utils

    return botocore
