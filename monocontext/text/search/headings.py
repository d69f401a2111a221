"""Tell what a piece of text looks like, and find its headings and definitions. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

_HEAD_LINES = 200
"""Lines by which the kind of a piece is told."""
_MOST = 0.5
"""The share of them that has the form of a log, of CSV or of JSON lines."""

_LOG = re.compile(
    r"""\W{0,2}(?:
        \d{4}-\d\d-\d\d(?:T|[ ]\S)                     # 2026-11-23 07:00, also ISO 8601
      | \d\d(?:\d\d)?/\d\d/\d\d(?:\d\d)?\s+\d\d:\d\d    # 81/11/09 20:35
      | \d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d              # access logs
      | [A-Z][a-z]{2}\s+\d{1,2}\s+\d\d:\d\d:\d\d        # syslog
      | (?:TRACE|DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b
    )""",
    re.X,
)
_ADDRESSED_LOG = re.compile(r"\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:")
_MARKS = re.compile(
    r"""^(?:
      (?P<file> ={3,}[ ](?:FILE|SESSION):[ ][^\n]+[ ]={3,} )
    | (?P<turn> \[Turn[ ]\d+[ ]-[ ][A-Z]+\][^\n]* | (?:USER|HUMAN|ASSISTANT|SYSTEM|TOOL):[^\n]* )
    | (?P<definition>
        [ \t]*
        (?:(?:pub(?:\([a-z]+\))?|export|default|async|public|private|protected|internal
             |static|abstract|final|sealed|unsafe)[ \t]+)*
        (?:def|class|func|fun|fn|function|struct|enum|interface|impl|trait|module|namespace)[ \t]+[A-Za-z_(<][^\n]*
      | \#define[ \t]+\w+[^\n]*
      | CREATE[ \t]+(?:OR[ \t]+REPLACE[ \t]+)?(?:TABLE|VIEW|FUNCTION|INDEX)[ \t][^\n]*
      | (?:(?:static|inline|const|struct|unsigned)[ \t]+)*[A-Za-z_]\w*[ \t*]+\w+\([^;\n]*[,){]  # of C
      )
    | (?P<heading> \#{1,6}[ \t]+[^\s#][^\n]* )
    )[ \t]*$""",
    re.M | re.X,
)
_LEAST = 2
"""Marks of one kind that make a piece be of that kind."""

Found = list[tuple[str, int]]
"""Kinds of lines and the characters at which they begin, in order."""


class _Mark(NamedTuple):
    what: str
    start: int
    level: int


def find_headings(text: str, begins_line: bool, most: int) -> tuple[str, Found]:
    """The kind of a piece (empty if it has no line), and at most `most` of its lines, evenly taken.

    Unless it begins a line, the text before its first newline is no line of its own.
    """
    first = 0 if begins_line else text.find("\n") + 1
    lines = [line for _, line in islice(_lines(text, first), _HEAD_LINES)]
    if not lines:
        return "", []
    if kind := _kind_of_rows(lines):
        what = {"CSV": "columns" if begins_line else "record", "JSON lines": "record", "log": "log line"}[kind]
        return kind, _ends(text, first, what)
    marks = [_Mark(str(found.lastgroup), found.start(), _level(found[0])) for found in _MARKS.finditer(text, first)]
    counts = {name: sum(one.what == name for one in marks) for name in ("turn", "definition", "heading")}
    if counts["definition"] >= max(_LEAST, counts["turn"]):
        marks = [one for one in marks if one.what != "heading"]  # in code they are comments
        return "code", _pick(marks, most)
    marks = [one for one in marks if one.what != "definition"]
    kind = "session" if counts["turn"] >= _LEAST else "Markdown" if counts["heading"] >= _LEAST else "prose"
    return kind, _pick(marks, most) or [("line", next(_lines(text, first))[0])]


def _kind_of_rows(lines: Sequence[str]) -> str:
    """The kind of a text whose lines are records; empty: they are not."""
    enough = max(_MOST * len(lines), 1)
    if sum(line.startswith("{") and line.rstrip().endswith("}") for line in lines) >= enough:
        return "JSON lines"
    if sum(bool(_LOG.match(line) or _ADDRESSED_LOG.match(line)) for line in lines) >= enough:
        return "log"
    for delimiter in "\t,;|":
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count)
        if usual and len(lines) > _LEAST and counts.count(usual) >= 0.8 * len(lines):
            return "CSV"
    return ""


def _ends(text: str, first: int, what: str) -> Found:
    """The first line with something in it, and the last whole one: the time that a log covers."""
    begin = next(_lines(text, first))[0]
    last = text.rfind("\n", begin, len(text.rstrip())) + 1
    return [(what, begin), *([("record" if what == "columns" else what, last)] if last > begin else [])]


def _level(line: str) -> int:
    """The depth of a heading or a definition, from 0."""
    return len(line) - len(line.lstrip(" \t")) if line[0] != "#" else len(line) - len(line.lstrip("#")) - 1


def _pick(marks: Sequence[_Mark], most: int) -> Found:
    """At most so many: of the highest levels all, of the one that is too many evenly taken."""
    chosen: list[_Mark] = []
    for level in sorted({one.level for one in marks}):
        here, room = [one for one in marks if one.level == level], most - len(chosen)
        chosen += here if len(here) <= room else [here[number * len(here) // room] for number in range(room)]
    return [(one.what, one.start) for one in sorted(chosen, key=lambda one: one.start)]


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """The lines from a character on that are not blank, and where they begin."""
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if line := text[start:stop].strip():
            yield start, line
        start = stop + 1
