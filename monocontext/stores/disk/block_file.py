"""Write and read cache files: a range of an object with a header that names it and a checksum for each piece.

    8 bytes   magic, with the version of this layout
    4 bytes   length of the header, little endian
    4 bytes   crc32c of the header
    header    JSON: object, etag, offset, length, total_bytes, crc32c (a list, one for each 128 KiB of the body)
    body      the bytes

An incomplete file has a temporary name. A file that lost its end in a power cut has the wrong length, and a damaged one
a wrong checksum. Only the pieces with requested bytes are read: 256 KiB for a short read from a file of 8 MiB.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import time
from contextlib import suppress
from typing import Any

import google_crc32c

from monocontext.errors import AccessDenied
from monocontext.records import dataclass
from monocontext.stores.protocol import Blob
from monocontext.stores.regular_file import AS_IT_IS, open_descriptor, open_regular, read_at, write_all

TEMPORARY = ".new-"
"""The prefix of the names of incomplete files."""
_MAGIC = b"MCBLOCK\x01"
_HEAD = struct.Struct("<8sII")
_PIECE_BYTES = 128 << 10
"""The part of a block that has its own checksum."""
_FIRST_READ_BYTES = 4096
"""The first read of a block file, which contains the header of most."""
_MOST_HEADER_BYTES = 1 << 20
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | AS_IT_IS
TOUCH_SECONDS = 60.0
"""The least age of a time of last use that is updated, since a write for each read would be expensive."""


class NotABlock(ValueError):
    """The file is incomplete or damaged, or belongs to another object."""


@dataclass(frozen=True, slots=True)
class ByteRange:
    """Bytes [offset, stop) of an object."""

    offset: int
    stop: int

    @property
    def name(self) -> str:
        return f"{self.offset}-{self.stop}"


def parse_name(name: str) -> ByteRange | None:
    """The range in the name of a cache file; `None` for another file."""
    first, dash, last = name.partition("-")
    if not dash or not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
        return None
    return ByteRange(int(first), int(last))


def write_block(folder: str, object_name: str, offset: int, blob: Blob) -> int:
    """Write the bytes of an object from `offset` to a file, atomically; returns the size of the file.

    Raises `OSError`.
    """
    body = memoryview(blob.data)
    header = json.dumps(
        {
            "object": object_name,
            "etag": blob.etag,
            "offset": offset,
            "length": len(body),
            "total_bytes": blob.total_bytes,
            "crc32c": [google_crc32c.value(bytes(body[piece : piece + _PIECE_BYTES])) for piece in _pieces(len(body))],
        }
    ).encode()
    temporary = os.path.join(folder, TEMPORARY + secrets.token_hex(8))
    try:
        with open_descriptor(temporary, _CREATE, 0o600) as descriptor:
            for part in (_HEAD.pack(_MAGIC, len(header), google_crc32c.value(header)), header, body):
                write_all(descriptor, part)
        os.replace(temporary, os.path.join(folder, ByteRange(offset, offset + len(body)).name))
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    return _HEAD.size + len(header) + len(body)


def read_block(path: str, object_name: str, start: int, stop: int) -> Blob:
    """Read bytes [start, stop) of an object from its cache file, and update the file's time of last use.

    Raises `NotABlock`, and `OSError` such as `FileNotFoundError`.
    """
    try:
        descriptor = open_regular(path)
    except (AccessDenied, IsADirectoryError) as error:
        raise NotABlock(str(error)) from None
    try:
        status = os.fstat(descriptor)
        header, body_at = _read_header(descriptor)
        offset, length = header["offset"], header["length"]
        if header["object"] != object_name or not offset <= start <= stop <= offset + length:
            raise NotABlock("it is of another object or range")
        if status.st_size != body_at + length:
            raise NotABlock(f"expected {body_at + length:,} bytes, found {status.st_size:,}")
        first = (start - offset) // _PIECE_BYTES * _PIECE_BYTES
        last = min(-(-(stop - offset) // _PIECE_BYTES) * _PIECE_BYTES, length)
        data = read_at(descriptor, body_at + first, last - first)
        view = memoryview(data)
        for position in range(0, len(data), _PIECE_BYTES):
            result = google_crc32c.value(bytes(view[position : position + _PIECE_BYTES]))
            if result != (expected := header["crc32c"][(first + position) // _PIECE_BYTES]):
                raise NotABlock(f"crc32c differs: expected {expected:08x}, found {result:08x}")
        skipped = start - offset - first
        requested = data if len(data) == stop - start else data[skipped : skipped + stop - start]
        blob = Blob(requested, header["etag"], header["total_bytes"], local=True)
    except NotABlock:
        raise
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise NotABlock(f"its header is invalid: {error!r}") from error
    finally:
        descriptor.close()
    if time.time() - status.st_mtime > TOUCH_SECONDS:
        try:
            os.utime(path)
        except OSError:
            pass  # read only, or removed meanwhile: the bytes are still valid
    return blob


def _read_header(descriptor: int) -> tuple[dict[str, Any], int]:
    """The header of a file, and the offset of its body. Raises `NotABlock`."""
    begin = read_at(descriptor, 0, _FIRST_READ_BYTES)
    if len(begin) < _HEAD.size:
        raise NotABlock("it has no header")
    magic, length, checksum = _HEAD.unpack_from(begin)
    if magic != _MAGIC or length > _MOST_HEADER_BYTES:
        raise NotABlock("it does not begin with the header of a cache file")
    body_at = _HEAD.size + length
    raw = begin[_HEAD.size : body_at] if body_at <= len(begin) else read_at(descriptor, _HEAD.size, length)
    if google_crc32c.value(raw) != checksum:
        raise NotABlock("its header is damaged")
    header: dict[str, Any] = json.loads(raw)
    return header, body_at


def _pieces(length: int) -> range:
    return range(0, length, _PIECE_BYTES)
