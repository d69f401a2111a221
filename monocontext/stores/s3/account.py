"""Accounts: the credentials and routes of one environment and profile, shared by all stores of the process.

A second store with the same environment, files and profile reads no file and sends no request for credentials. A change
of a variable or of a file makes a new account; open stores keep theirs.

This module reads keys that do not expire from the environment and from the shared credentials file. All other sources
(roles, SSO, processes, `~/.aws/config`, metadata) are left to botocore, which costs its import and its requests.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import re
import threading
import time
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from monocontext.errors import InvalidUrl
from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores.http.route import Credentials, Route
from monocontext.stores.protocol import one_line
from monocontext.stores.s3.routes import DEFAULT_REGION, SPECIAL_SUFFIXES, find_proxy, route_to_aws, route_to_server
from monocontext.stores.s3.settings import NeedsBotocore, NoIdentity, NothingFound, Settings
from monocontext.stores.secrets_in_urls import without_secrets

if TYPE_CHECKING:
    from ssl import SSLContext


_MOST_ACCOUNTS = 64  # the most accounts that a process remembers
_Key = tuple[object, ...]
_OTHER_VARIABLES = ("BOTO_CONFIG", "HOME", "REQUESTS_CA_BUNDLE", "REQUEST_METHOD", "USERPROFILE")
"""Variables without the prefix `AWS_` that botocore reads."""
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
"""The variables that name the two shared files, and where these are by default."""
_accounts: dict[_Key, Account] = {}


def account_of(profile: str | None, refused: Account | None = None) -> Account:
    """The account of a profile for the current environment and files, or a new one instead of `refused`.

    Raises `NoIdentity` if a file cannot be parsed or the profile is missing.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("AWS_") or name in _OTHER_VARIABLES or name.lower().endswith("_proxy")
    }
    config, credentials = (
        os.path.expanduser(os.path.expandvars(environment.get(variable, default)))
        for variable, default in _FILES.items()
    )
    key = profile, tuple(sorted(environment.items())), _file_version(config), _file_version(credentials)
    result = _accounts.get(key)
    if result is None or result is refused:
        if len(_accounts) >= _MOST_ACCOUNTS:
            _accounts.clear()
        result = _accounts[key] = Account(Settings(environment, profile, config, credentials))
    return result


def _file_version(path: str) -> tuple[int, int, int] | None:
    try:
        result = os.stat(path)
    except OSError:
        return None
    return result.st_mtime_ns, result.st_size, result.st_ino


