"""Read strings, bytes, files, directories and documents as one stream of UTF-8, in bounded memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.format.documents import encode_metadata, encode_name
from monocontext.writing.decoding import PIECE_BYTES, Decoder, Utf8, encode_utf8
from monocontext.writing.documents import DocumentInputs, DocumentRows, RecordedRows
from monocontext.writing.input_options import InputOptions
from monocontext.writing.sources import Source as File
from monocontext.writing.sources import find_files, named_file, note_left_out, prefixes_of, read_found, read_source

Source = str | bytes | bytearray | memoryview | os.PathLike[str] | DocumentInputs

_SURROGATES = re.compile("[\ud800-\udfff]")


def read_pieces(
    sources: Source | Iterable[Source], reading: InputOptions, rows: DocumentRows | None = None
) -> Iterator[bytes]:
    """Yield the text of the sources, in order, as UTF-8 in pieces that end between characters.

    A `str` is text; an `os.PathLike` is a file or a directory; `bytes` are encoded text. Neighbouring `bytes` are one
    stream: a character may begin in one and end in the next. Each file, and each item of `DocumentInputs`, becomes a
    document of `rows`. Raises `InvalidText` with the input and the offset of bytes that are not text, and `NotFound`
    for a missing file.
    """
    batch: list[bytes] = []
    size = 0
    for data in _read_texts(sources, reading, rows):
        batch.append(data)
        size += len(data)
        if size >= PIECE_BYTES // 2:  # small texts are joined
            yield b"".join(batch)
            batch, size = [], 0
    if size:
        yield b"".join(batch)


class _Ending:
    """Whether the text so far ends in a newline."""

    is_newline = True


def _read_texts(
    sources: Source | Iterable[Source], reading: InputOptions, rows: DocumentRows | None
) -> Iterator[bytes]:
    ending = _Ending()
    rows = None if isinstance(sources, str) else rows  # a bare text has no documents: nothing is counted for them
    return _reported(_read_sources(sources, reading, ending, rows), ending, rows)


def _reported(texts: Iterable[Utf8], ending: _Ending, rows: DocumentRows | RecordedRows | None) -> Iterator[bytes]:
    """Yield texts that are not empty, and report them."""
    for data, characters in texts:
        if data:
            ending.is_newline = data.endswith(b"\n")
            if rows:
                rows.add_text(data, characters)
            yield data


def read_files(
    files: Iterable[File],
    reading: InputOptions,
    rows: RecordedRows,
    left_out: dict[str, list[str]],
    ends_line: bool,
) -> Iterator[bytes]:
    """Yield the text of files, or ranges of files, as `read_pieces` does. With `ends_line`, it ends in a newline.

    `left_out` gets those that are no text (`sources.note_left_out`).
    """
    ending = _Ending()

    def texts() -> Iterator[Utf8]:
        yield from _read_files(files, reading, ending, rows, left_out)
        if ends_line and not ending.is_newline:
            yield _NEWLINE

    return _reported(texts(), ending, rows)


def _read_sources(
    sources: Source | Iterable[Source], reading: InputOptions, ending: _Ending, rows: DocumentRows | None
) -> Iterator[Utf8]:
    if isinstance(sources, str | bytes | bytearray | memoryview | os.PathLike | DocumentInputs):
        sources = [sources]
    elif not isinstance(sources, Iterable):
        kind = type(sources).__name__
        raise TypeError(f"expected str, bytes, a path, documents, or an iterable of these, not {kind}")
    stream: Decoder | None = None
    characters = 0
    if isinstance(sources, list | tuple):
        prefixes = prefixes_of([item for item in sources if isinstance(item, os.PathLike)], reading)
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
                yield encode_utf8(_check_surrogates(source[start : start + PIECE_BYTES], characters + start, reading))
            characters += len(source)
        elif isinstance(source, os.PathLike):
            left_out: dict[str, list[str]] = {}
            yield from _read_files(find_files([Path(source)], reading, prefixes), reading, ending, rows, left_out)
            note_left_out(left_out, reading)
        elif isinstance(source, DocumentInputs) and rows:
            yield from _read_documents(source, reading, ending, rows)
        else:
            raise TypeError(f"source {number} is {type(source).__name__}: expected str, bytes, a path or documents")
    if stream:
        yield stream.finish()


def _check_surrogates(text: str, before: int, reading: InputOptions, what: str = "text") -> str:
    """Return the text, with lone surrogates refused or replaced: they have no UTF-8 form."""
    try:
        text.isascii() or text.encode()  # takes a quarter of the time of a search for surrogates
        return text
    except UnicodeEncodeError as error:
        if reading.errors == "replace":
            return _SURROGATES.sub("\ufffd", text)
        offset, result = before + error.start, ord(text[error.start])
    raise InvalidText(
        f"{what}: a lone surrogate U+{result:04X} at character {offset}; errors='replace' stores U+FFFD in its place"
    )


_NEWLINE: Utf8 = b"\n", 1

_Batch = list[tuple[bytes, bytes, str]]
"""Documents of a megabyte or less: name, metadata, text."""


def _read_documents(
    source: DocumentInputs, reading: InputOptions, ending: _Ending, rows: DocumentRows
) -> Iterator[Utf8]:
    rows.unique = rows.unique or source.unique
    if not ending.is_newline:
        yield _NEWLINE
    batch: _Batch = []
    size = 0
    for item in source.items:
        name, text, metadata = parts_of(item, rows.count + len(batch))
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
        is_path = isinstance(text, os.PathLike)
        texts = read_source(named_file(Path(text)), reading) if is_path else _slices(text, name, reading)
        rows.begin(name, metadata)
        yield from texts
        rows.end_document()
        if not ending.is_newline:
            yield _NEWLINE
    yield _pass_batch(batch, reading, rows)


def parts_of(item: Any, number: int) -> tuple[Any, Any, Any]:
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


def _slices(text: str, name: object, reading: InputOptions) -> Iterator[Utf8]:
    for start in range(0, len(text), PIECE_BYTES):
        yield encode_utf8(_check_surrogates(text[start : start + PIECE_BYTES], start, reading, f"document {name!r}"))


def _pass_batch(batch: _Batch, reading: InputOptions, rows: DocumentRows) -> Utf8:
    """Join small documents, each with a newline at its end, and record them in `rows`."""
    joined = "".join([text if not text or text.endswith("\n") else text + "\n" for _, _, text in batch])
    is_ascii = joined.isascii()
    try:
        data = joined.encode()
    except UnicodeEncodeError:
        batch = [
            (name, metadata, _check_surrogates(text, 0, reading, f"document {name.decode()!r}"))
            for name, metadata, text in batch
        ]
        data = _SURROGATES.sub("\ufffd", joined).encode()
    rows.add_documents(
        (
            name, metadata, len(text), len(text) if is_ascii else len(text.encode()), text.count("\n"),
            int(bool(text) and not text.endswith("\n")),
        )
        for name, metadata, text in batch
    )  # fmt: skip
    return data, len(joined)


def _read_files(
    files: Iterable[File],
    reading: InputOptions,
    ending: _Ending,
    rows: DocumentRows | RecordedRows | None,
    left_out: dict[str, list[str]],
) -> Iterator[Utf8]:
    for file, texts in read_found(files, reading, left_out):
        if file.start == 0:
            if file.where and reading.header:
                header = reading.header.replace("{path}", file.name)
                yield encode_utf8(("" if ending.is_newline else "\n") + header)
            if rows:
                rows.begin(file.name)
        yield from texts
        if rows and file.is_last:
            rows.end_document()
