"""Share the credentials and routes of one environment and profile among the stores of a process.

A second store with the same environment, files and profile reads no file and sends no request for credentials. A change
of a variable or of a file makes a new account; open stores keep theirs.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import threading
import time
from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from monocontext.errors import InvalidUrl
from monocontext.records import dataclass, replace
from monocontext.stores.http.route import Credentials, Route
from monocontext.stores.s3.client import learn_plan
from monocontext.stores.s3.identity import ANONYMOUS, Identity, RequestPlan, find_identity
from monocontext.stores.s3.routes import native_route
from monocontext.stores.s3.settings import NeedsBotocore, S3Options, Settings
from monocontext.stores.secrets_in_urls import without_secrets

if TYPE_CHECKING:
    from ssl import SSLContext


_EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_MOST_ACCOUNTS = 64  # the most accounts that a process remembers
_OTHER_VARIABLES = ("BOTO_CONFIG", "HOME", "REQUESTS_CA_BUNDLE", "REQUEST_METHOD", "USERPROFILE")
"""Variables without the prefix `AWS_` that botocore reads."""
_FILES = {"AWS_CONFIG_FILE": "~/.aws/config", "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials"}
"""The paths of the two shared files by default, by the variables that name others."""
_accounts: dict[tuple[object, ...], Account] = {}  # by profile, environment, and the versions of the two files


def account_of(profile: str | None, refused: Account | None = None) -> Account:
    """The account of a profile in the current environment and files; a new one if that account is `refused`.

    Raises `ConfigurationError` if a file cannot be parsed or the profile is missing. No request is sent.
    """
    environment = {
        name: value
        for name, value in os.environ.items()
        if name.startswith("AWS_") or name in _OTHER_VARIABLES or name.lower().endswith("_proxy")
    }
    config_path, credentials_path = (
        os.path.expanduser(os.path.expandvars(environment.get(variable, default)))
        for variable, default in _FILES.items()
    )
    files = _file_version(config_path), _file_version(credentials_path)
    key = profile, tuple(sorted(environment.items())), files
    result = _accounts.get(key)
    if result is None or result is refused:
        if len(_accounts) >= _MOST_ACCOUNTS:
            _accounts.clear()
        result = _accounts[key] = Account(Settings(environment, profile, config_path, credentials_path))
    return result


def _file_version(path: str) -> tuple[int, int, int] | None:
    """The time, size and inode of a file, which change with its content; `None` if it is missing."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


