"""Where a bucket's objects are asked for, and by what way. Values only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, Protocol

from monocontext.transport.signing import Credentials

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
    """What a connection leads to: connections to equal endpoints are interchangeable."""

    scheme: Literal["http", "https"]
    host: str
    port: int
    proxy: Proxy | None = None

    def __str__(self) -> str:
        return f"{self.scheme}://{self.host_header}"

    @property
    def host_header(self) -> str:
        """As a request names it: without the port where that is the usual one."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == DEFAULT_PORTS[self.scheme] else f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Route:
    """How to ask for the objects of one bucket."""

    endpoint: Endpoint
    path: str
    """Before the key, percent-encoded; begins and ends with `/`."""
    region: str
    """That requests are signed for."""
    service: str = "s3"
    signed: bool = True


class Origin(Protocol):
    """Who knows routes and credentials. Asked for each request, so both are to be remembered."""

    def route(self) -> Route: ...

    def move(self, region: str) -> Route | None:
        """The bucket turned out to lie in `region`: the route there, from now on; `None` if it cannot be found."""
        ...

    def credentials(self) -> Credentials:
        """Credentials that hold now. Raises what the store translates when there are none."""
        ...

    def renew(self, refused: Credentials) -> None:
        """The server took these for expired: find newer ones."""
        ...
