"""The clients of an S3 store: our own transport for reads, and boto3 for the rest, made on first use in each process.

Threads share clients; processes do not. Two processes that read from one inherited socket receive each other's objects
without an error (reproduced with boto3 over plain HTTP), so each process makes its own clients after a fork.

botocore has more rules for endpoints, styles and signatures than `native_route`. If one of them applies, botocore
prepares and signs a request, and a hook catches it before it is sent: once for each bucket and process. If a handler,
such as that of moto, intercepts requests of boto3, reads use boto3 as well.
"""

from __future__ import annotations

import os
import re
import sys
import threading
from functools import cache
from importlib import import_module
from typing import Any
from urllib.parse import urlsplit

from monocontext.records import replace
from monocontext.stores import log
from monocontext.stores.http.client import Client
from monocontext.stores.http.pool import MAX_IDLE, Connector, Pool
from monocontext.stores.http.responses import is_throttling
from monocontext.stores.http.route import DEFAULT_PORTS, Endpoint, Route
from monocontext.stores.s3.account import AWS_DOMAINS, BotocoreIdentity, RequestPlan, account_of, find_origin
from monocontext.stores.s3.options import S3Options
from monocontext.stores.s3.settings import parse_proxy

_CONNECT_TIMEOUT_SECONDS = 5
_READ_TIMEOUT_SECONDS = 10
_ATTEMPTS = 4
"""The most attempts of one request."""
_DEFAULT_REGION = "us-east-1"
_NEEDS_RETRY = "needs-retry.s3.GetObject"
_THROTTLE_HOOK = "monocontext-refusals"
_BEFORE_SEND = "before-send.s3.GetObject"
_PROBE = "monocontext-probe"
"""The key of the request that botocore prepares."""
_EXPRESS = "--x-s3"
"""The ending of the names of directory buckets, whose requests need a session token of their own."""
_SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=.*/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request,")


class _ProcessState:
    """The clients of one process, and the lock under which they are made."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.lock = threading.Lock()
        self.client: Any = None
        self.handlers: list[Any] | None = find_handlers()
        """Handlers that may respond instead of the network, as those of moto do; `None` if they are unknown."""
        self.pool: Pool | None = None
        self.transports: dict[str, Client | None] = {}


class S3Connection:
    """The boto3 client of this process, and its own transport to each bucket, made on first use."""

    def __init__(self, options: S3Options, client: Any = None) -> None:
        self.options = options
        self.given = client
        """A client of the caller, who is then responsible for forks."""
        self.throttles = ThrottleCounter()
        if client is not None:
            self.throttles.register(client)
        self.credentials_source = ""
        """The source of the credentials that sign reads; empty before the first read."""
        self._process_state = _ProcessState()

    def client(self) -> Any:
        """The boto3 client; the first call costs 0.3 s, most of it the import."""
        if self.given is not None:
            return self.given
        state = self._state()
        if state.client is None:
            with state.lock:
                if state.client is None:
                    account_of(self.options.profile)  # boto3 raises its own ValueError for a line break in a key
                    client = _connect(self.options)
                    self.throttles.register(client)
                    state.handlers = find_handlers(client)
                    state.client = client
        return state.client

    def transport(self, bucket: str) -> Client | None:
        """Our transport to a bucket; `None` if boto3 must read: the caller chose it or gave a client, a handler such as
        that of moto intercepts requests, or our transport cannot reach the bucket."""
        if self.given is not None or self.options.transport == "boto3":
            return None
        state = self._state()
        if state.handlers is None or any(getattr(handler, "enabled", True) for handler in state.handlers):
            return None
        if bucket not in state.transports:
            with state.lock:
                if bucket not in state.transports:
                    state.transports[bucket] = self._open(state, bucket)
        return state.transports[bucket]

    def _state(self) -> _ProcessState:
        state = self._process_state
        if state.process != os.getpid():
            # The lock is new too: a thread that did not survive the fork may have held it.
            inherited, state = state, _ProcessState()
            self._process_state = state
            if inherited.pool is not None:
                inherited.pool.close()  # closes our copies of the parent's sockets
        return state

    def _open(self, state: _ProcessState, bucket: str) -> Client | None:
        """A transport to a bucket, under the lock of `state`."""
        origin = find_origin(self.options, bucket, _learn)
        if origin is None:
            log.note(log.INFO, "boto3 reads from %s, not our own transport", bucket)
            self.credentials_source = "boto3, which reads from this bucket"
            return None
        because = f", because {origin.plan.reason}" if origin.plan.reason else ""
        self.credentials_source = origin.plan.identity.source + because
        if state.pool is None:
            state.pool = Pool(Connector(origin.tls), MAX_IDLE if self.options.keep_alive else 0)
        return Client(origin, state.pool, attempts=_ATTEMPTS, silence_seconds=_READ_TIMEOUT_SECONDS)

    def close(self) -> None:
        """Close the connections; a later `client()` opens new ones. A client given by the caller stays open."""
        state, self._process_state = self._process_state, _ProcessState()
        if state.pool is not None:
            state.pool.close()
        if state.client is not None and state.process == os.getpid():
            state.client.close()


def _learn(options: S3Options, bucket: str, reason: str) -> RequestPlan | None:
    """Get the plan for a bucket from botocore, and log why (0.3 s at the first call in a process, 20 ms later)."""
    log.note(log.INFO, "botocore is asked how to read from %s: %s", bucket, reason)
    client = _connect(options)
    try:
        route = learn_route(client, bucket)
        # Private, but the only access to the credentials of a client, which botocore renews before they expire.
        identity = BotocoreIdentity(lambda: client._request_signer._credentials, "botocore")
        return None if route is None else RequestPlan(route, identity, reason)
    finally:
        client.close()


@cache
def _shared_data_loader() -> Any:
    """The loader of the files from which botocore makes a client, shared so that they are read once. Sessions are not
    shared: a new client must not inherit credentials that the server refused."""
    return import_module("botocore.session").get_session().get_component("data_loader")


def _session(profile: str | None) -> Any:
    # boto3 and botocore have no types; imported like this they are `Any`.
    inner, models = import_module("botocore.session").get_session(), _shared_data_loader()
    inner.register_component("data_loader", models)
    session = import_module("boto3.session").Session(profile_name=profile, botocore_session=inner)
    models.search_paths[:] = dict.fromkeys(models.search_paths)  # each session of boto3 appends its own folder
    return session


def _connect(options: S3Options) -> Any:
    """A new boto3 client. No request is sent."""
    session = _session(options.profile)
    region = options.region or session.region_name or (_DEFAULT_REGION if options.endpoint else None)

    def make(style: str) -> Any:
        config = import_module("botocore.config").Config(
            connect_timeout=_CONNECT_TIMEOUT_SECONDS,
            read_timeout=_READ_TIMEOUT_SECONDS,
            retries={"mode": "standard", "total_max_attempts": _ATTEMPTS},
            max_pool_connections=64,
            s3={"addressing_style": style},
            # The crc32c of each frame suffices. The checksums of botocore cost CPU, and some servers refuse them.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            signature_version=import_module("botocore").UNSIGNED if options.anonymous else None,
        )
        return session.client("s3", region_name=region, endpoint_url=options.endpoint, config=config)

    if options.path_style is not None:
        return make("path" if options.path_style else "virtual")
    if options.endpoint:
        return make("path")
    client = make("auto")
    if is_aws(client):
        return client
    # botocore found another endpoint in the environment or a profile.
    client.close()
    return make("path")


def is_aws(client: Any) -> bool:
    """Whether the server is AWS itself, not another one with its protocol."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith(AWS_DOMAINS)


