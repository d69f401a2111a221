"""Read the rows of tables as documents, in bounded memory: JSON lines and CSV."""

from __future__ import annotations

import codecs
import csv
import io
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal, get_args

from monocontext.errors import InvalidText, NotFound
from monocontext.stores.regular_file import open_file

Kind = Literal["jsonl", "csv"]
TABLE_KINDS = get_args(Kind)

Row = tuple[str | None, str, dict[str, Any]]
"""Name, text, metadata: a document."""


def table_documents(
    path: str | os.PathLike[str],
    kind: Kind,
    *,
    text_field: str = "text",
    name_field: str | None = None,
    encoding: str = "utf-8",
) -> Iterator[Row]:
    """Yield the rows of a file as items for `documents`. All fields except text and name are metadata.

    Without `name_field` the name of a document is its number. Raises `InvalidText`, with file and line, for a row
    without these fields or with an invalid text, and `NotFound` for a missing file.
    """
    if kind not in TABLE_KINDS:
        raise ValueError(f"the kind of a table must be one of {', '.join(TABLE_KINDS)}, not {kind!r}")
    encoding = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    rows = {"jsonl": _json_rows, "csv": _csv_rows}[kind](path, encoding)
    for where, row in rows:
        for field in (text_field, name_field):
            if field is not None and field not in row:
                fields = ", ".join(map(str, row)) or "none"
                raise InvalidText(f"{where}: no field {field!r}; its fields are {fields[:200]}")
        text = row.pop(text_field)
        name = row.pop(name_field) if name_field is not None and name_field != text_field else text
        if not isinstance(text, str):
            raise InvalidText(
                f"{where}: field {text_field!r} must be a str, not {type(text).__name__}: {str(text)[:80]!r}"
            )
        if type(name) not in (str, int):
            raise InvalidText(f"{where}: field {name_field!r} must be a str, not {type(name).__name__}")
        yield None if name_field is None else str(name), text, row


@contextmanager
def _open_text(path: str | os.PathLike[str], encoding: str, newline: str) -> Iterator[io.TextIOWrapper]:
    try:
        with open_file(path) as file:
            yield io.TextIOWrapper(file, encoding=encoding, newline=newline)
    except FileNotFoundError:
        raise NotFound(f"{os.fspath(path)}: no such file") from None


def _json_rows(path: str | os.PathLike[str], encoding: str) -> Iterator[tuple[str, dict[str, Any]]]:
    with _open_text(path, encoding, "\n") as file:
        number = 0
        while True:
            number += 1
            where = f"{os.fspath(path)}:{number}"
            try:
                line = file.readline()
                row = json.loads(line) if line.strip() else None
            except UnicodeError as error:
                raise InvalidText(
                    f"{where}: not {encoding.removesuffix('-sig')}, on this line or soon after it: {error}"
                ) from None
            except (ValueError, RecursionError) as error:
                raise InvalidText(f"{where}: not JSON: {error}") from None
            if not line:
                return
            if isinstance(row, dict):
                yield where, row
            elif line.strip():
                raise InvalidText(f"{where}: a row must be a JSON object, not {type(row).__name__}")


def _csv_rows(path: str | os.PathLike[str], encoding: str) -> Iterator[tuple[str, dict[str, Any]]]:
    csv.field_size_limit(max(csv.field_size_limit(), 1 << 30))
    with _open_text(path, encoding, "") as text:
        rows = csv.DictReader(text, strict=True)
        where = f"{os.fspath(path)}:1"
        while True:
            try:
                if rows.fieldnames is not None:
                    where = f"{os.fspath(path)}:{rows.line_num + 1}"
                row = next(rows, None)
            except (csv.Error, UnicodeError) as error:
                raise InvalidText(f"{where}: not CSV in {encoding.removesuffix('-sig').upper()}: {error}") from None
            if row is None:
                return
            if None in row:
                raise InvalidText(f"{where}: more fields than the first line names")
            yield where, {key: value for key, value in row.items() if value is not None}
