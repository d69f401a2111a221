"""Encode request heads, parse response heads and decode chunked bodies of HTTP/1.1. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from monocontext.records import NamedTuple

MAX_HEAD_BYTES = 64 << 10
"""The largest head, ten times the limit of S3 servers: an endless head must not fill the memory."""
_MAX_LINE_BYTES = 4 << 10
_NO_BODY = (204, 304)


class BadReply(OSError):
    """The response is not valid HTTP/1.1. The connection cannot be used again, but a retry may help."""


class ResponseHead(NamedTuple):
    """The status and headers of a response, and the length of its body."""

    status: int
    headers: Mapping[str, str]
    """Values by name in lower case. The values of a repeated name are joined by a comma."""
    body_bytes: int | None
    """The length of the body; `None` if the head does not give it."""
    is_chunked: bool
    keeps_alive: bool
    """Whether another request may follow on this connection."""


def request_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request without a body. Raises `ValueError` for a header with a line break."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()], "\r\n"]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError(f"the head of a request for {target!r} contains a line break")
    return text.encode("latin-1")


def split_head(data: bytes) -> tuple[ResponseHead, bytes] | None:
    """The head at the start of `data`, and the bytes after it; `None` if the head is incomplete. Raises `BadReply`."""
    text, end, rest = data.partition(b"\r\n\r\n")
    if end:
        return _parse_head(text.decode("latin-1")), rest
    if len(data) > MAX_HEAD_BYTES:
        raise BadReply(f"the response headers are longer than {MAX_HEAD_BYTES:,} bytes")
    return None


def _parse_head(text: str) -> ResponseHead:
    first, *lines = text.split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise BadReply(f"expected HTTP/1.1 and a status, found {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, value = _parse_line(line)
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    is_chunked = headers.get("transfer-encoding", "").lower().endswith("chunked")
    connection = headers.get("connection", "").lower()
    keeps_alive = "close" not in connection if version == "HTTP/1.1" else "keep-alive" in connection
    return ResponseHead(int(code), headers, _body_bytes(int(code), headers, is_chunked), is_chunked, keeps_alive)


def _body_bytes(status: int, headers: Mapping[str, str], is_chunked: bool) -> int | None:
    if status in _NO_BODY:
        return 0
    value = headers.get("content-length")
    if value is None or is_chunked:
        return None
    # With two lengths, a proxy and a client could disagree on the end of a response, and so on the next response.
    length, *others = {part.strip() for part in value.split(",")}
    if others or not (length.isascii() and length.isdigit() and len(length) < 20):
        raise BadReply(f"expected one Content-Length, found {value[:80]!r}")
    return int(length)


@lru_cache(64)
def _parse_line(line: str) -> tuple[str, str]:
    """The name of a header in lower case, and its value. Cached, since responses of a server repeat most lines."""
    name, colon, value = line.partition(":")
    if not colon or not name or name != name.strip():
        raise BadReply(f"expected a header, found {line[:80]!r}")
    return name.lower(), value.strip()


class ChunkDecoder:
    """Decodes a chunked body, which may arrive in pieces of any size."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the last chunk and the trailers have been read."""
        self.surplus = b""
        """Bytes after the end of the body."""
        self._line = bytearray()
        self._left = 0
        self._expecting = "size"

    def feed(self, data: bytes) -> bytes:
        """Decode the next bytes; returns the bytes of the body in them. Raises `BadReply`."""
        result, offset = [], 0
        while offset < len(data) and not self.ended:
            if self._expecting == "data":
                piece = data[offset : offset + self._left]
                result.append(piece)
                offset += len(piece)
                self._left -= len(piece)
                self._expecting = "data" if self._left else "end of data"
                continue
            stop = data.find(b"\n", offset) + 1
            self._line += data[offset : stop or len(data)]
            offset = stop or len(data)
            if len(self._line) > _MAX_LINE_BYTES:
                raise BadReply(f"expected the {self._expecting} of a chunk, found over {_MAX_LINE_BYTES:,} bytes")
            if stop:
                self._read_line(bytes(self._line).rstrip(b"\r\n"))
                self._line.clear()
        self.surplus += data[offset:]
        return b"".join(result)

    def _read_line(self, line: bytes) -> None:
        if self._expecting == "size":
            digits = line.partition(b";")[0].strip()
            # int() also takes signs, underscores and spaces.
            if not 0 < len(digits) <= 15 or digits.strip(b"0123456789abcdefABCDEF"):
                raise BadReply(f"expected the size of a chunk, found {line[:40]!r}")
            self._left = int(digits, 16)
            self._expecting = "data" if self._left else "trailer"
        elif self._expecting == "end of data":
            if line:
                raise BadReply(f"expected the end of a chunk, found {line[:40]!r}")
            self._expecting = "size"
        else:
            self.ended = not line
