"""Find the proxy for a URL and the certificates to trust, by the rules of the environment and of botocore."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from typing import TYPE_CHECKING

from monocontext.stores.http.route import DEFAULT_PORTS, Proxy

if TYPE_CHECKING:
    from ssl import SSLContext


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


def make_tls_context(ca_bundle: str | None) -> SSLContext:
    """A context that trusts the file or folder `ca_bundle`, shared by all of this process until the file changes."""
    path = ca_bundle or _bundled_path()
    found = os.stat(path)
    return _make(path, found.st_mtime_ns, found.st_size)


@lru_cache(8)
def _make(path: str, _modified: int, _size_bytes: int) -> SSLContext:
    import ssl  # 10 ms that plain HTTP need not pay

    return ssl.create_default_context(capath=path) if os.path.isdir(path) else ssl.create_default_context(cafile=path)


def _bundled_path() -> str:
    """The list that botocore uses: certifi's where that is installed, else its own. Does not import botocore."""
    from importlib.util import find_spec

    if find_spec("certifi") is not None:
        from certifi import where

        return str(where())
    botocore = find_spec("botocore")
    assert botocore is not None
    assert botocore.origin is not None
    return os.path.join(os.path.dirname(botocore.origin), "cacert.pem")
