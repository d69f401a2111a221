"""Describe the route of requests to a bucket, and decide which redirects they may follow.

A signed request follows redirects within the domain of its endpoint only:

| endpoint | allowed target of a redirect |
|---|---|
| S3 of AWS | S3 of AWS in any region of the same partition, with or without a bucket in front |
| any other host | that host (without a bucket in front), and hosts below it |
| an address such as `10.0.0.1` | that address |

The port must be the same, too: a foreign server would receive the key id, a valid signature and the session token.
Unsigned requests follow redirects to any host. No request follows a redirect to another scheme.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from monocontext.records import dataclass, field, replace
from monocontext.stores.http.connection import DEFAULT_PORTS, Endpoint
from monocontext.stores.secrets_in_urls import without_secrets


@dataclass(frozen=True, slots=True)
class Credentials:
    """AWS credentials. The `repr` contains no secret."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """The session token of temporary credentials."""


@dataclass(frozen=True, slots=True)
class Route:
    """The endpoint, the path and the signature of requests for the objects of one bucket."""

    endpoint: Endpoint
    path: str
    """The path before the key, percent-encoded. It begins and ends with `/`."""
    region: str
    """The region in the signature."""
    service: str = "s3"
    signed: bool = True
    domain: str = ""
    """The host without a bucket in front; empty if no bucket is in front. A signed request may be redirected to this
    domain, and to hosts below it."""


class Origin(Protocol):
    """The route to a bucket and the signature of its requests. Each request uses both, so implementations cache."""

    route: Route

    def move_to_region(self, region: str) -> Route | None:
        """Send later requests to another region. Returns the new route; `None` if the bucket is out of our reach."""
        ...

    def sign(
        self, route: Route, host: str, target: str, headers: Mapping[str, str], now: float
    ) -> tuple[dict[str, str], Credentials]:
        """All headers of a signed GET, and the credentials that signed it; `now` is in seconds since 1970. Without
        credentials it raises an error that the store translates."""
        ...

    def renew(self, refused: Credentials) -> None:
        """Look for newer credentials after the server refused these as expired."""
        ...


# The patterns are compiled by the first redirect: most processes see none.
_HOST = r"(?=.{1,253}$)[a-z0-9_-]+(\.[a-z0-9_-]+)*|[0-9a-f:.]+"  # `a.example`, `10.0.0.1` or `::1`
_REGION = r"[a-z]{2,4}(?:-[a-z]+)+-\d+"  # `eu-west-1` or `us-gov-east-1`
_AWS_S3 = (
    rf"(?:[a-z0-9._-]+\.)?s3(?:-(?!website)[a-z0-9-]+)?(?:\.dualstack)?(?:\.{_REGION})?\.(amazonaws\.com(?:\.cn)?)"
)
"""Hosts of S3 only, such as `bucket.s3.eu-west-1.amazonaws.com` or `s3.amazonaws.com`, but not `ec2-1.amazonaws.com`:
customers' machines and load balancers also have host names below amazonaws.com."""
_IP_ADDRESS = r"[0-9.]+|.*:.*"  # `10.0.0.1` or `::1`; any name of digits and dots counts as one


class ForeignRedirect(Exception):
    """A redirect that must not be followed. The message names both hosts."""


def redirected(route: Route, target: str, location: str) -> tuple[Route, str]:
    """The route, and the path and query, after a redirect of `target` to `location`. Raises `ForeignRedirect`."""
    origin, display = route.endpoint, without_secrets(location)[:200]  # a part of a login would not be recognised
    try:
        url = urlsplit(urljoin(f"{origin}{target}", location))
        host, port = (url.hostname or "").lower().removesuffix("."), url.port
    except ValueError:
        raise ForeignRedirect(f"{origin} redirects to {display!r}, which is not a URL") from None
    if not re.fullmatch(_HOST, host) or url.scheme not in DEFAULT_PORTS:
        raise ForeignRedirect(f"{origin} redirects to {display!r}, which is not the URL of a server")
    endpoint = origin._replace(scheme=url.scheme, host=host, port=DEFAULT_PORTS[url.scheme] if port is None else port)
    is_own = endpoint.port == origin.port and is_own_host(host, origin=origin.host, domain=route.domain or origin.host)
    if endpoint.scheme != origin.scheme or (route.signed and not is_own):
        raise ForeignRedirect(
            f"{origin} redirects to {endpoint}: no credentials are sent there; if both servers are yours, "
            f"give endpoint='{endpoint}'"
        )
    new_target = f"{url.path}?{url.query}" if url.query else url.path or "/"
    return replace(route, endpoint=endpoint), new_target


def is_own_host(host: str, *, origin: str, domain: str) -> bool:
    """Whether credentials for `origin` may be sent to `host`: both are S3 of AWS, or `host` is `domain` or below it."""
    host, origin, domain = (name.lower().removesuffix(".") for name in (host, origin, domain))
    origin_in_aws = re.fullmatch(_AWS_S3, origin)
    if origin_in_aws:
        host_in_aws = re.fullmatch(_AWS_S3, host)
        return host_in_aws is not None and host_in_aws[1] == origin_in_aws[1]
    return host in (origin, domain) or (not re.fullmatch(_IP_ADDRESS, domain) and host.endswith(f".{domain}"))
