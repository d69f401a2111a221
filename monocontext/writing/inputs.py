"""Read strings, bytes, files, folders and documents as one stream of UTF-8, in bounded memory."""

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
from monocontext.writing.sources import SourceText, find_files, named_file, note_left_out, prefixes_of, read_texts

Source = str | bytes | bytearray | memoryview | os.PathLike[str] | DocumentInputs

_SURROGATES = re.compile("[\ud800-\udfff]")
_NEWLINE: Utf8 = b"\n", 1


class DocumentPieces(NamedTuple):
    """The text of a document in pieces, which are read while they are stored."""

    pieces: Iterator[Utf8]


def read_pieces(
    sources: Source | Iterable[Source] | Mapping[str, str], reading: InputOptions, rows: DocumentRows | None = None
) -> Iterator[bytes]:
    """Yield the text of sources as UTF-8, in pieces that end between characters. Successive `bytes` are one stream.
    `rows` gets a document for each file and each item of `DocumentInputs`. Raises `InvalidText`, `NotFound`."""
    if isinstance(sources, Mapping):
        sources = documents(sources)
    # A single text has no documents, so its parts need not be counted.
    return _Reader(reading, None if isinstance(sources, str) else rows).pieces(sources)


class _Reader:
    """Reads sources one after another, and reports their text to `rows`."""

    def __init__(self, reading: InputOptions, rows: DocumentRows | None) -> None:
        self.reading, self.rows = reading, rows
        self.ends_line = True  # whether the text so far ends in a newline

    def pieces(self, sources: Source | Iterable[Source]) -> Iterator[bytes]:
        """Yield the text of the sources. Short texts are joined into pieces of at least half of `PIECE_BYTES`."""
        batch: list[bytes] = []
        size = 0  # in bytes
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
            raise TypeError(f"sources must be a str, bytes, a path, documents, or an iterable of these, not {kind}")
        stream: Decoder | None = None  # decodes successive sources of bytes
        characters = 0  # in the sources that are strings so far
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
                yield from self._read_files(Path(source), prefixes)
            elif isinstance(source, DocumentInputs) and self.rows:
                yield from self._read_documents(source, self.rows)
            else:
                raise TypeError(f"source {number} must be str, bytes, a path or documents, not {type(source).__name__}")
        if stream:
            yield stream.feed(b"", final=True)

    def _read_files(self, path: Path, prefixes: dict[Path, str]) -> Iterator[Utf8]:
        left_out: list[SourceText] = []
        for item in read_texts(find_files([path], self.reading, prefixes), self.reading):
            if item.not_text:
                left_out.append(item)
                continue
            if item.source.container and self.reading.header:
                header = self.reading.header.replace("{path}", item.source.name)
                yield from self._encode(("" if self.ends_line else "\n") + header, "header")
            if self.rows:
                self.rows.begin(item.source.name)
            yield from item.pieces
            if self.rows:
                self.rows.end_document()
        note_left_out(left_out, self.reading)

    def _read_documents(self, source: DocumentInputs, rows: DocumentRows) -> Iterator[Utf8]:
        if not self.ends_line:
            yield _NEWLINE
        for item in source.items:
            name, text, metadata = parts_of(item, rows.count)
            rows.begin(name, metadata)
            if isinstance(text, str):
                yield from self._encode(text, f"document {name!r}")
            elif isinstance(text, DocumentPieces):
                yield from text.pieces
            else:
                for document in read_texts([named_file(Path(text))], self.reading):
                    yield from document.pieces
            rows.end_document()
            if not self.ends_line:
                yield _NEWLINE

    def _encode(self, text: str, label: str, characters_before: int = 0) -> Iterator[Utf8]:
        """Yield a text in UTF-8. A lone surrogate, which UTF-8 cannot encode, is replaced or raises `InvalidText`."""
        for start in range(0, len(text), PIECE_BYTES):
            piece = text[start : start + PIECE_BYTES]
            try:
                yield piece.encode(), len(piece)
            except UnicodeEncodeError as error:
                if self.reading.errors != "replace":
                    raise InvalidText(
                        f"{label}: a lone surrogate U+{ord(piece[error.start]):04X} at character "
                        f"{characters_before + start + error.start}; errors='replace' stores U+FFFD in its place"
                    ) from None
                yield _SURROGATES.sub("\ufffd", piece).encode(), len(piece)


def parts_of(item: Any, number: int) -> tuple[Any, Any, Any]:
    """The name, the text and the metadata of a document. Raises `InvalidText` for an item that is not a document."""
    parts = (None, item) if isinstance(item, str | os.PathLike) else item
    if not isinstance(parts, tuple | list) or len(parts) not in (2, 3):
        kind = type(item).__name__
        raise InvalidText(f"document {number}: expected a text, (name, text) or (name, text, metadata), found {kind}")
    name, text, metadata = (*parts, None)[:3]
    name = str(number) if name is None else name
    if not isinstance(text, str | os.PathLike | DocumentPieces):
        raise InvalidText(f"document {number} ({name!r}): its text must be a str or a path, not {type(text).__name__}")
    return name, text, metadata
