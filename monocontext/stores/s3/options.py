"""The options of a caller for the requests to a bucket, checked."""

from __future__ import annotations

from urllib.parse import urlsplit

from monocontext.errors import InvalidUrl
from monocontext.records import dataclass
from monocontext.stores.address import without_secrets

TRANSPORTS = ("own", "boto3")


@dataclass(frozen=True, slots=True)
class S3Options:
    """The options of `open_store` for `s3://`. No secret is part of them: credentials are found as boto3 finds them."""

    endpoint: str | None = None
    """The URL of the server; by default the configured one, else AWS."""
    region: str | None = None
    """By default the configured region, or `us-east-1` if an endpoint is given and no region is configured."""
    profile: str | None = None
    """A profile of the AWS configuration."""
    path_style: bool | None = None
    """Whether the bucket is in the path instead of the host; by default for all servers but AWS."""
    anonymous: bool = False
    """Whether to send unsigned requests."""
    transport: str = "own"
    """The client for GETs: `own`, the HTTP client of this package, or `boto3`, which sends all other requests."""
    keep_alive: bool = True
    """Whether connections of that client stay open for later GETs, for up to 20 s."""

    def __post_init__(self) -> None:
        if self.transport not in TRANSPORTS:
            raise ValueError(f"transport must be one of {', '.join(TRANSPORTS)}, not {self.transport!r}")
        if self.endpoint is not None and not _is_url(self.endpoint):
            display = without_secrets(self.endpoint)
            raise InvalidUrl(f"endpoint must be a URL such as http://127.0.0.1:8333, not {display!r}")
        if self.region is not None and not (self.region.isascii() and self.region.isprintable()):
            raise InvalidUrl(f"region must be a name such as eu-west-1, not {self.region!r}")


def _is_url(endpoint: str) -> bool:
    """Whether an endpoint is an HTTP URL. One with a plain host name is recognised without importing `urllib.parse`."""
    scheme, _, location = endpoint.partition("://")
    host, _, port = location.partition(":")
    is_name = location.isascii() and host.replace(".", "").replace("-", "").isalnum()
    if is_name and scheme in ("http", "https") and (not port or (port.isdigit() and 0 < int(port) < 65536)):
        return True

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
