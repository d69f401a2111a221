"""Cut a text into the pieces that the page shows: whole lines, numbered within their documents."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from monocontext.format.documents import Document
from monocontext.text.monocontext import Monocontext

PIECE_CHARACTERS = 8_000  # the most characters in a piece, each up to 12 bytes in JSON
PIECE_LINES = 300  # the most lines in a piece
_LEAD_LINES = 8  # the most lines that are shown before the target of a jump
_LEAD_CHARACTERS = 2_000  # the most characters that are shown before the target of a jump
NAME_CHARACTERS = 300  # the most characters of the name of a document or a source
_METADATA_CHARACTERS = 500  # the most characters of the metadata of a document

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a line with its newline, or the rest of a text that does not end in one


class Pieces:
    """The pieces of one text, as values for JSON. Each costs the GETs of a slice, and at most 4 more."""

    def __init__(self, text: Monocontext) -> None:
        self._text = text

    def around(self, character: int) -> dict[str, Any]:
        """The piece that begins a few lines before a character, which is its `mark`."""
        span = self._text.span
        number = span.source.line_of(character)
        lead = span.line_start(max(0, number - _LEAD_LINES))
        if character - lead > _LEAD_CHARACTERS:
            lead = max(span.line_start(number), character - _LEAD_CHARACTERS)
        return self.starting_at(lead, mark=character)

    def starting_at(self, start: int, *, mark: int | None = None) -> dict[str, Any]:
        """The piece of whole lines that begins at a character; a line that is longer than a piece is cut."""
        size = len(self._text)
        stop = min(size, start + PIECE_CHARACTERS)
        lines = _LINE.findall(self._text.substring(start, stop))
        shown = lines[:PIECE_LINES]
        if stop < size and len(shown) == len(lines) > 1 and not shown[-1].endswith("\n"):
            shown.pop()
        return self._piece(start, shown, mark)

    def ending_at(self, stop: int) -> dict[str, Any]:
        """The piece of whole lines that ends before a character; a line that is longer than a piece is cut."""
        start = max(0, stop - PIECE_CHARACTERS)
        lines = _LINE.findall(self._text.substring(start, stop))
        shown = lines[-PIECE_LINES:]
        if start > 0 and len(shown) == len(lines) > 1:
            shown.pop(0)
        return self._piece(stop - sum(map(len, shown)), shown, None)

    def _piece(self, start: int, lines: list[str], mark: int | None) -> dict[str, Any]:
        stop, rows = start + sum(map(len, lines)), list(self._rows(start, lines))
        return {"start": start, "stop": stop, "characters": len(self._text), "mark": mark, "rows": rows}

    def _rows(self, start: int, lines: list[str]) -> Iterator[dict[str, Any]]:
        """Yield a row for each line. The first row of a document describes it; `line` is None between documents."""
        if not lines:
            return
        table = self._text.documents.table
        [number] = table.first_ending_after([start])  # of the document that holds the line, or of the next one
        offset, described = start, -1  # the number of the last document that a row describes
        for line_number, line in enumerate(lines, self._text.span.source.line_of(start) + 1):
            while number < table.count and table.document(number).stop <= offset:
                number += 1
            document = table.document(number) if number < table.count else None
            if document is not None and document.start > offset:  # the line is before it
                document = None
            row: dict[str, Any] = {"at": offset, "line": line_number, "text": line.removesuffix("\n")}
            if table.count:
                row["line"] = None if document is None else line_number - document.first_line
            if document is not None and number != described:
                described = number
                row["document"] = {
                    "number": number, "name": document.name[:NAME_CHARACTERS], "characters": len(document),
                    "metadata": metadata_line(self._text, document),
                }  # fmt: skip
            yield row
            offset += len(line)


def metadata_line(text: Monocontext, document: Document) -> str:
    """The metadata of a document on one line, with the time of its file as a date."""
    values = dict(text.documents.metadata_of(document.number))
    file = values.get("file")
    if isinstance(file, dict) and isinstance(file.get("modified_ns"), int):
        modified = datetime.fromtimestamp(file["modified_ns"] / 1e9, UTC)
        values["file"] = f"modified {modified:%Y-%m-%d %H:%M} UTC"
    parts = (f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items())
    return ", ".join(parts)[:_METADATA_CHARACTERS]
