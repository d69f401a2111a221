"""Decide whether a signed request may follow a redirect: only within the endpoint's own domain. Pure.

| endpoint | a redirect may lead to |
|---|---|
| S3 of AWS | S3 of AWS in any region of the same partition, with or without a bucket in front |
| any other host | that host, and hosts below it; not counting a bucket in front of it |
| an address such as `10.0.0.1` | that address |

The port stays too: whoever answers at another place would get the key id, a valid signature and the session token.
Requests that are not signed follow anywhere, but never to another scheme.
"""

from __future__ import annotations

import re
from typing import Literal

from monocontext.records import replace
from monocontext.stores.http.route import DEFAULT_PORTS, Route

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]+")
_REGION = r"[a-z]{2,4}(?:-[a-z]+)+-\d+"
_AWS_S3 = re.compile(
    rf"(?:[a-z0-9._-]+\.)?s3(?:-(?!website)[a-z0-9-]+)?(?:\.dualstack)?(?:\.{_REGION})?\.(amazonaws\.com(?:\.cn)?)"
)
"""Hosts of S3 alone: below amazonaws.com lie the hosts of all customers' machines and balancers too."""
_ADDRESS = re.compile(r"[0-9.]+|.*:.*")


class ForeignRedirect(Exception):
    """A redirect that is not followed; the message names both places."""


def redirected(route: Route, target: str, location: str) -> tuple[Route, str]:
    """The route and target that `location` leads to, from a request for `target`. Raises `ForeignRedirect`."""
    from urllib.parse import urljoin, urlsplit  # 2 ms, after a failure

    here = route.endpoint
    try:
        url = urlsplit(urljoin(f"{here}{target}", location))
        host, port = (url.hostname or "").lower().removesuffix("."), url.port
    except ValueError:
        raise ForeignRedirect(f"{here} leads to {location[:200]!r}, which is no URL") from None
    if not _HOST.fullmatch(host) or url.scheme not in DEFAULT_PORTS:
        raise ForeignRedirect(f"{here} leads to {location[:200]!r}, which is no URL of a server")
    scheme: Literal["http", "https"] = "https" if url.scheme == "https" else "http"
    there = replace(here, scheme=scheme, host=host, port=DEFAULT_PORTS[scheme] if port is None else port)
    is_own = there.port == here.port and is_own_host(host, here.host, route.domain or here.host)
    if there.scheme != here.scheme or (route.signed and not is_own):
        raise ForeignRedirect(
            f"{here} leads to {there}: no credentials are sent there; if both are yours, give endpoint='{there}'"
        )
    return replace(route, endpoint=there), f"{url.path}?{url.query}" if url.query else url.path or "/"


def is_aws_host(url: str) -> bool:
    """Whether the URL of an endpoint, or none, means S3 of AWS by TLS."""
    return not url or bool(re.fullmatch(rf"https://{_AWS_S3.pattern}(:443)?/?", url))


def is_own_host(host: str, here: str, domain: str) -> bool:
    """Whether credentials for `here` may go to `host`: the same service, or at or below the same `domain`."""
    host, here, domain = (name.lower().removesuffix(".") for name in (host, here, domain))
    own = _AWS_S3.fullmatch(here)
    if own:
        other = _AWS_S3.fullmatch(host)
        return other is not None and other[1] == own[1]
    return host in (here, domain) or (not _ADDRESS.fullmatch(domain) and host.endswith(f".{domain}"))