class ThrottleCounter:
    """Counts throttling responses to boto3 in each thread, which sends a request with its retries. Only a hook sees
    those that botocore retries."""

    def __init__(self) -> None:
        self._local = threading.local()

    def register(self, client: Any) -> None:
        """Count the responses that `client` gets from now on; the client behaves as before. Idempotent."""
        events = getattr(getattr(client, "meta", None), "events", None)
        if events is not None:
            events.register(_NEEDS_RETRY, self._count, unique_id=_THROTTLE_HOOK)

    def take(self) -> int:
        """The number of throttling responses in this thread since its last call of this method."""
        count: int = getattr(self._local, "count", 0)
        self._local.count = 0
        return count

    def _count(self, response: Any = None, **_: Any) -> None:
        """Handle the event after a response. The result is `None`, so botocore decides about a retry."""
        if response is None:
            return
        http, parsed = response
        code = str(parsed.get("Error", {}).get("Code", ""))
        if is_throttling(http.status_code, code):
            self._local.count = getattr(self._local, "count", 0) + 1


class _CaughtRequest(Exception):
    def __init__(self, request: Any) -> None:
        self.request = request


def learn_route(client: Any, bucket: str) -> Route | None:
    """The route by which `client` reads from `bucket`; `None` if our transport cannot use it. No request is sent.
    Raises the errors that boto3 raises before that, such as missing credentials."""
    if bucket.endswith(_EXPRESS):
        return None
    this_thread = threading.get_ident()

    def catch(request: Any, **_: Any) -> None:
        if threading.get_ident() == this_thread:  # other threads may be reading through the same client
            raise _CaughtRequest(request)

    client.meta.events.register_first(_BEFORE_SEND, catch)
    try:
        client.get_object(Bucket=bucket, Key=_PROBE)
    except _CaughtRequest as caught:
        route = _route_of(caught.request.url, caught.request.headers, client.meta.config)
        domain = route.endpoint.host.removeprefix(f"{bucket.lower()}.") if route else ""
        return route and replace(route, domain=domain)
    finally:
        client.meta.events.unregister(_BEFORE_SEND, catch)
    return None


def _route_of(url: str, headers: Any, config: Any) -> Route | None:

    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname
    if scheme not in ("http", "https") or not host or parts.query or not parts.path.endswith(_PROBE):
        return None
    proxy = None
    if proxy_url := _proxy_url(url, scheme, config):
        proxy = parse_proxy(proxy_url)
        if proxy is None:
            return None
    endpoint = Endpoint(scheme, host, parts.port or DEFAULT_PORTS[scheme], proxy)
    path = parts.path.removesuffix(_PROBE)
    authorization = headers.get("Authorization")
    if authorization is None:
        return Route(endpoint, path, "", signed=False)
    scope = _SCOPE.match(authorization.decode() if isinstance(authorization, bytes) else authorization)
    return Route(endpoint, path, scope["region"], scope["service"]) if scope else None


def _proxy_url(url: str, scheme: str, config: Any) -> str | None:
    proxies = config.proxies
    if proxies is None:
        proxies = import_module("botocore.utils").get_environ_proxies(url)
    result = proxies.get(scheme)
    return str(result) if result else None


def find_handlers(client: Any = None) -> list[Any] | None:
    """Handlers that may respond instead of the network, as those of moto do; `None` if they cannot be determined. By
    default those that a new client would have; before the import of botocore there are none."""
    try:
        if client is not None:
            return list(client.meta.events._emitter._handlers.prefix_search(_BEFORE_SEND))
        module = sys.modules.get("botocore.handlers")
        return [item[1] for item in module.BUILTIN_HANDLERS if item[0].startswith("before-send")] if module else []
    except AttributeError:
        return None
