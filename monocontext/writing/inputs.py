"""Read strings, bytes, files, directories and documents as one stream of UTF-8, in bounded memory."""

from __future__ import annotations

import codecs
import os
import re
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any, Literal, TypedDict

from monocontext.errors import InvalidText, NotFound
from monocontext.format.documents import encode_metadata, encode_name
from monocontext.records import dataclass, field
from monocontext.stores.regular_file import open_file
from monocontext.writing.documents import DocumentInputs, DocumentRows
from monocontext.writing.folder import Folder, describe_left_out

PIECE_BYTES = 1 << 20
HEAD_BYTES = 8_000
"""The first bytes of a file, which decide whether it is binary, as in git."""
_NAMED = 5
"""Binary files that a note names; it counts the others."""

Source = str | bytes | bytearray | memoryview | os.PathLike[str] | DocumentInputs

_SURROGATES = re.compile("[\ud800-\udfff]")
_CONTROL = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f]")
"""Bytes that no text has in an encoding that extends ASCII."""


HEADER = "=== FILE: {path} ===\n"
"""The line before each file of a directory."""


class ReadingOptions(TypedDict, total=False):
    """The fields of `InputOptions` as keywords."""

    encoding: str
    errors: Literal["strict", "replace", "skip"]
    header: str
    include: tuple[str, ...]
    exclude: tuple[str, ...]
    follow_links: bool
    note: Callable[[str], None]


@dataclass(frozen=True, slots=True)
class InputOptions:
    """Options for reading input."""

    encoding: str = "utf-8"
    errors: str = "strict"
    """`strict` refuses bytes that are not text; `replace` puts U+FFFD in their place; `skip` leaves out and names the
    files with such bytes, and reads files twice."""
    header: str = HEADER
    """Line before each file of a directory; `{path}` is relative to that directory. Empty: no line."""
    include: tuple[str, ...] = ()
    """Take only files of a directory whose relative path or name matches one of these globs."""
    exclude: tuple[str, ...] = ()
    """Leave out files of a directory whose relative path or name matches one of these globs."""
    follow_links: bool = False
    """Take files and folders that links in a directory lead to, also outside it. Else links are left out and named."""
    note: Callable[[str], None] = field(default=lambda text: warnings.warn(text, stacklevel=2))
    """Called with a line for each thing that was changed or left out: a byte order mark, links, binary files. By
    default it warns."""

    def __post_init__(self) -> None:
        if self.errors not in ("strict", "replace", "skip"):
            raise ValueError(f"errors is 'strict', 'replace' or 'skip', not {self.errors!r}")
        try:
            "".encode(self.encoding)  # a look-up would find rot13, base64 and their like too, which give no text
        except (LookupError, UnicodeError):
            raise ValueError(f"unknown encoding {self.encoding!r}") from None
        for name in ("include", "exclude"):
            if isinstance(given := getattr(self, name), str):  # each character would be a glob, `*` among them
                raise TypeError(f"{name} takes globs, not one str: [{given!r}]")


def read_pieces(
    sources: Source | Iterable[Source], reading: InputOptions, rows: DocumentRows | None = None
) -> Iterator[bytes]:
    """Yield the text of the sources, in order, as UTF-8 in pieces that end between characters.

    Each file is a document of `rows`, and so is each of `DocumentInputs`. A `str` is text; an `os.PathLike` is a file
    or a directory; `bytes` are encoded text, and neighbours in an iterable are one stream, so a character may cross
    from one into the next. Raises `InvalidText` with the input and the offset of bytes that are not text, and
    `NotFound` for a missing file.
    """
    batch: list[bytes] = []
    size = 0
    for data in _read_texts(sources, reading, rows):
        batch.append(data)
        size += len(data)
        if size >= PIECE_BYTES // 2:  # small ones are joined
            yield b"".join(batch)
            batch, size = [], 0
    if size:
        yield b"".join(batch)


_Text = tuple[bytes, int]
"""Text in UTF-8, and its characters."""