class Account:
    """The identity and the plan for each bucket, in one environment and profile. Safe for use by many threads."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._plans: dict[tuple[object, ...], RequestPlan | None] = {}  # by options and bucket

    def plan(self, options: S3Options, bucket: str) -> RequestPlan | None:
        """The plan for a bucket, made without a request; `None` if our transport cannot reach the bucket.

        If `native_route` has no rule, botocore makes the plan. Two threads may both make it: the results are equal.
        """
        key = options.endpoint, options.region, options.path_style, options.anonymous, bucket
        if key not in self._plans:
            try:
                route = native_route(self.settings, options, bucket)
                identity = self._identity if route.signed else ANONYMOUS
                self._plans[key] = RequestPlan(route, identity)
            except NeedsBotocore as reason:
                self._plans[key] = learn_plan(options, bucket, str(reason))
        return self._plans[key]

    @cached_property
    def _identity(self) -> Identity:
        return find_identity(self.settings)

    def tls(self) -> SSLContext:
        """The TLS context with the trusted certificates."""
        from monocontext.stores.s3.tls import make_tls_context  # 10 ms that plain HTTP need not pay

        return make_tls_context(self.settings.ca_bundle())


def check_options(options: S3Options) -> S3Options:
    """Return the options. Raises `InvalidUrl` for an invalid endpoint or region, `ValueError` for another transport."""
    if options.transport not in ("own", "boto3"):
        raise ValueError(f"transport must be 'own' or 'boto3', not {options.transport!r}")
    if options.endpoint is not None:
        try:
            parts = urlsplit(options.endpoint)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:  # brackets without an address, or an invalid port
            is_url = False
        if not is_url or options.endpoint.split() != [options.endpoint]:
            display = without_secrets(options.endpoint)
            raise InvalidUrl(f"endpoint must be a URL such as http://127.0.0.1:8333, not {display!r}")
    if options.region is not None and not (options.region.isascii() and options.region.isprintable()):
        raise InvalidUrl(f"region must be a name such as eu-west-1, not {options.region!r}")
    return options


class S3Origin:
    """The `Origin` of one bucket: it gives the HTTP client the route and the signer."""

    def __init__(self, options: S3Options, bucket: str, account: Account, plan: RequestPlan) -> None:
        self._options, self._bucket, self._account = options, bucket, account
        self.plan, self.route = plan, plan.route
        self._lock = threading.Lock()
        """Held while the plan is replaced."""
        self._signer: Signer | None = None

    def move_to_region(self, region: str) -> Route | None:
        with self._lock:
            if self.route.region != region:
                options = replace(self._options, region=region)
                plan = self._account.plan(options, self._bucket)
                if plan is None:
                    return None
                self.plan, self.route, self._options = plan, plan.route, options
            return self.route

    def sign(
        self, route: Route, host: str, target: str, headers: Mapping[str, str], now: float
    ) -> tuple[dict[str, str], Credentials]:
        credentials, signer = self.plan.identity.credentials, self._signer
        if signer is None or signer.credentials is not credentials or signer.region != route.region:
            signer = self._signer = Signer(credentials, route.region, route.service)
        return signer.headers("GET", host, target, headers, now), credentials

    def renew(self, refused: Credentials) -> None:
        if self.plan.identity.credentials != refused:
            return
        with self._lock:  # only one of many threads with refused credentials looks for newer ones
            if self.plan.identity.credentials == refused:
                self._account = account_of(self._options.profile, refused=self._account)
                if plan := self._account.plan(self._options, self._bucket):
                    self.plan, self.route = plan, plan.route


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

    def headers(self, method: str, host: str, target: str, headers: Mapping[str, str], now: float) -> dict[str, str]:
        """All headers of a signed request: `headers`, `host` and those of the signature, which covers the others.

        `target` is the path and the query, percent-encoded as they are sent. `now` is in seconds since 1970.
        """
        path, _, query = target.partition("?")
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        result = {name.lower(): value for name, value in headers.items()}
        result |= {"host": host, "x-amz-content-sha256": _EMPTY_SHA256, "x-amz-date": stamp}
        if self.credentials.token is not None:
            result["x-amz-security-token"] = self.credentials.token
        # The names are those of AWS's description of Signature Version 4.
        names = sorted(result)
        canonical_headers = "".join([f"{name}:{' '.join(result[name].split())}\n" for name in names])
        signed_headers = ";".join(names)
        pairs = sorted(pair.partition("=")[::2] for pair in query.split("&")) if query else ()
        canonical_query = "&".join(f"{name}={value}" for name, value in pairs)
        canonical_request = (
            f"{method}\n{path}\n{canonical_query}\n{canonical_headers}\n{signed_headers}\n{_EMPTY_SHA256}"
        )
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        request_hash = hashlib.sha256(canonical_request.encode()).hexdigest()
        string_to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{request_hash}"
        signature = hmac.digest(self._signing_key(stamp[:8]), string_to_sign.encode(), "sha256").hex()
        result["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.credentials.access_key}/{scope}, "
            f"SignedHeaders={signed_headers}, Signature={signature}"
        )
        return result

    def _signing_key(self, day: str) -> bytes:
        """The key of a day, such as `20260131`."""
        key_day, key = self._key_of_day
        if key_day != day:
            key = f"AWS4{self.credentials.secret_key}".encode()
            for part in (day, self.region, self.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._key_of_day = day, key  # one assignment, so other threads see either the old pair or the new one
        return key
