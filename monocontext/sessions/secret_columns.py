"""Find the secrets in tables whose column has the name of a secret: rows of CSV, values of an SQL INSERT. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator

from monocontext.sessions.secret_names import Strength, is_secret, strength_of

_MOST_ROWS = 500
"""Rows of one table that are searched: the cost of a header is bounded."""
# Names with the same separator between them.
_HEADER = re.compile(
    r"(?:\|?[ ]{1,3}(?=[^\n]{0,2000}\|))?[\"'`]?\w[\w .-]{0,60}[\"'`]?(?:(?P<by>[,;\t|])[ ]?[\"'`]?\w[\w .-]{0,60}[\"'`]?)(?:(?P=by)[ ]?[\"'`]?\w[\w .-]{0,60}[\"'`]?){0,60}(?:\|[ ]?)?\r?\n"
)
_RULE = re.compile(r"[ ]?[|+:-][|+: =-]{2,2000}\r?$", re.MULTILINE)
"""Below the names of a table that a shell of a database or Markdown prints."""
_INSERT = re.compile(
    r"\binsert\s{1,4}into\s{1,4}[\w.`\"\[\]]{1,120}\s{0,4}\((?P<names>[^()]{1,2000})\)\s{0,20}values\s{0,20}",
    re.IGNORECASE,
)
_TUPLE = re.compile(
    r"\((?P<values>(?:[^()'\"]|'(?:[^'\n]|''){0,500}'|\"[^\"\n]{0,500}\"|\([^()]{0,200}\)){1,4000})\)\s{0,20},?\s{0,20}"
)
_VALUE = re.compile(r"\s*+(?:'(?P<single>(?:[^'\n]|'')*)'|\"(?P<double>[^\"\n]*)\"|[^,]*)\s*+(?:,|$)")


def find_in_columns(text: str, start: int) -> Iterator[tuple[int, int]]:
    """The spans of secrets in the table that has the name of a column at `start`."""
    line = text.rfind("\n", max(0, start - 2_000), start) + 1
    above = text[text.rfind("\n", max(0, line - 2_000), max(0, line - 1)) + 1 : line]
    if (header := _HEADER.match(text, line)) and header["by"] not in above:  # else it is a row, not a header
        yield from _find_in_rows(text, header)
    low, high = max(0, start - 2_200), start + 2_200
    if "(" in text[line:start] and "insert" in text[low:high].lower() and (insert := _INSERT.search(text, low, high)):
        yield from _find_in_tuples(text, insert)


def _secret_columns(names: list[str]) -> dict[int, Strength]:
    """The columns that hold secrets, by number, with the strength of their names."""
    found = {i: strength_of(name.strip(" \t\r\n\"'`[]")) for i, name in enumerate(names)}
    return {i: strength for i, strength in found.items() if strength >= Strength.TOKEN}


def _find_in_rows(text: str, header: re.Match[str]) -> Iterator[tuple[int, int]]:
    by, at = header["by"], header.end()
    names = header[0].split(by)
    columns = _secret_columns(names)
    for _ in range(_MOST_ROWS if columns else 0):
        end = text.find("\n", at, at + 20_000)
        end = len(text) if end < 0 else end
        if by == "|" and _RULE.match(text, at, end):
            at = end + 1
            continue
        cells = text[at:end].split(by)
        if len(cells) != len(names):
            return
        for i, strength in columns.items():
            value = cells[i].strip(" \r\"'")
            if is_secret(value, strength, is_quoted=False):
                begin = at + sum(len(cell) + 1 for cell in cells[:i]) + cells[i].index(value)
                yield begin, begin + len(value)
        at = end + 1


def _find_in_tuples(text: str, insert: re.Match[str]) -> Iterator[tuple[int, int]]:
    columns = _secret_columns(insert["names"].split(","))
    at = insert.end()
    for _ in range(_MOST_ROWS if columns else 0):
        row = _TUPLE.match(text, at)
        if row is None:
            return
        for i, value in enumerate(_VALUE.finditer(row["values"])):
            group = "single" if value["single"] is not None else "double"
            if i in columns and value[group] and is_secret(value[group], columns[i]):
                begin = row.start("values") + value.start(group)
                yield begin, begin + len(value[group])
        at = row.end()