def _encode(text: str) -> _Text:
    try:
        return text.encode(), len(text)
    except UnicodeEncodeError as error:  # encodings such as `unicode_escape` can give half a character
        found = ord(text[error.start])
        raise InvalidText(f"text: the encoding gave a lone surrogate U+{found:04X}, which has no UTF-8") from None


class _Ending:
    """Whether the text so far ends in a newline."""

    is_newline = True


def _read_texts(
    sources: Source | Iterable[Source], reading: InputOptions, rows: DocumentRows | None
) -> Iterator[bytes]:
    ending = _Ending()
    rows = None if isinstance(sources, str) else rows  # a bare text has no documents: nothing is counted for them
    for data, characters in _read_sources(sources, reading, ending, rows):
        if data:
            ending.is_newline = data.endswith(b"\n")
            if rows:
                rows.passed(data, characters)
            yield data


def _read_sources(
    sources: Source | Iterable[Source], reading: InputOptions, ending: _Ending, rows: DocumentRows | None
) -> Iterator[_Text]:
    if isinstance(sources, str | bytes | bytearray | memoryview | os.PathLike | DocumentInputs):
        sources = [sources]
    elif not isinstance(sources, Iterable):
        kind = type(sources).__name__
        raise TypeError(f"expected str, bytes, a path, documents, or an iterable of these, not {kind}")
    stream: Decoder | None = None
    characters = 0
    if isinstance(sources, list | tuple):
        prefixes = prefixes_of([each for each in sources if isinstance(each, os.PathLike)], reading)
    else:
        prefixes = {}
    for number, source in enumerate(sources):
        if isinstance(source, bytes | bytearray | memoryview):
            stream = stream or Decoder(f"bytes of source {number}", reading)
            yield stream.feed(bytes(source))
            continue
        if stream:
            yield stream.finish()
            stream = None
        if isinstance(source, str):
            for start in range(0, len(source), PIECE_BYTES):
                yield _encode(_check_surrogates(source[start : start + PIECE_BYTES], characters + start, reading))
            characters += len(source)
        elif isinstance(source, os.PathLike):
            yield from _read_path(Path(source), reading, ending, rows, prefixes.get(Path(source), ""))
        elif isinstance(source, DocumentInputs) and rows:
            yield from _read_documents(source, reading, ending, rows)
        else:
            raise TypeError(f"source {number} is {type(source).__name__}: expected str, bytes, a path or documents")
    if stream:
        yield stream.finish()


def _check_surrogates(text: str, before: int, reading: InputOptions, what: str = "text") -> str:
    """Return the text, with lone surrogates refused or replaced: they have no UTF-8 form."""
    try:
        text.isascii() or text.encode()  # a quarter of the time of looking for one
        return text
    except UnicodeEncodeError as error:
        if reading.errors == "replace":
            return _SURROGATES.sub("\ufffd", text)
        at, found = before + error.start, ord(text[error.start])
    raise InvalidText(f"{what}: a lone surrogate U+{found:04X} at character {at}; errors='replace' takes it out")


def _as_document(texts: Iterable[_Text], name: object, metadata: object, rows: DocumentRows | None) -> Iterator[_Text]:
    """These texts as one document."""
    if rows:
        rows.begin(name, metadata)
    yield from texts
    if rows:
        rows.end()


_NEWLINE = b"\n", 1

_Batch = list[tuple[bytes, bytes, str]]
"""Documents of a megabyte or less: name, metadata, text."""


