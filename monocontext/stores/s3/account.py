"""Accounts: the credentials and routes of one environment and profile, shared by all stores of the process.

A second store with the same environment, files and profile reads no file and sends no request for credentials. A change
of a variable or of a file makes a new account; open stores keep theirs.

This module reads keys that do not expire from the environment and from the shared credentials file. All other sources
(roles, SSO, processes, `~/.aws/config`, metadata) are left to botocore, which costs its import and its requests.

It also finds the routes of buckets as botocore does. Botocore finds those of access points, FIPS, dual stack and other
partitions.

| endpoint | bucket | URL |
|---|---|---|
| none | `a-b-c` | `https://a-b-c.s3.eu-west-1.amazonaws.com/` |
| none, `path_style` or a dot in the bucket | `a.b` | `https://s3.eu-west-1.amazonaws.com/a.b/` |
| `http://host:9000/x` | `a` | `http://host:9000/x/a/` |
| the same, `path_style=False` | `abc` | `http://abc.host:9000/x/` |
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable, Mapping
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any

from monocontext.records import NamedTuple, dataclass, replace
from monocontext.stores.checks import one_line
from monocontext.stores.http.route import DEFAULT_PORTS, Credentials, Endpoint, Route, Signer
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.settings import (
    NoIdentity,
    NothingFound,
    Settings,
    UnsupportedBySigner,
    find_proxy,
    locate,
    make_tls_context,
    read_environment,
)

if TYPE_CHECKING:
    from ssl import SSLContext


_NOT_LOADED = object()
"""The credentials of botocore before their first use in a process."""
_MOST_ACCOUNTS = 64
"""The most accounts that a process remembers."""
_Key = tuple[object, ...]
_BEFORE_FILES = ("role_arn", "login_session", "web_identity_token_file", "sso_role_name", "sso_account_id")
"""Settings of a profile that name a source of credentials which precedes the shared files, and is left to botocore."""


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
        """`load` returns the credentials of botocore or `None`; it is called at the first use in a process. `tried`
        names the sources without keys, for an error message."""
        self.source = source
        self._load = load
        self._tried = tried
        self._process, self._lock = os.getpid(), threading.Lock()
        self._credentials: Any = _NOT_LOADED
        self._frozen: Any = None
        self._keys = Credentials("", "")

    def get(self) -> Credentials:
        """Valid keys (requests of botocore at the first use, and when they expire). Raises `NoIdentity`."""
        if self._process != os.getpid():  # a thread that did not survive the fork may have held a lock
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
    tried = [] if settings.profile_is_explicit else ["the environment"]
    section, profile = settings.credentials, settings.profile
    reason = "the credentials file has no keys"
    if key := environment.get("AWS_ACCESS_KEY_ID"):
        secret = environment.get("AWS_SECRET_ACCESS_KEY")
        if secret and not environment.get("AWS_CREDENTIAL_EXPIRATION"):
            token = environment.get("AWS_SECURITY_TOKEN") or environment.get("AWS_SESSION_TOKEN") or None
            return StaticIdentity(Credentials(key, secret, token), "the environment")
        reason = "AWS_CREDENTIAL_EXPIRATION is set" if secret else "AWS_SECRET_ACCESS_KEY is not set"
    elif "AWS_WEB_IDENTITY_TOKEN_FILE" in environment:
        reason = "AWS_WEB_IDENTITY_TOKEN_FILE is set"
    elif before := [name for name in _BEFORE_FILES if name in profile]:
        reason = f"the profile {settings.profile_name} has {before[0]}"
    elif "aws_access_key_id" in section and "aws_secret_access_key" in section:
        token = section.get("aws_security_token", section.get("aws_session_token")) or None
        keys = Credentials(section["aws_access_key_id"], section["aws_secret_access_key"], token)
        return StaticIdentity(keys, f"{settings.credentials_path}, profile {settings.profile_name}")
    tried += settings.unreadable or [f"the profile {settings.profile_name} in {settings.credentials_path}"]
    tried.append("metadata of a container or of the instance")
    named = settings.profile_name if settings.profile_is_explicit else None
    return BotocoreIdentity(
        lambda: import_module("botocore.session").Session(profile=named).get_credentials(),
        f"botocore, because {reason}",
        ", ".join(tried),
    )


class RequestPlan(NamedTuple):
    """The route to a bucket, and the identity that signs requests."""

    route: Route
    identity: Identity
    reason: str
    """The reason why botocore made the plan; empty if it did not."""


Learn = Callable[[S3Options, str, str], RequestPlan | None]
"""A function that gets a plan from botocore, given the options, the bucket and the reason."""


class Account:
    """The identity and the plan for each bucket, in one environment and profile. Safe for use by many threads."""

    def __init__(self, environment: Mapping[str, str], profile: str | None) -> None:
        self.settings = Settings(environment, profile)
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
            except UnsupportedBySigner as reason:
                self._plans[key] = learn(options, bucket, str(reason))
        return self._plans[key]

    @cached_property
    def _identity(self) -> Identity:
        return find_identity(self.settings)

    def tls(self) -> SSLContext:
        """The TLS context with the trusted certificates."""
        return make_tls_context(self.settings.ca_bundle())


_accounts: dict[_Key, Account] = {}


def account_of(profile: str | None, refused: Account | None = None) -> Account:
    """The account of a profile for the current environment and files, or a new one instead of `refused`.

    Raises `NoIdentity` if a file cannot be parsed or the profile is missing.
    """
    environment = read_environment()
    key = (profile, tuple(sorted(environment.items())), *map(_file_version, locate(environment)))
    result = _accounts.get(key)
    if result is None or result is refused:
        if len(_accounts) >= _MOST_ACCOUNTS:
            _accounts.clear()
        result = _accounts[key] = Account(environment, profile)
    return result


def _file_version(path: str) -> tuple[int, int, int] | None:
    try:
        result = os.stat(path)
    except OSError:
        return None
    return result.st_mtime_ns, result.st_size, result.st_ino


class S3Origin:
    """The `Origin` of one bucket: it gives the HTTP client the route and the signer."""

    def __init__(self, options: S3Options, bucket: str, learn: Learn, account: Account, plan: RequestPlan) -> None:
        self._options = options
        self._bucket = bucket
        self._learn = learn
        self._lock = threading.Lock()
        self._account = account
        self._signer: Signer | None = None
        self.plan = plan
        self.route = plan.route

    def tls(self) -> SSLContext:
        return self._account.tls()

    def move(self, region: str) -> Route | None:
        with self._lock:
            if self.route.region != region:
                options = replace(self._options, region=region)
                result = self._account.plan(options, self._bucket, self._learn)
                if result is None:
                    return None
                self.plan, self.route, self._options = result, result.route, options
            return self.route

    def signer(self, route: Route) -> Signer:
        keys, signer = self.plan.identity.get(), self._signer
        if signer is None or signer.credentials is not keys or signer.region != route.region:
            signer = self._signer = Signer(keys, route.region, route.service)
        return signer

    def renew(self, refused: Credentials) -> None:
        if self.plan.identity.get() != refused:
            return
        with self._lock:  # only one of many threads with refused credentials looks for newer ones
            if self.plan.identity.get() == refused:
                self._account = account_of(self._options.profile, refused=self._account)
                if result := self._account.plan(self._options, self._bucket, self._learn):
                    self.plan, self.route = result, result.route


def find_origin(options: S3Options, bucket: str, learn: Learn) -> S3Origin | None:
    """The origin of a bucket; `None` if our transport cannot reach it."""
    account = account_of(options.profile)
    plan = account.plan(options, bucket, learn)
    return None if plan is None else S3Origin(options, bucket, learn, account, plan)


# -- routes ------------------------------------------------------------------------------------------------------------

AWS_DOMAINS = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws")
_DEFAULT_REGION = "us-east-1"
"""The region of requests if none is configured. Its host name contains no region."""
_AWS_SUFFIXES = (
    (re.compile(r"(us|eu|ap|sa|ca|me|af|il|mx)(?!-gov)-[a-z]+-\d+"), "amazonaws.com"),
    (re.compile(r"us-gov-[a-z]+-\d+"), "amazonaws.com"),
    (re.compile(r"cn-[a-z]+-\d+"), "amazonaws.com.cn"),
)
_ANY_REGION = re.compile(r"(?=.{2,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_PLAIN_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9]+(-[a-z0-9]+)*")
_DOTTED_BUCKET = re.compile(r"(?=.{3,63}$)[a-z0-9]+([.-][a-z0-9]+)*")
_SPECIAL_SUFFIXES = ("--x-s3", "--op-s3", "--ol-s3", "--xa-s3", "--table-s3", "-s3alias", "--s3alias")
"""Endings of the names of access points and of special buckets."""
_ENDPOINT = re.compile(
    r"(?P<scheme>https?)://(?P<host>[A-Za-z0-9.-]+|\[[0-9A-Fa-f:]+\])(?::(?P<port>\d{1,5}))?"
    r"(?P<path>(?:/[A-Za-z0-9._~-]+)*)/?"
)
_HOST_NAME = re.compile(r"(?=.*[a-z])[a-z0-9-]+(\.[a-z0-9-]+)*")


def native_route(settings: Settings, options: S3Options, bucket: str) -> Route:
    """The route to a bucket, the same as that of botocore. Raises `UnsupportedBySigner`."""
    settings.check_for_s3()
    if bucket.endswith(_SPECIAL_SUFFIXES):
        raise UnsupportedBySigner(f"{bucket} is an access point or a special bucket")
    region = options.region or settings.region() or _DEFAULT_REGION
    endpoint_url = options.endpoint or settings.endpoint()
    if endpoint_url is None:
        route = _to_aws(bucket, region, bool(options.path_style))
    else:
        route = _to_server(bucket, endpoint_url, region, options.path_style is False)
    if proxy := find_proxy(str(route.endpoint)):
        route = replace(route, endpoint=route.endpoint._replace(proxy=proxy))
    return replace(route, region="", signed=False) if options.anonymous else route


def _to_aws(bucket: str, region: str, path_style: bool) -> Route:
    """The route to a bucket of AWS."""
    suffix = next((suffix for regions, suffix in _AWS_SUFFIXES if regions.fullmatch(region)), None)
    if suffix is None:
        raise UnsupportedBySigner(f"the region {region} is not one that the built-in client knows")
    host = f"s3.{suffix}" if region == _DEFAULT_REGION else f"s3.{region}.{suffix}"
    bucket_in_host = not path_style and "." not in bucket
    if not (_PLAIN_BUCKET if bucket_in_host else _DOTTED_BUCKET).fullmatch(bucket):
        raise UnsupportedBySigner(f"the bucket name {bucket} is not one that the built-in client can put into a URL")
    host, path = (f"{bucket}.{host}", "/") if bucket_in_host else (host, f"/{bucket}/")
    return Route(Endpoint("https", host, DEFAULT_PORTS["https"]), path, region)


def _to_server(bucket: str, endpoint_url: str, region: str, bucket_in_host: bool) -> Route:
    """The route to a bucket of another server."""
    match = _ENDPOINT.fullmatch(endpoint_url)
    if match is None:
        raise UnsupportedBySigner("the endpoint is not of the form http(s)://host[:port][/path]")
    scheme, path = match["scheme"], match["path"]
    host = domain = match["host"].strip("[]").lower()
    if host.endswith(AWS_DOMAINS):
        raise UnsupportedBySigner("the endpoint belongs to AWS")
    if not _ANY_REGION.fullmatch(region) or region.startswith(("aws-", "fips-", "s3-")) or region.endswith("-fips"):
        raise UnsupportedBySigner(f"the region {region} is not one that the built-in client knows")
    port = int(match["port"] or DEFAULT_PORTS[scheme])
    if not 0 < port < 65536:
        raise UnsupportedBySigner("the endpoint is not of the form http(s)://host[:port][/path]")
    if bucket_in_host:
        if not (_PLAIN_BUCKET.fullmatch(bucket) and _HOST_NAME.fullmatch(host)):
            raise UnsupportedBySigner(f"the bucket name {bucket} cannot be put in front of {host}")
        host, path = f"{bucket}.{host}", f"{path}/"
    else:
        path = f"{path}/{bucket}/"
    return Route(Endpoint(scheme, host, port), path, region, domain=domain)