class Account:
    """The identity and the plan for each bucket, in one environment and profile. Safe for use by many threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._plans: dict[_Key, RequestPlan | None] = {}

    def plan(self, options: S3Options, bucket: str, learn: Learn) -> RequestPlan | None:
        """The plan for a bucket, made without a request; `None` if our transport cannot reach the bucket.

        If `native_route` has no rule, `learn` makes the plan. Two threads may both make it: the results are equal.
        """
        key = options.endpoint, options.region, options.path_style, options.anonymous, bucket
        if key not in self._plans:
            try:
                route = native_route(self.settings, options, bucket)
                identity = self._identity if route.signed else _ANONYMOUS
                self._plans[key] = RequestPlan(route, identity, "")
            except NeedsBotocore as reason:
                self._plans[key] = learn(options, bucket, str(reason))
        return self._plans[key]

    @cached_property
    def _identity(self) -> Identity:
        return find_identity(self.settings)

    def tls(self) -> SSLContext:
        """The TLS context with the trusted certificates."""
        from monocontext.stores.s3.tls import make_tls_context  # 10 ms that plain HTTP need not pay

        return make_tls_context(self.settings.ca_bundle())


def native_route(settings: Settings, options: S3Options, bucket: str) -> Route:
    """The route to a bucket, the same as that of botocore. Raises `NeedsBotocore` if these rules do not cover it."""
    settings.check_for_s3()
    if bucket.endswith(SPECIAL_SUFFIXES):
        raise NeedsBotocore(f"{bucket} is an access point or a special bucket")
    region = options.region or settings.region() or DEFAULT_REGION
    endpoint_url = options.endpoint or settings.endpoint()
    if endpoint_url is None:
        route = route_to_aws(bucket, region, bool(options.path_style))
    else:
        route = route_to_server(bucket, endpoint_url, region, options.path_style is False)
    if proxy := find_proxy(str(route.endpoint)):
        route = replace(route, endpoint=route.endpoint._replace(proxy=proxy))
    return replace(route, region="", signed=False) if options.anonymous else route


@dataclass(frozen=True, slots=True)
class S3Options:
    """The options of `open_store` for `s3://`, as `StoreOptions` describes them, with defaults. None is a secret."""

    endpoint: str | None = None
    region: str | None = None
    profile: str | None = None
    path_style: bool | None = None
    anonymous: bool = False
    transport: str = "own"
    keep_alive: bool = True

    def __post_init__(self) -> None:
        if self.transport not in ("own", "boto3"):
            raise ValueError(f"transport must be one of own, boto3, not {self.transport!r}")
        if self.endpoint is not None:
            try:
                parts = urlsplit(self.endpoint)
                is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
            except ValueError:  # brackets without an address, or an invalid port
                is_url = False
            if not is_url or self.endpoint.split() != [self.endpoint]:
                display = without_secrets(self.endpoint)
                raise InvalidUrl(f"endpoint must be a URL such as http://127.0.0.1:8333, not {display!r}")
        if self.region is not None and not (self.region.isascii() and self.region.isprintable()):
            raise InvalidUrl(f"region must be a name such as eu-west-1, not {self.region!r}")


class RequestPlan(NamedTuple):
    """The route to a bucket, and the identity that signs requests."""

    route: Route
    identity: Identity
    reason: str
    """The reason why botocore made the plan; empty if it did not."""


Learn = Callable[[S3Options, str, str], RequestPlan | None]
"""A function that gets a plan from botocore, given the options, the bucket and the reason."""


class S3Origin:
    """The `Origin` of one bucket: it gives the HTTP client the route and the signer."""

    def __init__(self, options: S3Options, bucket: str, learn: Learn, account: Account, plan: RequestPlan) -> None:
        self._options, self._bucket, self._learn, self._account = options, bucket, learn, account
        self.plan, self.route = plan, plan.route
        self._lock = threading.Lock()
        """Held while the plan is replaced."""
        self._signer: Signer | None = None

    def move(self, region: str) -> Route | None:
        with self._lock:
            if self.route.region != region:
                options = replace(self._options, region=region)
                result = self._account.plan(options, self._bucket, self._learn)
                if result is None:
                    return None
                self.plan, self.route, self._options = result, result.route, options
            return self.route

    def sign(
        self, route: Route, host: str, target: str, headers: Mapping[str, str], now: float
    ) -> tuple[dict[str, str], Credentials]:
        keys, signer = self.plan.identity.get(), self._signer
        if signer is None or signer.credentials is not keys or signer.region != route.region:
            signer = self._signer = Signer(keys, route.region, route.service)
        path, _, query = target.partition("?")
        return signer.headers("GET", host, path, query, headers, now), keys

    def renew(self, refused: Credentials) -> None:
        if self.plan.identity.get() != refused:
            return
        with self._lock:  # only one of many threads with refused credentials looks for newer ones
            if self.plan.identity.get() == refused:
                self._account = account_of(self._options.profile, refused=self._account)
                if result := self._account.plan(self._options, self._bucket, self._learn):
                    self.plan, self.route = result, result.route


# -- keys and signatures -----------------------------------------------------------------------------------------------

_NOT_LOADED = object()  # the credentials of botocore before their first use in a process
_BEFORE_FILES = ("role_arn", "login_session", "web_identity_token_file", "sso_role_name", "sso_account_id")
"""Settings of a profile that name a source of credentials which precedes the shared files, and is left to botocore."""
_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class StaticIdentity:
    """Keys that do not expire."""

    credentials: Credentials
    source: str
    """The origin of the keys, in words."""

    def get(self) -> Credentials:
        return self.credentials


_ANONYMOUS = StaticIdentity(Credentials("", ""), "no keys, requests are not signed")


class BotocoreIdentity:
    """Keys that botocore fetches, and renews before they expire. Safe for use by many threads and after a fork."""

    def __init__(self, load: Callable[[], Any], source: str, tried: str = "") -> None:
        """`load` returns the credentials of botocore or `None`; it is called at the first use in a process.

        `source` names the origin of the keys, and `tried` the sources without keys; both are for messages.
        """
        self.source = source
        self._load = load
        self._tried = tried
        self._process, self._lock = os.getpid(), threading.Lock()
        self._credentials: Any = _NOT_LOADED
        self._frozen: Any = None
        self._keys = Credentials("", "")

    def get(self) -> Credentials:
        """Valid keys (requests of botocore at the first use, and when they expire). Raises `NoIdentity`."""
        if self._process != os.getpid():
            # A thread that did not survive the fork may have held a lock.
            self._process, self._lock, self._credentials = os.getpid(), threading.Lock(), _NOT_LOADED
        try:
            with self._lock:
                if self._credentials is _NOT_LOADED:
                    self._credentials = self._load()
            if self._credentials is None:
                raise NothingFound(self._tried)
            frozen = self._credentials.get_frozen_credentials()
        except NoIdentity:
            raise
        except Exception as error:  # errors of botocore and of the sources that it reads
            message = re.sub(r"\?\S+", "?...", one_line(error))  # the query of a URL may be a secret
            kind = f"{type(error).__name__}: " if isinstance(error, LookupError | TypeError) else ""
            raise NoIdentity(f"{self.source}: {kind}{message}") from error
        if frozen != self._frozen:
            self._keys = Credentials(frozen.access_key, frozen.secret_key, frozen.token or None)
            self._frozen = frozen
        return self._keys


Identity = StaticIdentity | BotocoreIdentity
"""A source of the keys that sign requests: `get` returns valid ones, or raises `NoIdentity`."""


def find_identity(settings: Settings) -> Identity:
    """The identity of a profile, found without a request."""
    # A profile that the caller named precedes the environment.
    environment = {} if settings.profile_is_explicit else settings.environment
    if reason := _why_botocore(environment, settings):
        return _identity_of_botocore(settings, reason)
    if key := environment.get("AWS_ACCESS_KEY_ID"):
        token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN") or None
        return StaticIdentity(Credentials(key, environment["AWS_SECRET_ACCESS_KEY"], token), "the environment")
    section = settings.credentials
    token = section.get("aws_security_token", section.get("aws_session_token")) or None
    keys = Credentials(section["aws_access_key_id"], section["aws_secret_access_key"], token)
    return StaticIdentity(keys, f"{settings.credentials_path}, profile {settings.profile_name}")


def _why_botocore(environment: Mapping[str, str], settings: Settings) -> str:
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


def load_botocore() -> Any:
    """botocore, which most reads do not need: to import it takes 0.2 s. It has no types."""
    import botocore.config
    import botocore.session
    import botocore.utils

    return botocore


def _identity_of_botocore(settings: Settings, reason: str) -> BotocoreIdentity:
    named = settings.profile_name if settings.profile_is_explicit else None
    tried = [] if settings.profile_is_explicit else ["the environment"]
    tried += settings.unreadable or [f"the profile {settings.profile_name} in {settings.credentials_path}"]
    tried.append("metadata of a container or of the instance")
    return BotocoreIdentity(
        lambda: load_botocore().session.Session(profile=named).get_credentials(),
        f"botocore, because {reason}",
        ", ".join(tried),
    )


@dataclass(slots=True, eq=False)
class Signer:
    """Signs requests without a body by AWS Signature Version 4, with one pair of keys, in one region.

    Safe for use by many threads. The signing key of a day is derived once: 8 us a signature instead of botocore's 130.
    """

    credentials: Credentials
    region: str
    service: str = "s3"
    _key_of_day: tuple[str, bytes] = ("", b"")
    """The day of the last signature, and the signing key of that day."""
    _stamp_of_second: tuple[int, str] = (-1, "")
    """The second of the last signature, and its time as it is signed."""

    def headers(
        self, method: str, host: str, path: str, query: str, headers: Mapping[str, str], now: float
    ) -> dict[str, str]:
        """All headers of a signed request: `headers`, `host` and those of the signature, which covers the others.

        `path` and `query` are percent-encoded, as they are sent. `now` is in seconds since 1970.
        """
        second, stamp = self._stamp_of_second
        if second != int(now):
            stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
            self._stamp_of_second = int(now), stamp
        sent = {name.lower(): value for name, value in headers.items()}
        sent |= {"host": host, "x-amz-content-sha256": _EMPTY_SHA256, "x-amz-date": stamp}
        if self.credentials.token is not None:
            sent["x-amz-security-token"] = self.credentials.token
        names = sorted(sent)
        listed = "".join([f"{name}:{' '.join(sent[name].split())}\n" for name in names])
        signed = ";".join(names)
        pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else ()
        query = "&".join(f"{name}={value}" for name, value in pairs)
        canonical = f"{method}\n{path}\n{query}\n{listed}\n{signed}\n{_EMPTY_SHA256}"
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(stamp[:8]), text.encode(), "sha256").hex()
        sent["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return sent

    def _key(self, day: str) -> bytes:
        key_day, key = self._key_of_day
        if key_day != day:
            key = f"AWS4{self.credentials.secret_key}".encode()
            for part in (day, self.region, self.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_of_day = day, key  # one assignment, so other threads see either the old pair or the new one
        return key
