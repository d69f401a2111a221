"""Read the records of a transcript file in bounded memory.

A line that is not a JSON object becomes a record of type `unreadable` with its text. A crash, a killed agent or a shell
may leave NULs around a record, several records on a line, a whole record after one that broke off, or lines in UTF-16.
"""

from __future__ import annotations

import codecs
import hashlib
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, Any

from monocontext.stores.regular_file import open_file
from monocontext.writing.compression import DamagedCompression, DecompressedFile

Record = dict[str, Any]
MOST_LINE_BYTES = 64 << 20  # a longer line is cut. The longest seen have 20 MB, and take some five times as much memory
_LONG_LINE_BYTES = 4096  # the beginning that is kept of a line longer than `MOST_LINE_BYTES`
_PIECE_BYTES = 1 << 16  # of a file that are read at once
_ZSTD_BYTES = 512  # compressed bytes that are decompressed at once: they give at most 16 MiB
_MOST_LEVELS = 200  # of nesting; deeper JSON is unreadable, since it would break later readers
_MOST_STARTS = 50  # places in a damaged line that are tried as the beginning of a record
_MOST_SEARCHED_CHARACTERS = 8 << 20  # a longer damaged line is not searched for records after one that broke off
# How a file in UTF-16 begins: with a mark or `{"`.
_UTF16 = {codecs.BOM_UTF16_LE: "utf-16", codecs.BOM_UTF16_BE: "utf-16", b'{\0"\0': "utf-16-le", b'\0{\0"': "utf-16-be"}
_DECODER = json.JSONDecoder()
_BLANK = re.compile(r"[\0\s\ufeff]*")  # what may stand between records: NULs, blanks, the mark of UTF-16
_RECORD_START = re.compile(r'\{\s*"')  # `{"` or `{ "`, not `{}`


@dataclass(frozen=True, slots=True)
class RecordLine:
    """A record and the number of its line. A damaged line may hold several records."""

    number: int  # the number of the line, from 1
    record: Record
    problem: str = ""  # why the line is unreadable, in a few words; empty for a readable line
    is_tail: bool = False  # whether this is an incomplete last line, which the agent may still be writing


def read_lines(path: Path) -> Iterator[RecordLine]:
    """Yield the records in a `.jsonl` or `.jsonl.zst` file, in UTF-8 or UTF-16. Raises `OSError`."""
    with open_file(path) as file:
        head = file.read(4)
        file.seek(0)
        pieces = _inflate(file, path) if path.suffix == ".zst" and head else iter(partial(file.read, _PIECE_BYTES), b"")
        if encoding := next((name for mark, name in _UTF16.items() if head.startswith(mark)), ""):
            pieces = codecs.iterencode(codecs.iterdecode(pieces, encoding, "replace"), "utf-8", "replace")
        for number, (data, size) in enumerate(_lines_in(pieces), 1):
            if size > len(data):
                problem = f"{size:,} bytes long, more than {MOST_LINE_BYTES:,}: only its beginning is kept"
                yield _unreadable(number, data.decode("utf-8", "backslashreplace"), problem)
            elif data.strip(b"\0 \t\r\n"):
                yield from _parse_line(number, data)


def dumps(record: Record) -> bytes:
    """A record as one line of JSON in UTF-8, without a newline."""
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return text.encode("utf-8", "backslashreplace")  # half of a surrogate pair becomes `\ud800`, as JSON has it


def string_in(record: Record, name: str) -> str:
    """The string in a field of a record; empty if the field is missing, or holds anything else."""
    value = record.get(name)
    return value if isinstance(value, str) else ""


def object_in(record: Record, name: str) -> Record:
    """The object in a field of a record; empty if the field is missing, or holds anything else."""
    value = record.get(name)
    return value if isinstance(value, dict) else {}


def ids_of(records: Iterable[Record]) -> list[str]:
    """The ids of records, in order: the `uuid`, else the time and the type, else the digest of a chat message; a
    repeated id ends in `#2`, `#3` and so on. Other records, such as settings of the agent, have no id."""
    counts, results = Counter[str](), list[str]()
    for name in filter(None, map(_id_of, records)):
        counts[name] += 1
        results.append(name if counts[name] == 1 else f"{name}#{counts[name]}")
    return results


def _id_of(record: Record) -> str:
    """The id of a record, which need not be unique; empty if the record has none."""
    record_type, uuid, time = record.get("type"), record.get("uuid"), record.get("timestamp")
    if isinstance(uuid, str) and uuid:
        return uuid
    if isinstance(time, str) and time and record_type != "unreadable":
        payload = record.get("payload")
        payload_type = payload.get("type") if isinstance(payload, dict) else None
        return f"{time} {record.get('ordinal')} {record_type} {payload_type}"
    is_message = "role" in record and record_type != "unreadable"
    return hashlib.sha256(json.dumps(record, sort_keys=True).encode()).hexdigest() if is_message else ""