def _read_documents(
    source: DocumentInputs, reading: InputOptions, ending: _Ending, rows: DocumentRows
) -> Iterator[_Text]:
    rows.unique = rows.unique or source.unique
    if not ending.is_newline:
        yield _NEWLINE
    batch: _Batch = []
    size = 0
    for item in source.items:
        name, text, metadata = _parts_of(item, rows.count + len(batch))
        if isinstance(text, str) and len(text) < PIECE_BYTES:
            number = rows.count + len(batch)
            batch.append((encode_name(name, number), encode_metadata(metadata, number), text))
            size += len(text) + len(batch[-1][0]) + len(batch[-1][1])
            if size >= PIECE_BYTES:
                yield _pass_batch(batch, reading, rows)
                batch, size = [], 0
            continue
        yield _pass_batch(batch, reading, rows)
        batch, size = [], 0
        texts = _read_file(Path(text), reading) if isinstance(text, os.PathLike) else _slices(text, name, reading)
        yield from _as_document(texts, name, metadata, rows)
        if not ending.is_newline:
            yield _NEWLINE
    yield _pass_batch(batch, reading, rows)


def _parts_of(item: Any, number: int) -> tuple[Any, Any, Any]:
    """Name, text and metadata of a document."""
    match item:
        case (name, text):
            metadata = None
        case (name, text, metadata):
            pass
        case str() | os.PathLike():
            name, text, metadata = str(number), item, None
        case _:
            kind = type(item).__name__
            raise InvalidText(
                f"document {number}: expected a text, (name, text) or (name, text, metadata), found {kind}"
            )
    name = str(number) if name is None else name
    if not isinstance(text, str | os.PathLike):
        raise InvalidText(f"document {number} ({name!r}): its text must be a str or a path, not {type(text).__name__}")
    return name, text, metadata


def _slices(text: str, name: object, reading: InputOptions) -> Iterator[_Text]:
    for start in range(0, len(text), PIECE_BYTES):
        yield _encode(_check_surrogates(text[start : start + PIECE_BYTES], start, reading, f"document {name!r}"))


def _pass_batch(batch: _Batch, reading: InputOptions, rows: DocumentRows) -> _Text:
    """The text of some documents, each of which ends a line; reports them to `rows`."""
    whole = "".join([text if not text or text.endswith("\n") else text + "\n" for _, _, text in batch])
    is_ascii = whole.isascii()
    try:
        data = whole.encode()
    except UnicodeEncodeError:
        batch = [
            (name, metadata, _check_surrogates(text, 0, reading, f"document {name.decode()!r}"))
            for name, metadata, text in batch
        ]
        data = _SURROGATES.sub("\ufffd", whole).encode()
    rows.add_passed(
        (
            name, metadata, len(text), len(text) if is_ascii else len(text.encode()), text.count("\n"),
            int(bool(text) and not text.endswith("\n")),
        )
        for name, metadata, text in batch
    )  # fmt: skip
    return data, len(whole)


def prefixes_of(paths: Sequence[os.PathLike[str]], reading: InputOptions) -> dict[Path, str]:
    """The prefix of document names for each path, so that no two paths give the same name.

    It is empty if they already differ, else the name of the folder. Raises `InvalidText` if that does not separate
    them.
    """
    given = list(dict.fromkeys(map(Path, paths)))
    if len(given) < 2:
        return {}
    named = {path: _names(path, reading) for path in given}
    counts = Counter(name for names in named.values() for name in names)
    clashing = [path for path in given if any(counts[name] > 1 for name in named[path])]
    prefixes = {path: f"{(path if path.is_dir() else path.parent).resolve().name}/" for path in clashing}
    seen: dict[str, Path] = {}
    for path in given:
        for name in named[path]:
            whole = prefixes.get(path, "") + (name.rpartition("/")[2] if path in prefixes and path.is_file() else name)
            if whole in seen:
                raise InvalidText(f"{seen[whole]} and {path} both give a document named {whole!r}: store them apart")
            seen[whole] = path
    return prefixes


def _names(path: Path, reading: InputOptions) -> set[str]:
    """The names of the documents from a path, without a prefix."""
    if not path.is_dir():
        return {_file_name(path)}
    return {name for name in Folder(path, follow_links=reading.follow_links).files() if is_selected(name, reading)}


def _file_name(path: Path) -> str:
    """The name of the document from a file that is named by itself: its path as given, without `..`."""
    return path.name if path.is_absolute() else "/".join(part for part in path.parts if part != "..")


