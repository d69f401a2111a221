"""Find the proxy for a URL, by the rules of the environment."""

from __future__ import annotations

import os
import sys

from monocontext.stores.http.route import DEFAULT_PORTS, Proxy

_SYSTEM_HAS_ITS_OWN = os.name == "nt" or sys.platform == "darwin"


class UnknownProxy(Exception):
    """A proxy of a kind that our transport does not speak to, such as one over TLS."""


def find_proxy(url: str) -> Proxy | None:
    """The proxy towards `url`, or `None`. Raises `UnknownProxy`."""
    if not _SYSTEM_HAS_ITS_OWN and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.parse import urlsplit
    from urllib.request import getproxies, proxy_bypass  # 20 ms, where there may be a proxy

    parts = urlsplit(url)
    if proxy_bypass(parts.netloc):
        return None
    found = getproxies().get(parts.scheme)
    if not found:
        return None
    if (proxy := parse_proxy(found)) is None:
        raise UnknownProxy("the proxy is not plain HTTP")
    return proxy


def parse_proxy(url: str) -> Proxy | None:
    """The proxy at a URL; `None` for one that is not plain HTTP."""
    from base64 import b64encode
    from urllib.parse import unquote, urlsplit

    parts = urlsplit(url if "://" in url else f"http://{url.removeprefix('//')}")
    if parts.scheme != "http" or not parts.hostname:
        return None
    pair = None
    if parts.username is not None:
        secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        pair = f"Basic {b64encode(secret.encode()).decode()}"
    return Proxy(parts.hostname, parts.port or DEFAULT_PORTS["http"], pair)
