"""The route to a bucket: endpoint, proxy, path, region and service. Values only."""

from __future__ import annotations

from typing import Literal, Protocol

from monocontext.records import dataclass, field
from monocontext.stores.http.signing import Credentials

DEFAULT_PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Proxy:
    """An HTTP proxy; TLS passes through it by CONNECT."""

    host: str
    port: int
    authorization: str | None = field(default=None, repr=False)
    """Value of `Proxy-Authorization`."""

    def __str__(self) -> str:
        return f"the proxy {self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The target of a connection: connections to equal endpoints are interchangeable."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    proxy: Proxy | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}"

    @property
    def host_header(self) -> str:
        """Value of the `Host` header: without the port where that is the default."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """How to request the objects of one bucket."""

    endpoint: Endpoint
    path: str
    """Path before the key, percent-encoded; begins and ends with `/`."""
    region: str
    """Region that requests are signed for."""
    service: str = "s3"
    signed: bool = True
    domain: str = ""
    """The host without a bucket in front: a signed request follows redirects to it and below it. Empty: the host."""


class Origin(Protocol):
    """Gives the route to a bucket, and credentials. Called for each request, so an implementation caches both."""

    def route(self) -> Route: ...

    def move(self, region: str) -> Route | None:
        """Change to the region that the bucket lies in, and return the route there; `None` where there is none."""
        ...

    def credentials(self) -> Credentials:
        """Valid credentials. Raises an error that the store translates where there are none."""
        ...

    def renew(self, refused: Credentials) -> None:
        """Find newer credentials: the server called these expired."""
        ...
