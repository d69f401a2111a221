"""Read strings, bytes, files, directories and documents as one stream of UTF-8, in bounded memory."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from monocontext.errors import InvalidText
from monocontext.records import NamedTuple
from monocontext.writing.decoding import PIECE_BYTES, Decoder, InputOptions, Utf8
from monocontext.writing.documents import DocumentInputs, DocumentRows, documents
from monocontext.writing.sources import find_files, named_file, note_left_out, prefixes_of, read_found, read_source

Source = str | bytes | bytearray | memoryview | os.PathLike[str] | DocumentInputs

_SURROGATES = re.compile("[\ud800-\udfff]")
_NEWLINE: Utf8 = b"\n", 1


class Pieces(NamedTuple):
    """The text of a document that is read while it is stored."""

    pieces: Iterator[Utf8]


def read_pieces(
    sources: Source | Iterable[Source] | Mapping[str, str], reading: InputOptions, rows: DocumentRows | None = None
) -> Iterator[bytes]:
    """The text of sources as UTF-8, in pieces that end between characters. Neighbouring `bytes` are one stream. Files
    and `DocumentInputs` add documents to `rows`. Iterating raises `InvalidText` and `NotFound`."""
    if isinstance(sources, Mapping):
        sources = documents(sources)
    # A single text has no documents, so nothing is counted.
    return _Reader(reading, None if isinstance(sources, str) else rows).pieces(sources)


class _Reader:
    """Reads sources one after another, and counts their text in `rows`."""

    def __init__(self, reading: InputOptions, rows: DocumentRows | None) -> None:
        self.reading, self.rows = reading, rows
        self.ends_line = True  # whether the text so far ends in a newline

    def pieces(self, sources: Source | Iterable[Source]) -> Iterator[bytes]:
        """Yield the text of the sources. Short texts are joined to pieces of at least half of `PIECE_BYTES`."""
        batch: list[bytes] = []
        size = 0
        for data, characters in self._read(sources):
            if not data:
                continue
            self.ends_line = data.endswith(b"\n")
            if self.rows:
                self.rows.add_counts(characters, len(data), data.count(b"\n"))
            batch.append(data)
            size += len(data)
            if size >= PIECE_BYTES // 2:
                yield b"".join(batch)
                batch, size = [], 0
        if size:
            yield b"".join(batch)

    def _read(self, sources: Source | Iterable[Source]) -> Iterator[Utf8]:
        items: Any = sources
        if isinstance(sources, str | bytes | bytearray | memoryview | os.PathLike | DocumentInputs):
            items = [sources]
        elif not isinstance(sources, Iterable):
            kind = type(sources).__name__
            raise TypeError(f"expected str, bytes, a path, documents, or an iterable of these, not {kind}")
        stream: Decoder | None = None
        characters = 0
        paths = [item for item in items if isinstance(item, os.PathLike)] if isinstance(items, list | tuple) else []
        prefixes = prefixes_of(paths, self.reading)
        for number, source in enumerate(items):
            if isinstance(source, bytes | bytearray | memoryview):
                stream = stream or Decoder(f"bytes of source {number}", self.reading)
                yield stream.feed(bytes(source))
                continue
            if stream:
                yield stream.feed(b"", final=True)
                stream = None
            if isinstance(source, str):
                yield from self._encode(source, "text", characters)
                characters += len(source)
            elif isinstance(source, os.PathLike):
                yield from self._files(Path(source), prefixes)
            elif isinstance(source, DocumentInputs) and self.rows:
                yield from self._documents(source, self.rows)
            else:
                raise TypeError(f"source {number} is {type(source).__name__}: expected str, bytes, a path or documents")
        if stream:
            yield stream.feed(b"", final=True)

    def _files(self, path: Path, prefixes: dict[Path, str]) -> Iterator[Utf8]:
        left_out: dict[str, list[str]] = {}
        for file, texts in read_found(find_files([path], self.reading, prefixes), self.reading, left_out):
            if file.container and self.reading.header:
                header = self.reading.header.replace("{path}", file.name)
                yield from self._encode(("" if self.ends_line else "\n") + header, "header")
            if self.rows:
                self.rows.begin(file.name)
            yield from texts
            if self.rows:
                self.rows.end_document()
        note_left_out(left_out, self.reading)

    def _documents(self, source: DocumentInputs, rows: DocumentRows) -> Iterator[Utf8]:
        if not self.ends_line:
            yield _NEWLINE
        for item in source.items:
            name, text, metadata = parts_of(item, rows.count)
            rows.begin(name, metadata)
            if isinstance(text, str):
                yield from self._encode(text, f"document {name!r}")
            elif isinstance(text, Pieces):
                yield from text.pieces
            else:
                yield from read_source(named_file(Path(text)), self.reading)
            rows.end_document()
            if not self.ends_line:
                yield _NEWLINE

    def _encode(self, text: str, name: str, before: int = 0) -> Iterator[Utf8]:
        """Yield a text in UTF-8, with lone surrogates refused or replaced: they have no UTF-8 form."""
        for start in range(0, len(text), PIECE_BYTES):
            piece = text[start : start + PIECE_BYTES]
            try:
                yield piece.encode(), len(piece)
            except UnicodeEncodeError as error:
                if self.reading.errors != "replace":
                    raise InvalidText(
                        f"{name}: a lone surrogate U+{ord(piece[error.start]):04X} at character "
                        f"{before + start + error.start}; errors='replace' stores U+FFFD in its place"
                    ) from None
                yield _SURROGATES.sub("\ufffd", piece).encode(), len(piece)


def parts_of(item: Any, number: int) -> tuple[Any, Any, Any]:
    """The name, the text and the metadata of the document `number`. Raises `InvalidText` if it has another form."""
    parts = (None, item) if isinstance(item, str | os.PathLike) else item
    if not isinstance(parts, tuple | list) or len(parts) not in (2, 3):
        kind = type(item).__name__
        raise InvalidText(f"document {number}: expected a text, (name, text) or (name, text, metadata), found {kind}")
    name, text, metadata = (*parts, None)[:3]
    name = str(number) if name is None else name
    if not isinstance(text, str | os.PathLike | Pieces):
        raise InvalidText(f"document {number} ({name!r}): its text must be a str or a path, not {type(text).__name__}")
    return name, text, metadata
