"""Tell text from other files by the first bytes, and decode it into UTF-8. Defines the options for reading input."""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import IO, Any, Literal, TypedDict

from monocontext.errors import InvalidText
from monocontext.globs import Globs
from monocontext.records import dataclass, field
from monocontext.writing.compression import DamagedCompression, DecompressedFile

PIECE_BYTES = 1 << 20  # the most bytes of one read of a file or stream
HEAD_BYTES = 8_000  # the length of the beginning that decides whether a file is binary, as in git
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # control bytes that text lacks: not a tab, newline or escape
_KINDS = {
    rb"%PDF-": "a PDF",
    rb"PK\x03\x04": "a zip archive or an office file",
    rb"\xd0\xcf\x11\xe0": "an office file",
    rb"\x89PNG|\xff\xd8\xff|GIF8[79]a|RIFF....WEBP": "a picture",
    rb"\x7fELF|MZ.\x00": "a program",
    rb"PAR1[\x15\x00]": "a Parquet table",
    rb"SQLite format 3\x00": "a database",
    rb"7z\xbc\xaf|Rar!\x1a|\x04\x22\x4d\x18": "an archive",
}
"""Regular expressions for the first bytes of files that no encoding turns into text, and what these files are."""
_COMPRESSED = {
    "gzip": rb"\x1f\x8b\x08",
    "zstd": rb"\x28\xb5\x2f\xfd|[P-_]\*M\x18",  # a frame, or one that is to be skipped
    "bzip2": rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",  # a block, or the end of an empty stream
    "xz": rb"\xfd7zXZ\x00",
}
"""Regular expressions for the first bytes of compressed files, by the compression."""

HEADER = "=== FILE: {path} ===\n"  # the line before each file of a directory, by default
HIDDEN = (".*",)  # the globs of hidden files and folders
_cached_globs = lru_cache(8)(Globs)

Utf8 = tuple[bytes, int]  # text in UTF-8, and its number of characters


