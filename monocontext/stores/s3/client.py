"""Make clients of boto3, and learn from botocore the route and the keys for reads from a bucket.

botocore has more rules for endpoints, styles and signatures than `native_route`. If one of these rules applies,
botocore prepares and signs a request, and a hook catches it before it is sent: once for each bucket and process.
"""

from __future__ import annotations

import re
import threading
from contextlib import closing
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from monocontext.records import replace
from monocontext.stores import log
from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint
from monocontext.stores.http.route import Route
from monocontext.stores.s3.identity import BotocoreIdentity, RequestPlan, load_botocore
from monocontext.stores.s3.routes import AWS_DOMAINS, DEFAULT_REGION, parse_proxy
from monocontext.stores.s3.settings import S3Options

_CONNECT_TIMEOUT_SECONDS = 5
READ_TIMEOUT_SECONDS = 10
S3_ATTEMPTS = 4  # the most attempts of one request
BEFORE_SEND = "before-send.s3.GetObject"
_PROBE = "monocontext-probe"  # the key of the request that botocore prepares
_EXPRESS = "--x-s3"  # the ending of the names of directory buckets, whose requests need a session token of their own
_SCOPE = r"AWS4-HMAC-SHA256 Credential=.*/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/aws4_request,"
"""The start of an `Authorization` header. Other signatures, such as SigV4A (`AWS4-ECDSA-P256-SHA256`), do not match."""


def learn_plan(options: S3Options, bucket: str, reason: str) -> RequestPlan | None:
    """Get the plan for a bucket from botocore, and log the reason; `None` if our transport cannot reach the bucket. No
    request is sent. The first call in a process takes 0.3 s, later ones take 20 ms."""
    log.note(log.INFO, "botocore prepares the reads from %s: %s", bucket, reason)
    with closing(new_client(options)) as client:
        route = learn_route(client, bucket)
        # Private, but the only access to the credentials of a client, which botocore renews before they expire.
        identity = BotocoreIdentity(lambda: client._request_signer._credentials, "botocore")
        return None if route is None else RequestPlan(route, identity, reason)


@cache
def _shared_data_loader() -> Any:
    """The loader of the files from which botocore makes a client, shared so that they are read once."""
    return load_botocore().session.get_session().get_component("data_loader")


def _new_session(profile: str | None) -> Any:
    """A new session of boto3: a shared one would give a new client the credentials that the server refused."""
    from boto3.session import Session  # most reads need neither boto3 nor botocore

    inner, loader = load_botocore().session.get_session(), _shared_data_loader()
    inner.register_component("data_loader", loader)
    session = Session(profile_name=profile, botocore_session=inner)
    loader.search_paths[:] = dict.fromkeys(loader.search_paths)  # each session of boto3 appends its own folder
    return session


def new_client(options: S3Options) -> Any:
    """A new boto3 client. By default, URLs name the bucket in the host for AWS, and in the path for other servers."""
    session = _new_session(options.profile)
    if options.path_style is not None:
        return _client_with_style(session, options, "path" if options.path_style else "virtual")
    if options.endpoint:
        return _client_with_style(session, options, "path")
    client = _client_with_style(session, options, "auto")
    if is_aws(client):
        return client
    # botocore found another endpoint in the environment or a profile.
    client.close()
    return _client_with_style(session, options, "path")


def _client_with_style(session: Any, options: S3Options, addressing_style: str) -> Any:
    botocore = load_botocore()
    config = botocore.config.Config(
        connect_timeout=_CONNECT_TIMEOUT_SECONDS,
        read_timeout=READ_TIMEOUT_SECONDS,
        retries={"mode": "standard", "total_max_attempts": S3_ATTEMPTS},
        max_pool_connections=64,
        s3={"addressing_style": addressing_style},
        # The crc32c of each frame suffices. The checksums of botocore cost CPU, and some servers refuse them.
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        signature_version=botocore.UNSIGNED if options.anonymous else None,
    )
    region = options.region or session.region_name or (DEFAULT_REGION if options.endpoint else None)
    return session.client("s3", region_name=region, endpoint_url=options.endpoint, config=config)


def is_aws(client: Any) -> bool:
    """Whether the server is AWS, not another server that speaks the S3 protocol."""
    host = urlsplit(client.meta.endpoint_url).hostname or ""
    return host.endswith(AWS_DOMAINS)


class _CaughtRequest(Exception):
    def __init__(self, request: Any) -> None:
        self.request = request


def learn_route(client: Any, bucket: str) -> Route | None:
    """The route by which `client` reads from `bucket`; `None` if our transport cannot use it. No request is sent.
    Raises the errors that boto3 raises before it sends one, such as that for missing credentials."""
    if bucket.endswith(_EXPRESS):
        return None
    this_thread = threading.get_ident()

    def catch(request: Any, **_: Any) -> None:
        if threading.get_ident() == this_thread:  # other threads may be reading through the same client
            raise _CaughtRequest(request)

    client.meta.events.register_first(BEFORE_SEND, catch)
    try:
        client.get_object(Bucket=bucket, Key=_PROBE)
    except _CaughtRequest as caught:
        route = _route_of(caught.request.url, caught.request.headers, client.meta.config)
        domain = route.endpoint.host.removeprefix(f"{bucket.lower()}.") if route else ""
        return route and replace(route, domain=domain)
    finally:
        client.meta.events.unregister(BEFORE_SEND, catch)
    return None


def _route_of(url: str, headers: Any, config: Any) -> Route | None:
    """The route of a prepared request; `None` if our transport cannot use it."""
    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname
    if scheme not in ("http", "https") or not host or parts.query or not parts.path.endswith(_PROBE):
        return None
    proxies = load_botocore().utils.get_environ_proxies(url) if config.proxies is None else config.proxies
    proxy_url = proxies.get(scheme)
    proxy = parse_proxy(str(proxy_url), f"{scheme}_proxy") if proxy_url else None
    if proxy_url and proxy is None:
        return None
    endpoint = Endpoint(scheme, host, parts.port or DEFAULT_PORTS[scheme], proxy)
    path = parts.path.removesuffix(_PROBE)
    authorization = headers.get("Authorization")
    if authorization is None:
        return Route(endpoint, path, "", signed=False)
    scope = re.match(_SCOPE, authorization.decode() if isinstance(authorization, bytes) else authorization)
    return Route(endpoint, path, scope["region"], scope["service"]) if scope else None
