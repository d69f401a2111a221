"""Input for a context: strings, bytes, files and directories in, one stream of UTF-8 out, in bounded memory."""

from __future__ import annotations

import codecs
import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path
from typing import BinaryIO

from monocontext.errors import InvalidText, NotFound

PIECE_BYTES = 1 << 20

Source = str | bytes | os.PathLike[str]

_SURROGATES = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Reading:
    """How input becomes text."""

    encoding: str = "utf-8"
    errors: str = "strict"
    """`strict` refuses what is not text; `replace` puts U+FFFD in its place."""
    header: str = "=== FILE: {path} ===\n"
    """Goes before each file of a directory; `{path}` is relative to that directory. Empty: files are joined bare."""
    include: tuple[str, ...] = ()
    """Of a directory, only files whose relative path or name matches one of these globs."""
    exclude: tuple[str, ...] = ()
    note: Callable[[str], None] = field(default=lambda text: None)
    """Called with a line for what was changed on the way in, such as a byte order mark that was dropped."""

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise ValueError(f"errors is 'strict' or 'replace', not {self.errors!r}")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise ValueError(f"unknown encoding {self.encoding!r}") from None


def read_pieces(sources: Source | Iterable[Source], reading: Reading) -> Iterator[bytes]:
    """The text of the sources, in order, as UTF-8 in pieces that end between characters.

    A `str` is text; an `os.PathLike` is a file or a directory; `bytes` are encoded text, and neighbours in an iterable
    are one stream, so a character may reach from one into the next. Raises `InvalidText` with the input and the offset
    of what is not text, `NotFound` for a missing file.
    """
    return _batched(_texts(sources, reading))


def _batched(texts: Iterable[str]) -> Iterator[bytes]:
    """Encode, gathering small texts into pieces of about a megabyte."""
    batch: list[bytes] = []
    size = 0
    for text in texts:
        try:
            data = text.encode()
        except UnicodeEncodeError as error:  # `unicode_escape` and its like can spell half a character
            found = ord(text[error.start])
            raise InvalidText(f"text: the encoding gave a lone surrogate U+{found:04X}, which has no UTF-8") from None
        batch.append(data)
        size += len(data)
        if size >= PIECE_BYTES:
            yield b"".join(batch)
            batch, size = [], 0
    if size:
        yield b"".join(batch)


class _Ending:
    """How the text ends so far."""

    is_newline = True


def _texts(sources: Source | Iterable[Source], reading: Reading) -> Iterator[str]:
    ending = _Ending()
    for text in _each(sources, reading, ending):
        if text:
            ending.is_newline = text.endswith("\n")
            yield text


def _each(sources: Source | Iterable[Source], reading: Reading, ending: _Ending) -> Iterator[str]:
    if isinstance(sources, str | bytes | os.PathLike):
        sources = [sources]
    stream: _Decoder | None = None
    characters = 0
    for number, source in enumerate(sources):
        if isinstance(source, bytes | bytearray | memoryview):
            stream = stream or _Decoder(f"bytes of source {number}", reading)
            yield stream.feed(bytes(source))
            continue
        if stream:
            yield stream.finish()
            stream = None
        if isinstance(source, str):
            for start in range(0, len(source), PIECE_BYTES):
                yield _whole_characters(source[start : start + PIECE_BYTES], characters + start, reading)
            characters += len(source)
        elif isinstance(source, os.PathLike):
            yield from _path(Path(source), reading, ending)
        else:
            raise TypeError(f"source {number} is {type(source).__name__}: expected str, bytes or a path")
    if stream:
        yield stream.finish()


def _whole_characters(text: str, before: int, reading: Reading) -> str:
    """Refuse or replace lone surrogates, which have no UTF-8 form."""
    if text.isascii() or not (found := _SURROGATES.search(text)):
        return text
    if reading.errors == "replace":
        return _SURROGATES.sub("\ufffd", text)
    at = before + found.start()
    raise InvalidText(f"text: a lone surrogate U+{ord(found[0]):04X} at character {at}; --errors replace takes it out")


def _path(path: Path, reading: Reading, ending: _Ending) -> Iterator[str]:
    if not path.is_dir():
        yield from _file(path, reading)
        return
    for file in _walk(path):
        relative = file.relative_to(path).as_posix()
        if not _chosen(relative, reading):
            continue
        if reading.header:
            # A name on disk may be bytes that are no text.
            shown = relative.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
            yield ("" if ending.is_newline else "\n") + reading.header.replace("{path}", shown)
        yield from _file(file, reading)


def _walk(folder: Path) -> Iterator[Path]:
    """Regular files in order, those of a folder before those of its sub-folders; links to folders are left out."""
    for root, folders, files in os.walk(folder):
        folders.sort()
        for name in sorted(files):
            file = Path(root, name)
            if file.is_file():
                yield file


def _chosen(relative: str, reading: Reading) -> bool:
    def matches(globs: tuple[str, ...]) -> bool:
        return any(fnmatch(relative, glob) or fnmatch(relative.rpartition("/")[2], glob) for glob in globs)

    return (not reading.include or matches(reading.include)) and not matches(reading.exclude)


def _file(path: Path, reading: Reading) -> Iterator[str]:
    try:
        with path.open("rb") as file:
            yield from read_stream(file, str(path), reading)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None


def read_stream(file: BinaryIO, name: str, reading: Reading) -> Iterator[str]:
    """The text of an open binary file; `name` is for messages."""
    decoder = _Decoder(name, reading)
    while data := file.read(PIECE_BYTES):
        yield decoder.feed(data)
    yield decoder.finish()


class _Decoder:
    """Decodes one stream and knows where in it a fault lies."""

    def __init__(self, name: str, reading: Reading):
        self._name = name
        self._reading = reading
        self._decoder = codecs.getincrementaldecoder(reading.encoding)(reading.errors)
        self._read_bytes = 0
        self._begun = False

    def feed(self, data: bytes, final: bool = False) -> str:
        try:
            pending = len(self._decoder.getstate()[0])
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            at = self._read_bytes - pending + error.start
            found = error.object[error.start : error.start + 1].hex()
            raise InvalidText(
                f"{self._name}: not {self._reading.encoding} at byte {at} (0x{found}): {error.reason}; "
                f"exclude it, give its encoding, or replace what is not text (errors='replace', --errors replace)"
            ) from None
        self._read_bytes += len(data)
        if text and not self._begun:
            self._begun = True
            if text[0] == "\ufeff":
                self._reading.note(f"{self._name}: dropped a byte order mark")
                text = text[1:]
        return text

    def finish(self) -> str:
        return self.feed(b"", final=True)
