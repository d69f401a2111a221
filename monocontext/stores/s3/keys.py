"""The keys that sign: those of the environment and the shared files are read here, all others by botocore.

| source, in botocore's order | read by | cost |
|---|---|---|
| `AWS_ACCESS_KEY_ID` and its kin | us | none |
| roles, web identities, SSO, `aws login` | botocore | its import, once a process, and its requests |
| `~/.aws/credentials` | us | reading a file |
| `credential_process` | botocore | its import, and a process |
| `~/.aws/config` | us | reading a file |
| files of boto 2, container and instance metadata | botocore | its import, and 1 to 3 requests, two seconds at most |
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from importlib import import_module
from typing import Any, Protocol

from monocontext.stores.http.signing import Credentials
from monocontext.stores.s3.settings import NoIdentity, NothingFound, Settings

_NOT_ASKED = object()
_BEFORE_FILES = ("role_arn", "login_session", "web_identity_token_file", "sso_role_name", "sso_account_id")
"""Names in a profile whose keys botocore fetches, and ranks before those of the shared files."""


class Identity(Protocol):
    """Gives the keys that sign. Safe for use by many threads and after a fork."""

    @property
    def source(self) -> str:
        """Where the keys come from, in words."""
        ...

    def get(self) -> Credentials:
        """Valid keys. Raises `NoIdentity`."""
        ...


class Anonymous:
    """Signs nothing: for public buckets."""

    source = "no keys, requests are not signed"

    def get(self) -> Credentials:
        raise AssertionError("requests are not signed")


class StaticIdentity:
    """Keys that stay."""

    def __init__(self, credentials: Credentials, source: str) -> None:
        self._credentials = credentials
        self.source = source

    def get(self) -> Credentials:
        return self._credentials


class BotocoreIdentity:
    """Keys that botocore fetches, and renews before they expire. `load` gives its credentials, or `None`; it is called
    at the first use in a process."""

    def __init__(self, load: Callable[[], Any], source: str, tried: str = "") -> None:
        self.source = source
        self._load = load
        self._tried = tried
        self._process, self._lock = os.getpid(), threading.Lock()
        self._credentials: Any = _NOT_ASKED
        self._frozen: Any = None
        self._keys = Credentials("", "")

    def get(self) -> Credentials:
        if self._process != os.getpid():  # a thread that did not survive the fork may have held a lock
            self._process, self._lock, self._credentials = os.getpid(), threading.Lock(), _NOT_ASKED
        try:
            with self._lock:
                if self._credentials is _NOT_ASKED:
                    self._credentials = self._load()
            if self._credentials is None:
                raise NothingFound(self._tried)
            frozen = self._credentials.get_frozen_credentials()
        except NoIdentity:
            raise
        except Exception as error:  # botocore's, and those of the files, processes and servers that it reads
            said = re.sub(r"\?\S+", "?...", " ".join(str(error).split()))
            kind = f"{type(error).__name__}: " if isinstance(error, LookupError | TypeError) else ""
            raise NoIdentity(f"{self.source}: {kind}{said}") from error
        if frozen != self._frozen:
            self._keys = Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
            self._frozen = frozen
        return self._keys


def find_identity(settings: Settings) -> Identity:
    """The identity of a profile. Sends nothing. Raises `NoIdentity` for half of a pair of keys."""
    name, files = settings.profile_name, settings.files
    if not settings.profile_is_explicit:
        if found := _from_environment(settings):
            return found
        if "AWS_WEB_IDENTITY_TOKEN_FILE" in settings.environment:
            return _by_botocore(settings, "AWS_WEB_IDENTITY_TOKEN_FILE is set")
    for setting in _BEFORE_FILES:
        if setting in settings.profile:
            return _by_botocore(settings, f"the profile {name} has {setting}")
    if found := _from_section(files.credentials.get(name, {}), files.credentials_path, name):
        return found
    if "credential_process" in settings.profile:
        return _by_botocore(settings, f"the profile {name} has credential_process")
    if found := _from_section(files.config_profiles.get(name, {}), files.config_path, name):
        return found
    return _by_botocore(settings, "the shared files have no keys")


def _by_botocore(settings: Settings, reason: str) -> Identity:
    profile = settings.profile_name if settings.profile_is_explicit else None

    def load() -> Any:
        return import_module("botocore.session").Session(profile=profile).get_credentials()

    files = settings.files
    here = f"the profile {settings.profile_name} in {files.credentials_path}"
    tried = ["" if settings.profile_is_explicit else "the environment", *(files.unreadable or [here])]
    tried.append("metadata of a container or of the instance")
    return BotocoreIdentity(load, f"botocore, asked since {reason}", ", ".join(filter(None, tried)))


def _from_environment(settings: Settings) -> Identity | None:
    environment = settings.environment
    if not environment.get("AWS_ACCESS_KEY_ID"):
        return None
    if not environment.get("AWS_SECRET_ACCESS_KEY"):
        raise NoIdentity("AWS_ACCESS_KEY_ID is set but not AWS_SECRET_ACCESS_KEY")
    if environment.get("AWS_CREDENTIAL_EXPIRATION"):
        return _by_botocore(settings, "AWS_CREDENTIAL_EXPIRATION is set")
    token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN") or None
    keys = Credentials(environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"], token)
    return StaticIdentity(keys, "the environment")


def _from_section(section: dict[str, Any], path: str, name: str) -> Identity | None:
    if "aws_access_key_id" not in section:
        return None
    source = f"{path}, profile {name}"
    if "aws_secret_access_key" not in section:
        raise NoIdentity(f"{source} has aws_access_key_id but no aws_secret_access_key")
    token = section.get("aws_security_token", section.get("aws_session_token"))
    return StaticIdentity(
        Credentials(section["aws_access_key_id"], section["aws_secret_access_key"], token or None), source
    )