def _unreadable(number: int, text: str, problem: str, is_tail: bool = False) -> RecordLine:
    return RecordLine(number, {"type": "unreadable", "problem": problem, "text": text}, problem, is_tail)


def _parse_line(number: int, data: bytes) -> Iterator[RecordLine]:
    """Yield the records of a line. In a damaged line, text between records becomes `unreadable` records."""
    try:
        items, problem = [json.loads(data)], ""
    except (ValueError, RecursionError) as error:
        items, problem = list(_records_in(_decode(data))), f"not JSON: {str(error).split(':')[0][:80]}"
    for index, item in enumerate(items):
        if problem and isinstance(item, str):
            yield _unreadable(number, item, problem, index == len(items) - 1 and not data.endswith(b"\n"))
        elif not isinstance(item, dict):
            yield _unreadable(number, _decode(data), f"JSON, but a {type(item).__name__} and not an object")
        elif _is_too_deep(item):
            yield _unreadable(number, dumps(item).decode(), f"nested deeper than {_MOST_LEVELS} levels")
        else:
            yield RecordLine(number, item)


def _records_in(text: str) -> Iterator[Record | str]:
    """Yield the records in a damaged line and the text between them. `[3 NULs]` stands for a run of NULs."""
    offset = _skip_blank(text, 0)
    while offset < len(text):
        if parsed := _parse_at(text, offset):
            record, end = parsed
            yield record
        else:
            most = _MOST_STARTS if len(text) <= _MOST_SEARCHED_CHARACTERS else 0
            starts = (match.start() for match in islice(_RECORD_START.finditer(text, offset + 1), most))
            end = next((start for start in starts if _is_agent_record(text, start)), len(text))
            yield re.sub("\0+", lambda run: f"[{len(run[0]):,} NULs]", text[offset:end].rstrip("\0")).rstrip("\r\n")
        offset = _skip_blank(text, end)


def _skip_blank(text: str, offset: int) -> int:
    match = _BLANK.match(text, offset)
    return match.end() if match else offset


def _parse_at(text: str, offset: int) -> tuple[Record, int] | None:
    """The record that begins at `offset`, and its end; None if there is none."""
    try:
        result, end = _DECODER.raw_decode(text, offset)
    except (ValueError, RecursionError):
        return None
    return (result, end) if isinstance(result, dict) else None


def _is_agent_record(text: str, offset: int) -> bool:
    """Whether a record of an agent begins at `offset`; an object within a record does not count."""
    record, end = _parse_at(text, offset) or ({}, offset)
    if "type" not in record or {"timestamp", "uuid", "sessionId", "payload"}.isdisjoint(record):
        return False
    return _skip_blank(text, end) == len(text) or text[end] in "{\0 "


def _decode(data: bytes) -> str:
    """A line as text, without its newline. The line may be UTF-16 within a file of UTF-8."""
    if 2 * data.count(b"\0") >= len(data) - 4 and b"\0\0" not in data:  # half are NUL, but for a mark and a newline
        data = data.strip(b"\r\n")
        wide = data[1:] if data.startswith(b"\0") and len(data) % 2 else data
        for encoding in ("utf-16-le", "utf-16-be"):
            text = wide[: len(wide) // 2 * 2].decode(encoding, "replace").rstrip("\r\n")
            if text.startswith(("{", "\ufeff{")):
                return text
    return data.decode("utf-8", "backslashreplace").rstrip("\r\n")


def _is_too_deep(value: Record) -> bool:
    """Whether a record has more than `_MOST_LEVELS` levels. Not recursive, since that would fail for such a record."""
    level: list[Any] = [value]
    for _ in range(_MOST_LEVELS):
        children = (child for item in level for child in (item.values() if isinstance(item, dict) else item))
        level = [child for child in children if isinstance(child, dict | list)]
        if not level:
            return False
    return True


def _lines_in(pieces: Iterable[bytes]) -> Iterator[tuple[bytes, int]]:
    """Yield each line with its size in bytes; of a line longer than `MOST_LINE_BYTES` only the beginning."""
    line, size = bytearray(), 0
    for piece in pieces:
        for part in io.BytesIO(piece):
            line += part
            size += len(part)
            if size > MOST_LINE_BYTES:
                del line[_LONG_LINE_BYTES:]
            if part.endswith(b"\n"):
                yield bytes(line), size
                line, size = bytearray(), 0
    if size:
        yield bytes(line), size


def _inflate(file: IO[bytes], path: Path) -> Iterator[bytes]:
    """Yield the bytes of a file compressed by zstd. Raises `OSError` where the file is damaged or cut off."""
    content = DecompressedFile(file, "zstd", _ZSTD_BYTES)
    try:
        yield from iter(partial(content.read, 1), b"")
    except DamagedCompression as error:
        raise OSError(f"{path}: {error}") from None
