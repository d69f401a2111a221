"""Read the records of a transcript file in bounded memory.

A line that is no JSON object is not dropped: it becomes a record of type `unreadable` with its text. Only a line longer
than `MOST_LINE_BYTES` is cut to its beginning, and its record says so.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from monocontext.sessions.damaged_lines import decode, records_in
from monocontext.stores.regular_file import open_file

Record = dict[str, Any]

MOST_LINE_BYTES = 64 << 20
"""A longer line is cut. The longest seen, screenshots in base64, have 20 MB. A line takes some five times its size in
memory."""
_LONG_LINE_BYTES = 4096
"""What is kept of a line longer than `MOST_LINE_BYTES`."""
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_ZSTD_BYTES = 512
"""Compressed bytes that are inflated at once: they give at most 16 MiB."""
_MOST_LEVELS = 200
"""The most levels of nesting; deeper JSON is unreadable, since it would break later readers."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record and the line it comes from; a damaged line may give several."""

    number: int
    """The number of the line, from 1."""
    record: Record
    problem: str = ""
    """Why the line is unreadable, in a few words; empty for a readable line."""
    is_tail: bool = False
    """Whether this is an incomplete last line, which the agent may still be writing."""


def read_lines(path: Path) -> Iterator[RecordLine]:
    """The records in the lines of a `.jsonl` or `.jsonl.zst` file, in UTF-8 or UTF-16. Raises `OSError`.

    Blank lines, and lines of NULs, are left out.
    """
    with _open_lines(path) as file:
        number = 0
        while True:
            number += 1
            data = file.readline(MOST_LINE_BYTES + 1)
            if not data:
                return
            if len(data) > MOST_LINE_BYTES and not data.endswith(b"\n"):
                yield _read_long_line(number, data, file)
            elif data.strip(b"\0 \t\r\n"):
                yield from _parse_line(number, data)


def dumps(record: Record) -> bytes:
    """A record as one line of JSON in UTF-8, without a newline.

    If it holds half of a surrogate pair, all non-ASCII is escaped.
    """
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode()


def parse_lines(lines: Iterable[bytes]) -> Iterator[Record]:
    """The records in lines of the archive."""
    return map(json.loads, lines)


def make_unreadable(text: str, problem: str, **more: Any) -> Record:
    """The record in place of a line that cannot be read. `more`: further fields."""
    return {"type": "unreadable", "problem": problem, "text": text, **more}


def _parse_line(number: int, data: bytes) -> Iterator[RecordLine]:
    """The record of a line; several for a damaged one."""
    try:
        result = json.loads(data)
        problem = "" if isinstance(result, dict) else f"JSON, but a {type(result).__name__} and no object"
        if not problem and _is_too_deep(result):
            problem = f"nested deeper than {_MOST_LEVELS} levels"
    except (ValueError, RecursionError) as error:
        yield from _parse_damaged(number, data, f"not JSON: {str(error).split(':')[0][:80]}")
        return
    yield RecordLine(number, make_unreadable(decode(data), problem) if problem else result, problem)


def _parse_damaged(number: int, data: bytes, problem: str) -> Iterator[RecordLine]:
    """The records in a damaged line, and the text between them as `unreadable` ones; all have its number."""
    result = records_in(data)
    for index, item in enumerate(result):
        if isinstance(item, str):
            is_tail = index == len(result) - 1 and not data.endswith(b"\n")
            yield RecordLine(number, make_unreadable(item, problem), problem, is_tail)
        elif _is_too_deep(item):
            text, why = dumps(item).decode(), f"nested deeper than {_MOST_LEVELS} levels"
            yield RecordLine(number, make_unreadable(text, why), why)
        else:
            yield RecordLine(number, item)


def _read_long_line(number: int, data: bytes, file: IO[bytes]) -> RecordLine:
    """The record in place of a line that is too long: it is read to its end, and only its beginning is kept."""
    hashed, size, head = hashlib.sha256(data), len(data), data[:_LONG_LINE_BYTES]
    while not data.endswith(b"\n") and (data := file.readline(1 << 20)):
        hashed.update(data)
        size += len(data)
    problem = f"{size:,} bytes long, more than {MOST_LINE_BYTES:,}: only its beginning is kept"
    record = make_unreadable(head.decode("utf-8", "backslashreplace"), problem, bytes=size, sha256=hashed.hexdigest())
    return RecordLine(number, record, problem)


def _is_too_deep(value: Any) -> bool:
    """Whether a dict or list is nested deeper than `_MOST_LEVELS`."""
    level = [value]
    for _ in range(_MOST_LEVELS):
        level = [
            child
            for item in level
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


@contextmanager
def _open_lines(path: Path) -> Iterator[IO[bytes]]:
    with open_file(path) as file:
        if path.suffix != ".zst":
            yield _in_utf8(file)
            return
        yield _in_utf8(io.BufferedReader(_Pieces(_inflate(file, path))))


def _inflate(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """The bytes of a file compressed by zstd. Raises `OSError` if it is damaged or cut off."""
    import zstandard

    frame = None
    try:
        while data := file.read(_ZSTD_BYTES):
            while data:
                frame = frame or zstandard.ZstdDecompressor().decompressobj()
                yield frame.decompress(data)
                data = frame.unused_data if frame.eof else b""
                frame = None if frame.eof else frame
    except zstandard.ZstdError as error:
        raise OSError(f"{path}: does not inflate: {error}") from None
    if frame is not None:
        raise OSError(f"{path}: does not inflate: it is cut off")


def _in_utf8(file: IO[bytes]) -> IO[bytes]:
    """A file in UTF-16, with a mark or beginning with `{"`, converted to UTF-8; any other as it is."""
    reader = file if isinstance(file, io.BufferedReader) else io.BufferedReader(cast(io.RawIOBase, file))
    head = reader.peek(4)[:4]
    if head[:2] in _UTF16_MARKS:
        return io.BufferedReader(_Pieces(_convert(reader, "utf-16")))
    for encoding in ("utf-16-le", "utf-16-be"):
        if head == '{"'.encode(encoding):
            return io.BufferedReader(_Pieces(_convert(reader, encoding)))
    return reader


def _convert(file: IO[bytes], encoding: str) -> Iterator[bytes]:
    """The text of a file in UTF-8; bytes that are not valid become replacement characters."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while data := file.read(1 << 16):
        yield decoder.decode(data).encode("utf-8", "replace")
    yield decoder.decode(b"", final=True).encode("utf-8", "replace")


class _Pieces(io.RawIOBase):
    """A file of pieces that are made as they are read."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._ready = piece
        count = min(len(buffer), len(self._ready))
        buffer[:count], self._ready = self._ready[:count], self._ready[count:]
        return count
