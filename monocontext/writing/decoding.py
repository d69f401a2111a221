"""Options for reading input: decode bytes into UTF-8, unpack compressed ones, and tell text from what is none."""

from __future__ import annotations

import bz2
import codecs
import gzip
import lzma
import re
import warnings
import zlib
from collections.abc import Callable
from functools import lru_cache, partial
from typing import IO, Any, Literal, TypedDict

from zstandard import ZstdDecompressor, ZstdError

from monocontext.errors import InvalidText
from monocontext.globs import Globs
from monocontext.records import dataclass, field

PIECE_BYTES = 1 << 20  # the number of bytes that one read of a file or stream returns
HEAD_BYTES = 8_000  # the first bytes of a file, which decide whether it is binary, as in git
_PACKED_BYTES = 4 << 10  # the compressed bytes that are decoded at once: they may hold 100 MB of text
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")  # bytes that no text has in an encoding that extends ASCII

_PACKED: dict[bytes, tuple[str, Callable[[IO[bytes]], Any]]] = {
    rb"\x1f\x8b\x08": ("gzip", lambda file: gzip.GzipFile(fileobj=file)),
    rb"\x28\xb5\x2f\xfd|[P-_]\*M\x18": ("zstd", lambda file: _Streams(file, ZstdDecompressor().decompressobj)),
    rb"BZh[1-9](1AY&SY|\x17rE8P\x90)": ("bzip2", lambda file: _Streams(file, bz2.BZ2Decompressor)),
    rb"\xfd7zXZ\x00": ("xz", lambda file: _Streams(file, partial(lzma.LZMADecompressor, lzma.FORMAT_XZ))),
}
"""Compressed files that are read as the text in them, by their first bytes."""
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
"""What a file is that is no text, by its first bytes. A remedy such as another encoding would store noise."""

HEADER = "=== FILE: {path} ===\n"  # the line before each file of a directory, by default
HIDDEN = (".*",)  # the globs of hidden files and folders

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
    """Options for reading input."""

    encoding: str = "utf-8"
    errors: str = "strict"
    """What to do with bytes that are not text: `replace` puts U+FFFD in their place. `strict` refuses a file that is
    named by itself; one that is found in a folder is left out and named."""
    header: str = HEADER
    """Line before each file of a directory; `{path}` is relative to that directory. Empty: no line."""
    include: tuple[str, ...] = ()
    """Globs of a directory's files to take, as in `.gitignore` (`globs`): `*.{py,md}`, `src/**`. Empty: all."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders to leave out; they come after those of `include`."""
    ignored: bool = False
    """Also take files that git ignores, in a folder of a git repository."""
    follow_links: bool = False
    """Take files and folders that links in a directory lead to, also outside it. Else links are left out and named."""
    note: Callable[[str], None] = field(default=lambda text: warnings.warn(text, stacklevel=2))
    """Called with a line for each change or omission: a byte order mark, links, binary files. By default it warns."""

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace"):
            raise ValueError(f"errors must be 'strict' or 'replace', not {self.errors!r}")
        try:
            "".encode(self.encoding)  # a look-up would find rot13, base64 and their like too, which give no text
        except (LookupError, UnicodeError):
            raise ValueError(f"unknown encoding {self.encoding!r}") from None
        for name in ("include", "exclude"):
            if isinstance(value := getattr(self, name), str):  # each character would be a glob, `*` among them
                raise TypeError(f"{name} must be a list of globs, not a str: write {name}=[{value!r}]")
        self.selects("")  # so that a wrong glob is an error here

    def selects(self, relative: str) -> bool:
        """Whether a file of a directory is taken, by its path below that directory."""
        if not self.include and not self.exclude:
            return True
        if not self.include and self.exclude == HIDDEN:  # without globs, which take 15 ms to load
            return "/." not in f"/{relative}"
        return _globs(tuple(self.include), tuple(self.exclude)).select(relative)


@lru_cache(8)
def _globs(include: tuple[str, ...], exclude: tuple[str, ...]) -> Globs:
    return Globs(include, exclude)


class NotText(InvalidText):
    """A file, object or stream is not text."""

    def __init__(self, name: str, reason: str, remedy: str = "", details: str = "") -> None:
        super().__init__(f"{name}: {reason}{details}" + (f"; {remedy}" if remedy else ""))
        self.reason = reason  # why, in a few words

    def __reduce__(self) -> Any:
        return InvalidText, (str(self),)


