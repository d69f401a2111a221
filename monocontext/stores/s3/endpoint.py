"""Learn from boto3 how it requests an object, and whether a handler intercepts its requests.

botocore has more rules for endpoints, styles and signatures than `native_route`. Where one of them applies, botocore
prepares and signs one request, which is caught before it is sent: once a process for each bucket.
"""

from __future__ import annotations

import re
import sys
import threading
from importlib import import_module
from typing import Any

from monocontext.records import replace
from monocontext.stores.http.route import DEFAULT_PORTS, Endpoint, Route
from monocontext.stores.s3.settings import parse_proxy

_EVENT = "before-send.s3.GetObject"
_PROBE = "monocontext-probe"
_EXPRESS = "--x-s3"  # buckets that are signed for with sessions of their own
_SCOPE = r"AWS4-HMAC-SHA256 Credential=.*/\d{8}/([^/]+)/([^/]+)/aws4_request,"


class _CaughtRequest(Exception):
    def __init__(self, request: Any) -> None:
        self.request = request


def learn_route(client: Any, bucket: str) -> Route | None:
    """The route by which `client` reads from `bucket`; `None` where our transport cannot follow it. Sends nothing.

    Raises what boto3 raises before it sends, such as missing credentials.
    """
    if bucket.endswith(_EXPRESS):
        return None
    this_thread = threading.get_ident()

    def catch(request: Any, **_: Any) -> None:
        if threading.get_ident() == this_thread:  # other threads may be reading through the same client
            raise _CaughtRequest(request)

    client.meta.events.register_first(_EVENT, catch)
    try:
        client.get_object(Bucket=bucket, Key=_PROBE)
    except _CaughtRequest as caught:
        route = _route_of(caught.request.url, caught.request.headers, client.meta.config)
        domain = route.endpoint.host.removeprefix(f"{bucket.lower()}.") if route else ""
        return route and replace(route, domain=domain)
    finally:
        client.meta.events.unregister(_EVENT, catch)
    return None


def _route_of(url: str, headers: Any, config: Any) -> Route | None:
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    scheme, host = parts.scheme, parts.hostname
    if scheme not in ("http", "https") or not host or parts.query or not parts.path.endswith(_PROBE):
        return None
    proxy = None
    if proxy_url := _proxy_url(url, scheme, config):
        proxy = parse_proxy(proxy_url)
        if proxy is None:
            return None
    endpoint = Endpoint("https" if scheme == "https" else "http", host, parts.port or DEFAULT_PORTS[scheme], proxy)
    path = parts.path.removesuffix(_PROBE)
    authorization = headers.get("Authorization")
    if authorization is None:
        return Route(endpoint, path, "", signed=False)
    scope = re.match(_SCOPE, authorization.decode() if isinstance(authorization, bytes) else authorization)
    return Route(endpoint, path, scope[1], scope[2]) if scope else None


def _proxy_url(url: str, scheme: str, config: Any) -> str | None:
    proxies = config.proxies
    if proxies is None:
        proxies = import_module("botocore.utils").get_environ_proxies(url)
    found = proxies.get(scheme)
    return str(found) if found else None


def find_handlers(client: Any = None) -> list[Any] | None:
    """Handlers that may respond in place of the network, as moto's does; `None` where botocore does not show them.

    Without a client: those that a client would begin with. Does not import botocore: it has no handler before that.
    """
    try:
        if client is not None:
            return list(client.meta.events._emitter._handlers.prefix_search(_EVENT))
        module = sys.modules.get("botocore.handlers")
        return [each[1] for each in module.BUILTIN_HANDLERS if each[0].startswith("before-send")] if module else []
    except AttributeError:
        return None
