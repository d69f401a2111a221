"""HTTP/1.1 from the server's side of a socket: requests come in, replies go out. No S3 here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from typing import BinaryIO
from urllib.parse import parse_qsl, unquote


@dataclass(frozen=True, slots=True)
class Asked:
    """One request, whole."""

    method: str
    path: str
    """Decoded, with the slash it begins with."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case."""
    body: bytes = field(default=b"", repr=False)
    connection: int = 0
    """Number of the connection, counted from 1."""
    number: int = 0
    """Of the request, over all connections, counted from 1."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer, whole. `Content-Length` is that of the body unless `headers` say otherwise."""

    status: int
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)
    """An empty value leaves a header out."""

    def head(self) -> bytes:
        headers = {"Content-Length": str(len(self.body)), "Server": "stand-in"} | dict(self.headers)
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in headers.items() if value)]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def read_head(file: BinaryIO) -> Asked | None:
    """The head of the next request; `None` at the end of the connection or where it makes no sense."""
    first = file.readline(64 << 10).split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := file.readline(64 << 10).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    target = first[1].decode("latin-1")
    path, _, query = target.partition("?")
    return Asked(first[0].decode("latin-1"), unquote(path), dict(parse_qsl(query, keep_blank_values=True)), headers)


def read_body(file: BinaryIO, headers: Mapping[str, str]) -> bytes:
    """The body that follows a head, without the chunks of HTTP, nor those that AWS signs one by one."""
    if "chunked" in headers.get("transfer-encoding", ""):
        body = _unchunked(file)
    else:
        body = file.read(int(headers.get("content-length", 0)))
    return _unchunked(BytesIO(body)) if "aws-chunked" in headers.get("content-encoding", "") else body


def _unchunked(file: BinaryIO) -> bytes:
    pieces = []
    while size := int(file.readline().partition(b";")[0] or b"0", 16):
        pieces.append(file.read(size))
        file.readline()
    while file.readline().strip():
        """Trailers."""
    return b"".join(pieces)
