"""Read the rows of files of JSON lines as documents, in bounded memory."""

from __future__ import annotations

import codecs
import io
import json
import os
from collections.abc import Iterator
from typing import Any

from monocontext.errors import InvalidText, NotFound
from monocontext.stores.regular_file import open_file
from monocontext.writing.decoding import InputOptions

Row = tuple[str | None, str, dict[str, Any]]  # a document: name, text, metadata


def read_json_lines(
    path: str | os.PathLike[str], *, text_field: str = "text", name_field: str | None = None, encoding: str = "utf-8"
) -> Iterator[Row]:
    """Yield the rows of a file as items for `documents`. The fields other than text and name become metadata.

    Without `name_field`, the name of a document is its number. Raises `InvalidText`, with file and line, for a line
    that is not such a row in this encoding, `NotFound` for a missing file, `ValueError` for an unknown encoding.
    """
    InputOptions(encoding=encoding)  # raises `ValueError` for an unknown encoding
    encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    for location, row in _rows(path, encoding):
        if not isinstance(row, dict):
            raise InvalidText(f"{location}: a row must be a JSON object, not {json.dumps(row)[:80]}")
        for field in (text_field, name_field):
            if field is not None and field not in row:
                fields = ", ".join(map(str, row)) or "none"
                raise InvalidText(f"{location}: no field {field!r}; the fields of this row are: {fields[:200]}")
        text = row.pop(text_field)
        if not isinstance(text, str):
            raise InvalidText(f"{location}: the field {text_field!r} must be text, not {json.dumps(text)[:80]}")
        if name_field is None:
            yield None, text, row
            continue
        name = text if name_field == text_field else row.pop(name_field)
        if type(name) not in (str, int):
            value = json.dumps(name)[:80]
            raise InvalidText(f"{location}: the field {name_field!r} must be text or an integer, not {value}")
        yield str(name), text, row


def _rows(path: str | os.PathLike[str], encoding: str) -> Iterator[tuple[str, Any]]:
    """Yield `FILE:NUMBER` and the JSON value of each line that is not blank."""
    name, number = os.fspath(path), 0  # the last line that was read
    try:
        file = open_file(path)
    except FileNotFoundError:
        raise NotFound(f"{name}: no such file") from None
    with file, io.TextIOWrapper(file, encoding=encoding, newline="\n") as lines:
        try:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield f"{name}:{number}", json.loads(line)
        except UnicodeError as error:
            problem = f"not {encoding.removesuffix('-sig')} on this line or soon after it: {error}"
            raise InvalidText(f"{name}:{number + 1}: {problem}; give the file's encoding with --encoding") from None
        except (ValueError, RecursionError) as error:
            raise InvalidText(f"{name}:{number}: not JSON: {error}") from None
