"""Parse HTTP/1.1 requests and format replies, for a server of any protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One complete request."""

    method: str
    path: str
    """Decoded; begins with a slash."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    body: bytes = field(default=b"", repr=False)
    connection: int = 0
    """The number of its connection, counted from 1."""
    number: int = 0
    """The number of the request over all connections, counted from 1."""


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One complete reply. `Content-Length` is the length of the body, unless `headers` contains it."""

    status: int
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    """A header with an empty value is not sent."""

    def head(self) -> bytes:
        headers = {"Content-Length": str(len(self.body)), "Server": "stand-in"} | dict(self.headers)
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in headers.items() if value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_head(file: BinaryIO) -> HttpRequest | None:
    """The head of the next request; `None` after the last one, and for a malformed first line."""
    first = file.readline(64 << 10).split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := file.readline(64 << 10).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    target = first[1].decode("latin-1")
    path, _, query = target.partition("?")
    return HttpRequest(
        first[0].decode("latin-1"), unquote(path), dict(parse_qsl(query, keep_blank_values=True)), headers
    )


def read_body(file: BinaryIO, headers: Mapping[str, str]) -> bytes:
    """The body that follows a head, without the chunk headers of HTTP and of AWS signatures."""
    if "chunked" in headers.get("transfer-encoding", ""):
        body = _join_chunks(file)
    else:
        body = file.read(int(headers.get("content-length", 0)))
    return _join_chunks(BytesIO(body)) if "aws-chunked" in headers.get("content-encoding", "") else body


def _join_chunks(file: BinaryIO) -> bytes:
    pieces = []
    while size := int(file.readline().partition(b";")[0] or b"0", 16):
        pieces.append(file.read(size))
        file.readline()
    while file.readline().strip():
        """Trailers."""
    return b"".join(pieces)
