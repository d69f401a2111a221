"""HTTP/1.1 as text: heads of requests and replies, and chunked bodies. No I/O; bytes may come one by one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 << 10
"""No S3 server sends a tenth of this; a reply that never ends must not fill the memory."""
_MAX_LINE_BYTES = 4 << 10
_NO_BODY = (204, 304)


class BadReply(OSError):
    """What came is not HTTP/1.1: the connection is of no further use, another one may be."""


@dataclass(frozen=True, slots=True)
class Head:
    """What a server says before the body."""

    status: int
    headers: Mapping[str, str]
    """By name in lower case; of a name given twice, both values with a comma between them."""
    version: str = "HTTP/1.1"

    @property
    def keeps_alive(self) -> bool:
        """Whether another request may follow on this connection."""
        said = self.headers.get("connection", "").lower()
        return "close" not in said if self.version == "HTTP/1.1" else "keep-alive" in said

    @property
    def is_chunked(self) -> bool:
        return self.headers.get("transfer-encoding", "").lower().endswith("chunked")

    @property
    def body_bytes(self) -> int | None:
        """Length of the body; `None` when only its end will tell."""
        if self.status in _NO_BODY:
            return 0
        said = self.headers.get("content-length")
        if said is None or self.is_chunked:
            return None
        # Two servers that read two lengths out of one reply are how replies get mixed up.
        values = {each.strip() for each in said.split(",")}
        length = values.pop()
        if values or not (length.isascii() and length.isdigit()):
            raise BadReply(f"expected one Content-Length, found {said!r}")
        return int(length)


def request_head(method: str, target: str, headers: Mapping[str, str]) -> bytes:
    """The bytes of a request without a body. Raises `ValueError` when a value would end its own line."""
    lines = [f"{method} {target} HTTP/1.1", *[f"{name}: {value}" for name, value in headers.items()], "\r\n"]
    text = "\r\n".join(lines)
    if text.count("\n") != len(lines) or text.count("\r") != len(lines):
        raise ValueError(f"a line break in the head of a request for {target!r}")
    return text.encode("latin-1")


def head_end(data: bytes | bytearray) -> int:
    """Where the head that begins `data` ends, or -1 when more must come. Raises `BadReply` when it grows absurd."""
    end = data.find(b"\r\n\r\n")
    if end < 0 and len(data) > MAX_HEAD_BYTES:
        raise BadReply(f"expected a head of at most {MAX_HEAD_BYTES:,} bytes, found no end of it")
    return end + 4 if end >= 0 else -1


def parse_head(data: bytes | bytearray) -> Head:
    """Read a whole head, blank line and all. Raises `BadReply`."""
    first, *lines = data[:-4].decode("latin-1").split("\r\n")
    version, _, rest = first.partition(" ")
    code = rest.partition(" ")[0]
    if version not in ("HTTP/1.1", "HTTP/1.0") or not (len(code) == 3 and code.isascii() and code.isdigit()):
        raise BadReply(f"expected HTTP/1.1 and a status, found {first[:80]!r}")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise BadReply(f"expected a header, found {line[:80]!r}")
        name, value = name.lower(), value.strip()
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return Head(int(code), headers, version)


class Chunks:
    """Takes a chunked body apart, however it is cut on the way."""

    def __init__(self) -> None:
        self.ended = False
        """Whether the last chunk and the trailers have been read."""
        self.surplus = b""
        """What came after the end."""
        self._line = bytearray()
        self._left = 0
        self._expecting = "size"

    def feed(self, data: bytes) -> bytes:
        """The bytes of the body among `data`. Raises `BadReply`."""
        found, at = [], 0
        while at < len(data) and not self.ended:
            if self._expecting == "data":
                piece = data[at : at + self._left]
                found.append(piece)
                at += len(piece)
                self._left -= len(piece)
                self._expecting = "data" if self._left else "end of data"
                continue
            stop = data.find(b"\n", at) + 1
            self._line += data[at : stop or len(data)]
            at = stop or len(data)
            if len(self._line) > _MAX_LINE_BYTES:
                raise BadReply(f"expected the {self._expecting} of a chunk, found no end of it")
            if stop:
                self._take(bytes(self._line).rstrip(b"\r\n"))
                self._line.clear()
        self.surplus += data[at:]
        return b"".join(found)

    def _take(self, line: bytes) -> None:
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