def document_name(path: Path, prefix: str) -> str:
    """The name of the document from a file that is named by itself, after a prefix of `prefixes_of`."""
    return displayable(prefix + path.name if prefix else _file_name(path))


def file_names(paths: Sequence[Path], reading: InputOptions) -> Iterator[tuple[Path, str]]:
    """Each path with the name of its document; a folder with the prefix of its documents' names.

    Raises `NotFound`, and `InvalidText` for two paths with the same name.
    """
    for path in paths:
        if not path.exists():
            raise NotFound(f"{path}: no such file or folder")
    prefixes = prefixes_of(paths, reading)
    for path in paths:
        prefix = prefixes.get(path, "")
        yield path, prefix if path.is_dir() else document_name(path, prefix)


def is_text(folder: Folder, name: str, reading: InputOptions) -> bool:
    """Whether an upload would take a selected file of a folder: it is text."""
    with folder.open(name) as file:
        if is_binary(file.peek()[:HEAD_BYTES], reading.encoding):
            return False
        return reading.errors != "skip" or _decodes(file, reading)


def _read_path(
    path: Path, reading: InputOptions, ending: _Ending, rows: DocumentRows | None, prefix: str = ""
) -> Iterator[_Text]:
    if not path.is_dir():
        if reading.errors == "skip" and path.is_file():
            with open_file(path) as file:
                if not _decodes(file, reading):
                    reading.note(f"left out {path}, which is not {reading.encoding}")
                    return
        yield from _as_document(_read_file(path, reading), document_name(path, prefix), None, rows)
        return
    folder = Folder(path, follow_links=reading.follow_links)
    binaries, undecodable = [], []
    for name in folder.files():
        if not is_selected(name, reading):
            continue
        with folder.open(name) as file:
            if is_binary(file.peek()[:HEAD_BYTES], reading.encoding):
                binaries.append(name)
                continue
            if reading.errors == "skip" and not _decodes(file, reading):
                undecodable.append(name)
                continue
            if reading.header:
                header = reading.header.replace("{path}", displayable(prefix + name))
                yield _encode(("" if ending.is_newline else "\n") + header)
            texts = read_stream(file, str(path / name), reading)
            yield from _as_document(texts, displayable(prefix + name), None, rows)
    note_links(folder, path, reading)
    note_binaries(path, binaries, reading)
    _note_kind(path, undecodable, f"non-{reading.encoding}", reading)


def note_links(folder: Folder, path: Path, reading: InputOptions) -> None:
    """Name the links, and the pipes and their like, that a folder's list left out."""
    left_out = {name: reason for name, reason in folder.left_out.items() if is_selected(name, reading)}
    if left_out:
        reading.note(f"{path}: {describe_left_out(left_out)}")


def note_binaries(path: Path, names: Sequence[str], reading: InputOptions) -> None:
    """Name some binary files of a folder that are left out, and count them."""
    _note_kind(path, names, "binary", reading)


def _note_kind(path: Path, names: Sequence[str], kind: str, reading: InputOptions) -> None:
    if names:
        more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
        count = f"{len(names):,} {kind} file" + "s" * (len(names) > 1)
        reading.note(f"{path}: left out {count}: {', '.join(names[:_NAMED])}{more}")


def _decodes(file: IO[bytes], reading: InputOptions) -> bool:
    """Whether a file is text all through; leaves it at its beginning."""
    decoder = codecs.getincrementaldecoder(reading.encoding)()
    try:
        data = file.read(PIECE_BYTES)
        if _wide_encoding(data, reading):
            return False
        while data:
            decoder.decode(data)
            data = file.read(PIECE_BYTES)
        decoder.decode(b"", True)
    except UnicodeError:
        return False
    finally:
        file.seek(0)
    return True


def displayable(name: str) -> str:
    """A file name as text; bytes in it that are not UTF-8 become U+FFFD."""
    return name.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


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


