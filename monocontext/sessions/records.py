"""Read the records of a transcript file, in constant memory for any content.

A line that is no JSON object is not dropped: it becomes a record of type `unreadable` with its text. Only the text of a
line that is too long to look at whole is cut, and the record says so.
"""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from monocontext.errors import InvalidText
from monocontext.stores.regular_file import open_file

Record = dict[str, Any]

MOST_LINE_BYTES = 64 << 20
"""The longest lines seen in use, screenshots in base64, are below 20 MB. Reading takes some five times that."""
MOST_FILE_BYTES = 512 << 20
"""A document, unlike lines, is read whole."""
_LONG_LINE_CHARACTERS = 4096
_DEEPEST = 200
"""Levels of nesting. Deeper JSON is made to break readers."""


@dataclass(frozen=True, slots=True)
class RecordLine:
    """One line of a file."""

    number: int
    """Counts from 1."""
    record: Record
    digest: bytes
    """SHA-256 of the line as it stands in the file, without its newline."""
    problem: str = ""
    """Why it is unreadable, in a few words; empty where it is not."""
    is_tail: bool = False
    """The last line, without a newline, and not JSON: somebody may still be writing it."""


def read_lines(path: Path) -> Iterator[RecordLine]:
    """The lines of a `.jsonl` or `.jsonl.zst` file; blank ones are left out. Raises `OSError`."""
    with _open_lines(path) as file:
        number = 0
        while True:
            number += 1
            data = file.readline(MOST_LINE_BYTES + 1)
            if not data:
                return
            if len(data) > MOST_LINE_BYTES and not data.endswith(b"\n"):
                yield _read_long_line(number, data, file)
            elif data.strip():
                yield _parse_line(number, data)


def read_bytes(path: Path) -> bytes:
    """A file of another form than lines, whole. Raises `OSError`, and `InvalidText` for one that is too large."""
    if (size := path.stat().st_size) > MOST_FILE_BYTES:
        raise InvalidText(f"{path}: {size:,} bytes, more than {MOST_FILE_BYTES:,}: cut it, or write JSON lines")
    with open_file(path) as file:
        return file.read()


def read_text(path: Path) -> str:
    """A file that is UTF-8. Raises as `read_bytes`, and `InvalidText` for what is not UTF-8."""
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidText(f"{path}: not UTF-8 at byte {error.start:,}") from None


def read_document(path: Path) -> Any:
    """A file that is one JSON document. Raises as `read_bytes`, and `InvalidText` where it is none."""
    try:
        return json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:
        raise InvalidText(f"{path}: not JSON: {error}") from None


def lines_of_records(records: Iterable[Record]) -> Iterator[RecordLine]:
    """Records that were made out of a file of another form."""
    for number, record in enumerate(records, 1):
        yield RecordLine(number, record, hashlib.sha256(dumps(record)).digest())


def dumps(record: Record) -> bytes:
    """One line of JSON, without its newline. Half of a surrogate pair, which has no UTF-8 form, stays escaped."""
    try:
        return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()
    except UnicodeEncodeError:
        return json.dumps(record, separators=(",", ":")).encode()


def make_unreadable(text: str, problem: str, **more: Any) -> Record:
    """The record in place of a line that cannot be read."""
    return {"type": "unreadable", "problem": problem, "text": text, **more}


def _parse_line(number: int, data: bytes) -> RecordLine:
    digest = hashlib.sha256(data.rstrip(b"\r\n")).digest()  # its newline may come later
    try:
        found = json.loads(data)
        problem = "" if isinstance(found, dict) else f"JSON, but a {type(found).__name__} and no object"
        if not problem and _is_too_deep(found):
            problem = f"nested deeper than {_DEEPEST} levels"
    except (ValueError, RecursionError) as error:
        problem = f"not JSON: {str(error).split(':')[0][:80]}"
    if not problem:
        return RecordLine(number, found, digest)
    text = data.decode("utf-8", "backslashreplace").rstrip("\r\n")
    return RecordLine(number, make_unreadable(text, problem), digest, problem, is_tail=not data.endswith(b"\n"))


def _read_long_line(number: int, data: bytes, file: IO[bytes]) -> RecordLine:
    """Read a giant line to its end without keeping it."""
    hashed, size, head = hashlib.sha256(data), len(data), data[:_LONG_LINE_CHARACTERS]
    while not data.endswith(b"\n") and (data := file.readline(1 << 20)):
        hashed.update(data)
        size += len(data)
    problem = f"{size:,} bytes long, more than {MOST_LINE_BYTES:,}: only its beginning is kept"
    record = make_unreadable(head.decode("utf-8", "backslashreplace"), problem, bytes=size, sha256=hashed.hexdigest())
    return RecordLine(number, record, hashed.digest(), problem)


def _is_too_deep(value: Any) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            child
            for each in level
            for child in (each.values() if isinstance(each, dict) else each)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


@contextmanager
def _open_lines(path: Path) -> Iterator[IO[bytes]]:
    with open_file(path) as file:
        if path.suffix != ".zst":
            yield file
            return
        import zstandard

        try:
            yield io.BufferedReader(cast(io.RawIOBase, zstandard.ZstdDecompressor().stream_reader(file)))
        except zstandard.ZstdError as error:
            raise OSError(f"{path}: does not inflate: {error}") from None
