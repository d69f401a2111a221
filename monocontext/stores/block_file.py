"""A stretch of an object as a file of our own: says what it is, and is checked piece by piece when it is read.

    8 bytes   magic, with the version of this layout
    4 bytes   length of the header, little endian
    4 bytes   crc32c of the header
    header    JSON: object, etag, offset, length, total_bytes, crc32c (a list, one for each 128 KiB of the body)
    body      the bytes

A file that another process is writing has another name; one that lost its end in a power cut has the wrong length, and
one that rotted a wrong checksum. Only the pieces that are asked for are read, so a zoom into 8 MiB costs 256 KiB.
"""

from __future__ import annotations

import json
import os
import secrets
import struct
import time
from dataclasses import dataclass
from typing import Any

import google_crc32c

from monocontext.store import Blob

TEMPORARY = ".new-"
"""How the names of files begin that are not whole yet."""
_MAGIC = b"MCBLOCK\x01"
_HEAD = struct.Struct("<8sII")
_PIECE_BYTES = 128 << 10
_FIRST_READ_BYTES = 4096
_MOST_HEADER_BYTES = 1 << 20
_READ = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
TOUCH_SECONDS = 60.0
"""The time of last use is kept to the minute: a write for each read would be dear."""


class NotABlock(ValueError):
    """A file that is torn, damaged, or of something else."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Bytes `offset` to `stop` of an object."""

    offset: int
    stop: int

    @property
    def name(self) -> str:
        return f"{self.offset}-{self.stop}"


def parse_name(name: str) -> Stretch | None:
    """The stretch that a file holds by its name; None for files of other kinds."""
    first, dash, last = name.partition("-")
    if not dash or not (first.isascii() and first.isdecimal() and last.isascii() and last.isdecimal()):
        return None
    return Stretch(int(first), int(last))


def write_block(folder: str, object_name: str, offset: int, blob: Blob) -> int:
    """Write the file of `blob`, the bytes of an object from `offset`, and return its size. Raises `OSError`.

    It appears under its name whole or not at all.
    """
    body = memoryview(blob.data)
    header = json.dumps(
        {
            "object": object_name,
            "etag": blob.etag,
            "offset": offset,
            "length": len(body),
            "total_bytes": blob.total_bytes,
            "crc32c": [google_crc32c.value(bytes(body[at : at + _PIECE_BYTES])) for at in _pieces(len(body))],
        }
    ).encode()
    temporary = os.path.join(folder, TEMPORARY + secrets.token_hex(8))
    descriptor = os.open(temporary, _CREATE, 0o600)
    try:
        try:
            for part in (_HEAD.pack(_MAGIC, len(header), google_crc32c.value(header)), header, body):
                left = memoryview(part)
                while left:
                    left = left[os.write(descriptor, left) :]
        finally:
            os.close(descriptor)
        os.replace(temporary, os.path.join(folder, Stretch(offset, offset + len(body)).name))
    except BaseException:
        os.unlink(temporary)
        raise
    return _HEAD.size + len(header) + len(body)


def read_block(path: str, object_name: str, start: int, stop: int) -> Blob:
    """Bytes [start, stop) of the object, out of the file of a stretch that holds them. Notes that it was used.

    Raises `NotABlock`, and `OSError` such as `FileNotFoundError`.
    """
    descriptor = os.open(path, _READ)
    try:
        status = os.fstat(descriptor)
        header, body_at = _read_header(descriptor)
        offset, length = header["offset"], header["length"]
        if header["object"] != object_name or not offset <= start <= stop <= offset + length:
            raise NotABlock("it is of something else")
        if status.st_size != body_at + length:
            raise NotABlock(f"expected {body_at + length:,} bytes, found {status.st_size:,}")
        first = (start - offset) // _PIECE_BYTES * _PIECE_BYTES
        last = min(-(-(stop - offset) // _PIECE_BYTES) * _PIECE_BYTES, length)
        data = _read_at(descriptor, body_at + first, last - first)
        view = memoryview(data)
        for at in range(0, len(data), _PIECE_BYTES):
            found = google_crc32c.value(bytes(view[at : at + _PIECE_BYTES]))
            if found != (expected := header["crc32c"][(first + at) // _PIECE_BYTES]):
                raise NotABlock(f"crc32c differs: expected {expected:08x}, found {found:08x}")
        wanted = data if len(data) == stop - start else data[start - offset - first : stop - offset - first]
        blob = Blob(wanted, header["etag"], header["total_bytes"], local=True)
    except NotABlock:
        raise
    except (KeyError, TypeError, IndexError, ValueError) as error:
        raise NotABlock(f"its header is not ours: {error!r}") from error
    finally:
        os.close(descriptor)
    if time.time() - status.st_mtime > TOUCH_SECONDS:
        try:
            os.utime(path)
        except OSError:
            pass  # read-only, or gone meanwhile: it was read all the same
    return blob


def _read_header(descriptor: int) -> tuple[dict[str, Any], int]:
    """What the file says of itself, and where its body begins."""
    begin = _read_at(descriptor, 0, _FIRST_READ_BYTES)
    if len(begin) < _HEAD.size:
        raise NotABlock("it has no header")
    magic, length, checksum = _HEAD.unpack_from(begin)
    if magic != _MAGIC or length > _MOST_HEADER_BYTES:
        raise NotABlock("it begins with something else")
    body_at = _HEAD.size + length
    raw = begin[_HEAD.size : body_at] if body_at <= len(begin) else _read_at(descriptor, _HEAD.size, length)
    if google_crc32c.value(raw) != checksum:
        raise NotABlock("its header is damaged")
    header: dict[str, Any] = json.loads(raw)
    return header, body_at


def _read_at(descriptor: int, start: int, length: int) -> bytes:
    """So many bytes, or as many as there are."""
    os.lseek(descriptor, start, os.SEEK_SET)  # nobody else uses this descriptor
    parts = []
    while length > 0 and (part := os.read(descriptor, length)):
        parts.append(part)
        length -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _pieces(length: int) -> range:
    return range(0, length, _PIECE_BYTES)