def utf_16_without_mark(head: bytes) -> str:
    """The encoding of a file that begins with `head`, if it is UTF-16 without a byte order mark, mostly Latin letters.

    Such a file is also valid UTF-8, with a NUL next to each letter, but no search would find a word in it.
    """
    if len(head) < 8:
        return ""
    for encoding, zeros, letters in (("utf-16-le", head[1::2], head[::2]), ("utf-16-be", head[::2], head[1::2])):
        if 10 * zeros.count(0) > 9 * len(zeros) and b"\0" not in letters:
            return encoding
    return ""


def _wide_encoding(data: bytes, reading: InputOptions) -> str:
    """What a file that begins so is in, if it is UTF-16 and to be read as letters of one byte."""
    return utf_16_without_mark(data[:HEAD_BYTES]) if "a".encode(reading.encoding) == b"a" else ""


def is_selected(relative: str, reading: InputOptions) -> bool:
    def matches(globs: tuple[str, ...]) -> bool:
        return any(fnmatch(relative, glob) or fnmatch(relative.rpartition("/")[2], glob) for glob in globs)

    return (not reading.include or matches(reading.include)) and not matches(reading.exclude)


def _read_file(path: Path, reading: InputOptions) -> Iterator[_Text]:
    try:
        with open_file(path) as file:
            yield from read_stream(file, str(path), reading)
    except FileNotFoundError:
        raise NotFound(f"{path}: no such file") from None


def read_stream(file: IO[bytes], name: str, reading: InputOptions) -> Iterator[_Text]:
    """Yield the text of an open binary file; messages call it `name`."""
    decoder = Decoder(name, reading)
    while data := file.read(PIECE_BYTES):
        yield decoder.feed(data)
    yield decoder.finish()


class Decoder:
    """Decodes one stream; its errors name the byte offset."""

    def __init__(self, name: str, reading: InputOptions, start: int = 0):
        """`start`: the bytes of the stream that are not read here."""
        self._name = name
        self._reading = reading
        errors = "replace" if reading.errors == "replace" else "strict"
        self._decoder = codecs.getincrementaldecoder(reading.encoding)(errors)
        self._keeps = codecs.lookup(reading.encoding).name == "utf-8" and errors == "strict"
        """Whether the text equals the bytes that were read."""
        self._read_bytes = start
        self._begun = start > 0

    def feed(self, data: bytes, final: bool = False) -> _Text:
        pending, keeps = self._decoder.getstate()[0], self._keeps and self._begun
        if keeps and not pending and data.isascii():
            self._read_bytes += len(data)
            return data, len(data)
        if not self._read_bytes and (wide := _wide_encoding(data, self._reading)):
            raise InvalidText(f"{self._name}: not {self._reading.encoding}: UTF-16; give its encoding, {wide}")
        try:
            text = self._decoder.decode(data, final)
        except UnicodeDecodeError as error:
            at = self._read_bytes - len(pending) + error.start
            found = error.object[error.start : error.start + 1].hex()
            raise InvalidText(
                f"{self._name}: not {self._reading.encoding} at byte {at} (0x{found}): {error.reason}; "
                f"exclude it, give its encoding, replace what is not text (errors='replace'), or leave such files out "
                f"(errors='skip')"
            ) from None
        except UnicodeError as error:  # an error of the whole stream, such as UTF-16 without its byte order mark
            reason = " ".join(str(error).split())
            raise InvalidText(
                f"{self._name}: not {self._reading.encoding}: {reason}; exclude it, or give its encoding"
            ) from None
        self._read_bytes += len(data)
        if keeps:
            data = pending + data
            return data[: len(data) - len(self._decoder.getstate()[0])], len(text)
        if text and not self._begun:
            self._begun = True
            if text[0] == "\ufeff":
                self._reading.note(f"{self._name}: dropped a byte order mark")
                text = text[1:]
        return _encode(text)

    def finish(self) -> _Text:
        return self.feed(b"", final=True)
