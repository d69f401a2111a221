"""How boto3 would ask for an object, found out from boto3 itself, and whether somebody listens in on it.

The rules for endpoints, regions, styles, signatures and proxies are botocore's, and many. So one request is prepared by
it, signed and all, and caught before it is sent: 2 ms, once for each bucket.
"""

from __future__ import annotations

import re
import threading
from base64 import b64encode
from importlib import import_module
from typing import Any
from urllib.parse import unquote, urlsplit

from monocontext.transport import DEFAULT_PORTS, Endpoint, Proxy, Route

_EVENT = "before-send.s3.GetObject"
_PROBE = "monocontext-probe"
_EXPRESS = "--x-s3"  # buckets that are signed for with sessions of their own
_SCOPE = re.compile(r"AWS4-HMAC-SHA256 Credential=.*/\d{8}/([^/]+)/([^/]+)/aws4_request,")


class _Caught(Exception):
    def __init__(self, request: Any) -> None:
        self.request = request


def learn_route(client: Any, bucket: str) -> Route | None:
    """Where and how `client` reads from `bucket`; `None` where it does what our transport does not. Sends nothing.

    Raises what boto3 raises before it sends, such as the want of credentials.
    """
    if bucket.endswith(_EXPRESS):
        return None
    asking = threading.get_ident()

    def catch(request: Any, **_: Any) -> None:
        if threading.get_ident() == asking:  # others may be reading through the same client
            raise _Caught(request)

    client.meta.events.register_first(_EVENT, catch)
    try:
        client.get_object(Bucket=bucket, Key=_PROBE)
    except _Caught as caught:
        return _route_of(caught.request.url, caught.request.headers, client.meta.config)
    finally:
        client.meta.events.unregister(_EVENT, catch)
    return None


def _route_of(url: str, headers: Any, config: Any) -> Route | None:
    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname
    if scheme not in ("http", "https") or not host or parts.query or not parts.path.endswith(_PROBE):
        return None
    proxy = None
    if proxy_url := _proxy_url(url, scheme, config):
        proxy = _parse_proxy(proxy_url)
        if proxy is None:
            return None
    endpoint = Endpoint("https" if scheme == "https" else "http", host, parts.port or DEFAULT_PORTS[scheme], proxy)
    path = parts.path.removesuffix(_PROBE)
    said = headers.get("Authorization")
    if said is None:
        return Route(endpoint, path, "", signed=False)
    scope = _SCOPE.match(said.decode() if isinstance(said, bytes) else said)
    return Route(endpoint, path, scope[1], scope[2]) if scope else None


def _proxy_url(url: str, scheme: str, config: Any) -> str | None:
    proxies = config.proxies
    if proxies is None:
        proxies = import_module("botocore.utils").get_environ_proxies(url)
    found = proxies.get(scheme)
    return str(found) if found else None


def _parse_proxy(url: str) -> Proxy | None:
    parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
    if parts.scheme != "http" or not parts.hostname:
        return None
    pair = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        pair = f"Basic {b64encode(secret.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or DEFAULT_PORTS["http"], pair)


def listeners(client: Any) -> list[Any] | None:
    """Handlers that may answer in place of the network, as moto's does; `None` when botocore does not let us see."""
    try:
        return list(client.meta.events._emitter._handlers.prefix_search(_EVENT))
    except AttributeError:
        return None


def is_overheard(found: list[Any] | None) -> bool:
    """Whether reads must go through boto3 now. moto registers its handler when imported; `mock_aws` wakes it up."""
    return found is None or any(getattr(each, "enabled", True) for each in found)


def authorities(client: Any) -> str:
    """Path of the certificates that the client trusts: `AWS_CA_BUNDLE`, `ca_bundle` of the profile, or botocore's."""
    # Not public; what is missing leaves botocore's own list, which trusts less.
    verify = getattr(getattr(getattr(client, "_endpoint", None), "http_session", None), "_verify", True)
    return str(import_module("botocore.httpsession").get_cert_path(verify or True))
