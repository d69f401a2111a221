"""Options that several commands share."""

from __future__ import annotations

import re
from typing import Annotated, Any

import typer

from monocontext.errors import InvalidUrl
from monocontext.stores import open_store

Endpoint = Annotated[str | None, typer.Option(help="S3 server other than AWS; else AWS_ENDPOINT_URL.")]
Region = Annotated[str | None, typer.Option(help="S3 region, as in the AWS configuration.")]
Profile = Annotated[str | None, typer.Option(help="Profile of the AWS configuration.")]
Anonymous = Annotated[bool, typer.Option("--anonymous", help="Sign no request.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Allow = Annotated[
    list[str] | None, typer.Option(help="A place outside the context that it may read from; may be repeated.")
]


def s3_options(endpoint: str | None, region: str | None, profile: str | None, anonymous: bool) -> dict[str, Any]:
    """The options of an S3 store that were given."""
    given = {"endpoint": endpoint, "region": region, "profile": profile, "anonymous": anonymous or None}
    return {name: value for name, value in given.items() if value is not None}


def check_place(url: str, options: dict[str, Any]) -> None:
    """Refuse what cannot be meant on a command line before anything is read."""
    if url.startswith("memory:"):
        raise InvalidUrl(f"{url} lives in the memory of one process, a command cannot reach it: use a directory or S3")
    open_store(url, **(options if url.startswith("s3:") else {})).close()


def options_of(
    url: str, endpoint: str | None, region: str | None, profile: str | None, anonymous: bool
) -> dict[str, Any]:
    """The options of the store at a URL, which is a place that a command can reach."""
    options = s3_options(endpoint, region, profile, anonymous) if url.startswith("s3:") else {}
    check_place(url, options)
    return options


_SIZE = re.compile(r"(\d+)\s*([KMG]?)(?:i?B)?", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """`262144`, `256K`, `16MiB`: powers of 1024."""
    found = _SIZE.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"not a size: {text!r}; write 262144, 256K or 16M")
    return int(found[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[found[2].upper()]


_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*([smhdw])", re.IGNORECASE)


def parse_seconds(text: str) -> float:
    """`90m`, `36h`, `7d`: a number and its unit."""
    found = _DURATION.fullmatch(text.strip())
    if not found:
        raise typer.BadParameter(f"not a duration: {text!r}; write 90m, 36h or 7d")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}[found[2].lower()]


def parse_range(text: str) -> slice:
    """`a:b` with either end left out, or a single number."""
    start, colon, stop = text.partition(":")
    try:
        if not colon:
            return slice(int(start), int(start) + 1 or None)
        return slice(int(start) if start else None, int(stop) if stop else None)
    except ValueError:
        raise typer.BadParameter(f"not a range: {text!r}; write START:STOP") from None
