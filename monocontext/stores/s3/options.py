"""The options by which a caller reaches a bucket. Values only."""

from __future__ import annotations

from monocontext.errors import InvalidUrl
from monocontext.records import dataclass

TRANSPORTS = ("own", "boto3")


@dataclass(frozen=True, slots=True)
class S3Options:
    """How to reach a bucket. Holds no secret: keys are looked for where boto3 looks for them."""

    endpoint: str | None = None
    """URL of the server; by default the configured one or AWS."""
    region: str | None = None
    """By default the configured one; `us-east-1` where an endpoint is given and no region configured."""
    profile: str | None = None
    """Profile of the AWS configuration."""
    path_style: bool | None = None
    """The bucket in the path instead of the host; by default for every server but AWS."""
    anonymous: bool = False
    """Sign nothing."""
    transport: str = "own"
    """What sends GETs: `own`, our transport, or `boto3`, which sends all other requests in either case."""
    keep_alive: bool = True
    """Whether connections of our own transport stay open up to 20 s for the next GET; else none is open between two
    calls."""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise ValueError(f"transport is one of {', '.join(TRANSPORTS)}, not {self.transport!r}")
        if self.endpoint is not None and not _is_url(self.endpoint):
            raise InvalidUrl(f"not an endpoint: {self.endpoint!r}; an endpoint is a URL such as http://127.0.0.1:8333")
        if self.region is not None and not (self.region.isascii() and self.region.isprintable()):
            raise InvalidUrl(f"not a region: {self.region!r}; a region is a name such as eu-west-1")


def _is_url(endpoint: str) -> bool:
    scheme, _, place = endpoint.partition("://")
    host, _, port = place.partition(":")
    is_name = place.isascii() and host.replace(".", "").replace("-", "").isalnum()
    if is_name and scheme in ("http", "https") and (not port or (port.isdigit() and 0 < int(port) < 65536)):
        return True
    from urllib.parse import urlsplit  # 2 ms to import, most of it IP addresses

    try:
        parts = urlsplit(endpoint)
        return (
            parts.scheme in ("http", "https")
            and bool(parts.hostname)
            and parts.port != 0
            and endpoint.split() == [endpoint]
        )
    except ValueError:  # brackets without an address, or an invalid port
        return False