class ReadingOptions(TypedDict, total=False):
    """The fields of `InputOptions` as keywords."""

    encoding: str
    errors: Literal["strict", "replace"]
    header: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    ignored: bool
    follow_links: bool
    note: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Which files to read as input, and how to turn them into text."""

    encoding: str = "utf-8"
    errors: str = "strict"
    """How to treat bytes that are invalid in the encoding: `replace` stores U+FFFD in their place; `strict` raises
    `InvalidText` for a file that the caller names, and leaves out a file of a folder, with a note."""
    header: str = HEADER
    """The line before each file of a directory; `{path}` stands for its path below that directory. Empty: no line."""
    include: tuple[str, ...] = ()
    """Globs of the files to read from a directory, as in `.gitignore` (`globs`): `*.{py,md}`, `src/**`. Empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders to leave out; they are applied after those of `include`."""
    ignored: bool = False
    """Whether to read also the files of a git repository that git ignores."""
    follow_links: bool = False
    """Whether to follow links in a directory, even out of it. If not, they are left out, with a note."""
    note: Callable[[str], None] = field(default=lambda text: warnings.warn(text, stacklevel=2))
    """Called with a line about each change or omission, such as a byte order mark, a link or a binary file. By default,
    the line is a warning."""

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', not {self.errors!r}")
        try:
            "".encode(self.encoding)  # `codecs.lookup` would also accept rot13 and base64, which do not decode text
        except (LookupError, UnicodeError):
            raise ValueError(f"unknown encoding {self.encoding!r}") from None
        for name in ("include", "exclude"):
            if isinstance(value := getattr(self, name), str):  # each character would be a glob, `*` among them
                raise TypeError(f"{name} must be a list of globs, not a str: write {name}=[{value!r}]")
        self.selects("")  # raises the error of an invalid glob here, before anything is read

    def selects(self, relative: str) -> bool:
        """Whether to read a file, given its path below the directory that is read."""
        if not self.include and not self.exclude:
            return True
        if not self.include and self.exclude == HIDDEN:  # the usual case, without globs, which take 15 ms to load
            return "/." not in f"/{relative}"
        return _cached_globs(tuple(self.include), tuple(self.exclude)).select(relative)


class NotText(InvalidText):
    """A file, object or stream is not text."""

    def __init__(self, name: str, reason: str, remedy: str = "", details: str = "") -> None:
        super().__init__(f"{name}: {reason}{details}" + (f"; {remedy}" if remedy else ""))
        self.reason = reason  # why, in a few words

    def __reduce__(self) -> Any:
        return InvalidText, (str(self),)


class WrongEncoding(NotText):
    """A stream is not text in the encoding that was given, but may be text in another."""


def decode_file(file: IO[bytes], label: str, reading: InputOptions, *, may_be_binary: bool) -> Iterator[Utf8]:
    """Yield the text of a file that is open at its beginning and may be compressed. `label`: its name in messages.
    `may_be_binary`: accept control characters if the file is not compressed. Raises `NotText`, before it yields if the
    first bytes show that the file is not text."""
    stream: IO[bytes] | DecompressedFile = file
    data = file.read(PIECE_BYTES)
    compression = compression_of(data)
    try:
        if compression:
            file.seek(0)
            stream = DecompressedFile(file, compression)
            data = stream.read(PIECE_BYTES)
        refuse_known_kinds(label, data)
        must_be_text = not may_be_binary or compression != ""
        if must_be_text and not wide_encoding(data, reading.encoding) and is_binary(data, reading.encoding):
            raise NotText(label, "a binary file", "convert it to text first")
        decoder = Decoder(label, reading)
        while data:
            yield decoder.feed(data)
            data = stream.read(PIECE_BYTES)
        yield decoder.feed(b"", final=True)
    except DamagedCompression as error:
        raise NotText(label, str(error)) from None


class Decoder:
    """Decodes a stream piece by piece, and drops its byte order mark with a note."""

    def __init__(self, label: str, reading: InputOptions, offset_bytes: int = 0):
        """`label` is the name of the stream in messages, `offset_bytes` the offset of the first piece in the stream."""
        self._label, self._note, self._encoding = label, reading.note, reading.encoding
        self._decoder = codecs.getincrementaldecoder(reading.encoding)(reading.errors)
        self._is_utf8 = codecs.lookup(reading.encoding).name == "utf-8"
        self._offset_bytes = offset_bytes  # of the next piece
        self._has_begun = offset_bytes > 0  # whether the first character, perhaps a byte order mark, was read

    def feed(self, data: bytes, final: bool = False) -> Utf8:
        """Decode the next piece. A character that continues in the next piece is decoded with that one; after the
        `final` piece it is an error. Raises `NotText`, or `InvalidText` for text that is not Unicode."""
        pending = self._decoder.getstate()[0]  # the first bytes of a character
        if self._has_begun and self._is_utf8 and not pending and data.isascii():  # saves a tenth of an upload's time
            self._offset_bytes += len(data)
            return data, len(data)
        if not self._has_begun and not self._offset_bytes and (wide := wide_encoding(data, self._encoding)):
            looks = f"looks like {wide[: len('utf-16')].upper()}, not {self._encoding}"
            raise WrongEncoding(self._label, looks, f"give encoding={wide!r}")
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            invalid = f"not {self._encoding} at byte {self._offset_bytes - len(pending) + error.start}"
            details = f" (0x{error.object[error.start]:02x}): {error.reason}"
            remedy = "give its encoding, or replace what is not text (errors='replace')"
            raise WrongEncoding(self._label, invalid, remedy, details) from None
        except UnicodeError as error:  # an error of the whole stream, such as UTF-16 without its byte order mark
            reason = " ".join(str(error).split())
            raise WrongEncoding(self._label, f"not {self._encoding}: {reason}", "give its encoding") from None
        self._offset_bytes += len(data)
        if text and not self._has_begun:
            self._has_begun = True
            if text[0] == "\ufeff":
                self._note(f"{self._label}: dropped a byte order mark")
                text = text[1:]
        try:
            return text.encode(), len(text)
        except UnicodeEncodeError as error:  # encodings such as `unicode_escape` can yield half a surrogate pair
            surrogate = f"U+{ord(text[error.start]):04X}"
            raise InvalidText(
                f"{self._label}: {self._encoding} decodes to a lone surrogate {surrogate}, which UTF-8 cannot encode"
            ) from None


def compression_of(head: bytes) -> str:
    """The compression of a file with this beginning, such as "gzip"; empty for a file that is not compressed."""
    return next((name for name, pattern in _COMPRESSED.items() if re.match(pattern, head)), "")


def refuse_known_kinds(label: str, head: bytes) -> None:
    """Raise `NotText` if a file with this beginning is of a kind that no encoding turns into text."""
    for pattern, kind in _KINDS.items():
        if re.match(pattern, head, re.DOTALL):
            raise NotText(label, kind, "convert it to text first")


def is_binary(head: bytes, encoding: str) -> bool:
    """Whether a file with this beginning is binary: it has a NUL, or control bytes and bytes invalid in `encoding`."""
    head = head[:HEAD_BYTES]
    if "a".encode(encoding) != b"a" or not _CONTROL.search(head):
        return False
    if b"\0" in head:
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return True
    return False


def wide_encoding(head: bytes, expected: str) -> str:
    """The encoding that a file with this beginning seems to have instead of `expected`, such as `utf-16-le`; empty if
    none. Such a file may be valid UTF-8 with a NUL next to each letter, so that no search finds a word in it."""
    if "a".encode(expected) != b"a":
        return ""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and expected.lower().startswith("utf"):
        return "utf-16"
    head = head[:HEAD_BYTES]
    for name, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if len(head) >= 8 and 10 * zeros.count(0) > 9 * len(zeros) and b"\0" not in letters:
            return name
    return ""
