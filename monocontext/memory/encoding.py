"""Encode an entry as the bytes of an object: a header of one line of JSON, then the value in UTF-8.

    monocontext-memory 1 00000138
    {"key":"milestone","ttl":3600,"token":"5f0c...","frames":[[15,15,0,3715884470,9]]}
    Step 1 complete

The number is the length of both lines. The token is new in each write, so that each version has its own ETag on S3,
where an ETag is a hash of the content. Without it, a value that is put again would have the ETag of an earlier version,
and a purge could remove it. A writer whose answer was lost also recognises its own write by the token.

Frames are those of a context (`index.FrameRecord`), so that values are joined into a text without being read.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import google_crc32c

from monocontext.errors import DamagedData, InvalidEntry
from monocontext.format.codec import raw_frames
from monocontext.format.index import FrameRecord

FIRST_READ_BYTES = 2048  # the first read of an entry, to get its header
MAX_TTL_SECONDS = 315_360_000  # 3,650 days: a longer lifetime is a mistake, and some clocks cannot count that far
MAX_METADATA_BYTES = 2048  # the longest metadata of an entry, as JSON
_MOST_FRAMELESS_HEADER_BYTES = 32 << 10  # a key takes up to 12 KB, metadata 2; each frame of 256 KiB adds 40 bytes
_MAGIC = b"monocontext-memory 1 "
_FIRST_BYTES = len(_MAGIC) + 9  # the length of the first line


@dataclass(frozen=True, slots=True)
class EntryHeader:
    """The part of an entry's object before its value."""

    key: str
    ttl_seconds: float | None
    """The lifetime of the entry from its write on; None for no end."""
    frames: tuple[FrameRecord, ...]
    """The value in frames of at most 256 KiB; no frame for an empty value."""
    header_bytes: int
    """The offset of the value in the object."""
    metadata: Mapping[str, str] = field(default_factory=dict)
    """As given to `Memory.put`."""

    @property
    def value_bytes(self) -> int:
        return sum(frame.bytes for frame in self.frames)

    def value(self, data: bytes, name: str) -> str:
        """The value in an object's bytes, every frame checked. Raises `DamagedData`."""
        body = memoryview(data)[self.header_bytes :]
        if len(body) != self.value_bytes:
            raise DamagedData(f"{name}: expected a value of {self.value_bytes:,} bytes, found {len(body):,}")
        start = 0
        for frame in self.frames:
            computed = google_crc32c.value(bytes(body[start : start + frame.bytes]))
            if computed != frame.crc32c:
                raise DamagedData(f"{name}: crc32c differs: expected {frame.crc32c:08x}, found {computed:08x}")
            start += frame.bytes
        return str(body, "utf-8")


def encode_entry(
    key: str, value: str, ttl_seconds: float | None = None, metadata: Mapping[str, str] | None = None
) -> tuple[EntryHeader, bytes]:
    """The header and all bytes of a new object. Raises `InvalidEntry` for a value that cannot be stored."""
    encoded = _encode_utf8(value)
    frames = raw_frames(encoded)
    pairs = check_metadata(metadata)
    rows = [list(frame[1:]) for frame in frames]  # without `stored_bytes`: frames are not compressed, so it is `bytes`
    fields = {"key": key, "ttl": ttl_seconds, "token": secrets.token_hex(16), "frames": rows}
    line = json.dumps({**fields, "metadata": pairs} if pairs else fields, separators=(",", ":")).encode() + b"\n"
    header_bytes = _FIRST_BYTES + len(line)
    if header_bytes > 99_999_999:
        raise InvalidEntry(f"a value of {len(encoded):,} bytes is too large for one entry: publish it as a context")
    header = EntryHeader(key, ttl_seconds, frames, header_bytes, pairs)
    return header, b"".join((_MAGIC, b"%08d\n" % header_bytes, line, encoded))


def decode_header(data: bytes, name: str, object_bytes: int) -> EntryHeader | int:
    """The header in the first bytes of an object, or the length of the header if more bytes are needed.

    Raises `DamagedData`, also for a header longer than an object of that size can have.
    """
    if not data.startswith(_MAGIC):
        raise DamagedData(f"{name} is not an entry of a memory: expected {_MAGIC!r}, found {data[:21]!r}")
    try:
        header_bytes = int(data[len(_MAGIC) : _FIRST_BYTES])
        most = _MOST_FRAMELESS_HEADER_BYTES + object_bytes // 1024
        if header_bytes > most:
            raise ValueError(f"it has {header_bytes:,} bytes, and an object of {object_bytes:,} bytes at most {most:,}")
        if len(data) < header_bytes:
            return header_bytes
        fields = json.loads(data[_FIRST_BYTES:header_bytes])
        frames = tuple(FrameRecord(*map(int, [row[0], *row])) for row in fields["frames"])  # `stored_bytes` is `bytes`
        key, ttl = fields["key"], fields["ttl"]
        if not isinstance(key, str) or ttl != check_ttl(ttl):
            raise ValueError(f"invalid key or TTL: {key!r}, {ttl!r}")
        return EntryHeader(key, ttl, frames, header_bytes, check_metadata(fields.get("metadata")))
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError) as error:
        raise DamagedData(f"{name}: the header of the entry is damaged: {error}") from None


def check_ttl(ttl: Any) -> float | None:
    """`ttl`, if it is None or a number of seconds from 0 to ten years. Raises `InvalidEntry` otherwise."""
    if ttl is None:
        return None
    if isinstance(ttl, bool) or not isinstance(ttl, int | float):
        raise InvalidEntry(f"a TTL must be a number of seconds, not {ttl!r}")
    if not 0 <= ttl <= MAX_TTL_SECONDS:  # also true of NaN
        raise InvalidEntry(f"a TTL must be between 0 and {MAX_TTL_SECONDS:,} seconds, not {_describe_number(ttl)}")
    return int(ttl) if ttl == int(ttl) else ttl


def check_metadata(metadata: Mapping[str, str] | None) -> dict[str, str]:
    """The metadata as a new dict. Raises `InvalidEntry` for names or values that are not `str`, or too many bytes."""
    pairs = {} if metadata is None else metadata
    if not isinstance(pairs, Mapping) or not all(isinstance(item, str) for pair in pairs.items() for item in pair):
        raise InvalidEntry(f"metadata must be a mapping of str to str, not {pairs!r:.80}")
    result = dict(pairs)
    json_bytes = len(json.dumps(result))  # ASCII
    if json_bytes > MAX_METADATA_BYTES:
        raise InvalidEntry(f"metadata must have at most {MAX_METADATA_BYTES:,} bytes as JSON, not {json_bytes:,}")
    return result


def _describe_number(number: float) -> str:
    if isinstance(number, int) and number.bit_length() > 64:
        return f"a number of {number.bit_length():,} bits"
    return f"{number:.6g}" if abs(number) > 1e15 else str(number)


def _encode_utf8(value: str) -> bytes:
    if not isinstance(value, str):
        raise InvalidEntry(f"a value must be a str, not {type(value).__name__}")
    try:
        return value.encode()
    except UnicodeEncodeError as error:
        raise InvalidEntry(f"a value must have a UTF-8 form: remove {value[error.start]!r}, which has none") from None