class Decoder:
    """Decodes one stream piece by piece, and drops its byte order mark with a note."""

    def __init__(self, name: str, reading: InputOptions, start: int = 0):
        """`name` is that of the stream in messages; `start` the offset in it, in bytes, of the first piece."""
        self._name = name
        self._reading = reading
        errors = "replace" if reading.errors == "replace" else "strict"
        self._decoder = codecs.getincrementaldecoder(reading.encoding)(errors)
        self._is_utf8 = codecs.lookup(reading.encoding).name == "utf-8"
        self._read_bytes = start
        self._begun = start > 0

    def feed(self, data: bytes, final: bool = False) -> Utf8:
        """Decode the next piece up to its last whole character, which ends the `final` one. Raises `InvalidText`."""
        pending = self._decoder.getstate()[0]  # the beginning of a character
        encoding = self._reading.encoding
        if self._begun and self._is_utf8 and not pending and data.isascii():  # a tenth of the time of an upload
            self._read_bytes += len(data)
            return data, len(data)
        if not self._begun and not self._read_bytes and (wide := unexpected_wide(data, encoding)):
            raise NotText(self._name, f"looks like {wide[:6].upper()}, not {encoding}", f"give encoding={wide!r}")
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            offset = self._read_bytes - len(pending) + error.start
            result = error.object[error.start : error.start + 1].hex()
            raise NotText(
                self._name,
                f"not {encoding} at byte {offset}",
                "give its encoding, or replace what is not text (errors='replace')",
                f" (0x{result}): {error.reason}",
            ) from None
        except UnicodeError as error:  # an error of the whole stream, such as UTF-16 without its byte order mark
            reason = " ".join(str(error).split())
            raise NotText(self._name, f"not {encoding}: {reason}", "give its encoding") from None
        self._read_bytes += len(data)
        if text and not self._begun:
            self._begun = True
            if text[0] == "\ufeff":
                self._reading.note(f"{self._name}: dropped a byte order mark")
                text = text[1:]
        try:
            return text.encode(), len(text)
        except UnicodeEncodeError as error:  # encodings such as `unicode_escape` can give half a character
            code = ord(text[error.start])
            raise InvalidText(
                f"text: the encoding gave a lone surrogate U+{code:04X}, which UTF-8 cannot represent"
            ) from None


def is_binary(head: bytes, encoding: str) -> bool:
    """Whether a file with this beginning is binary: it has a NUL, or control bytes and no valid encoding."""
    if "a".encode(encoding) != b"a" or not _CONTROL.search(head):
        return False
    if b"\0" in head:
        return True
    try:
        codecs.getincrementaldecoder(encoding)().decode(head)
    except UnicodeError:
        return True
    return False


def unexpected_wide(head: bytes, encoding: str) -> str:
    """The encoding of a file that begins with `head` if that is UTF-16 or UTF-32, and `encoding` extends ASCII; else
    empty. It may be valid UTF-8, with a NUL next to each letter, in which no search finds a word."""
    if "a".encode(encoding) != b"a":
        return ""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)) and encoding.lower().startswith("utf"):
        return "utf-16"
    head = head[:HEAD_BYTES]
    for name, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if len(head) >= 8 and 10 * zeros.count(0) > 9 * len(zeros) and b"\0" not in letters:
            return name
    return ""


def kind_of_file(head: bytes) -> str:
    """The kind of a file that begins with `head`, if it is known not to be text; else empty."""
    return next((kind for magic, kind in _KINDS.items() if re.match(magic, head, re.DOTALL)), "")


def packed_by(head: bytes) -> str:
    """The compression of a file with this beginning; empty for none that is read."""
    return next((name for magic, (name, _) in _PACKED.items() if re.match(magic, head)), "")


class Unpacked:
    """Reads the text of a compressed file that is open at its beginning."""

    def __init__(self, file: IO[bytes], packing: str, name: str) -> None:
        """`packing`: as `packed_by` found it. `name`: that of the file in messages."""
        self._file = next(reader(file) for kind, reader in _PACKED.values() if kind == packing)
        self._packing, self._name = packing, name

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes. Raises `NotText` for damaged data, also for data that breaks off."""
        try:
            return bytes(self._file.read(size))
        except (EOFError, OSError, ValueError, zlib.error, lzma.LZMAError, ZstdError) as error:
            raise NotText(self._name, f"damaged {self._packing} data: {error}") from None


class _Streams:
    """Reads compressed streams. Unlike the readers of `bz2`, `lzma` and `zstandard`, it detects damaged ends."""

    def __init__(self, file: IO[bytes], decompressor: Callable[[], Any]) -> None:
        self._file, self._decompressor = file, decompressor
        self._stream = decompressor()

    def read(self, size: int) -> bytes:
        text = bytearray()
        while len(text) < size:
            data = self._stream.unused_data or self._file.read(_PACKED_BYTES)
            if self._stream.eof:
                if not data:
                    break
                self._stream = self._decompressor()
            elif not data:
                raise EOFError("it breaks off")
            text += self._stream.decompress(data)
        return bytes(text)
