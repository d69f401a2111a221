"""Recognise the kind of a piece of text (code, log, Markdown and so on), and find its headings. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import NamedTuple

_HEAD_LINES = 200  # the lines that decide whether a piece is a log, CSV or JSON lines
_LEAST_SHARE_OF_ROWS = 0.5  # of these lines, for a log or JSON lines: a log also has tracebacks
_LEAST_CSV_ROWS = 3
_LEAST_SHARE_OF_CSV_ROWS = 0.8  # of these lines, with the same number of delimiters, for a CSV
_KINDS_OF_ROWS = {"CSV": "record", "JSON lines": "record", "log": "log line"}
"""What a line is called (`Heading.kind`), by the kind of its text."""
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
"""Matches the head of a line of a log, such as `[2026-11-23 07:00` and `ERROR`, but not `2026-11-23,12`."""
_ACCESS_LOG = re.compile(r"\S+ \S+ \S+ \[\d\d/[A-Z][a-z]{2}/\d{4}:")  # 10.0.0.1 - - [23/Nov/2026:07:00:00
_HEADINGS = re.compile(
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
"""Matches the lines that `Heading.kind` names, such as `## Title` and `async def f():`, but not `#comment`."""
_DECISIVE = 2  # the number of headings of one kind that decide the kind of a piece

HeadingStarts = list[tuple[str, int]]
"""The kinds of lines (`Heading.kind`) and the characters at which they begin, in order."""


class _Heading(NamedTuple):
    kind: str
    """The name of the group of `_HEADINGS`."""
    start: int
    level: int
    """Its depth, as `_level` counts it."""


def find_headings(text: str, begins_text: bool, max_headings: int) -> tuple[str, HeadingStarts]:
    """The kind of a piece (empty if it has no line), and at most `max_headings` of its headings (`_pick`).

    `begins_text`: the piece begins the text, perhaps with names of columns. Otherwise its first line may be incomplete,
    and is ignored.
    """
    start = 0 if begins_text else text.find("\n") + 1
    lines = [line for _, line in islice(_lines(text, start), _HEAD_LINES)]
    if not lines:
        return "", []
    if kind := _kind_of_rows(lines):
        has_column_names = kind == "CSV" and begins_text
        return kind, _first_and_last(text, start, "columns" if has_column_names else _KINDS_OF_ROWS[kind])
    headings = [
        _Heading(str(match.lastgroup), match.start(), _level(match[0])) for match in _HEADINGS.finditer(text, start)
    ]
    counts = Counter(heading.kind for heading in headings)
    if counts["definition"] >= max(_DECISIVE, counts["turn"]):
        # A heading in code is a comment.
        return "code", _pick([item for item in headings if item.kind != "heading"], max_headings)
    headings = [item for item in headings if item.kind != "definition"]
    kind = "Markdown" if counts["heading"] >= _DECISIVE else "prose"
    if counts["turn"] >= _DECISIVE:
        kind = "session"
    return kind, _pick(headings, max_headings) or [("line", next(_lines(text, start))[0])]


def _kind_of_rows(lines: Sequence[str]) -> str:
    """The kind of a text whose lines are records; empty for any other text."""
    enough = max(_LEAST_SHARE_OF_ROWS * len(lines), 1)
    if sum(line.startswith("{") and line.rstrip().endswith("}") for line in lines) >= enough:
        return "JSON lines"
    if sum(bool(_LOG.match(line) or _ACCESS_LOG.match(line)) for line in lines) >= enough:
        return "log"
    for delimiter in "\t,;|":
        counts = [line.count(delimiter) for line in lines]
        usual = max(set(counts), key=counts.count)
        if usual and len(lines) >= _LEAST_CSV_ROWS and counts.count(usual) >= _LEAST_SHARE_OF_CSV_ROWS * len(lines):
            return "CSV"
    return ""


def _first_and_last(text: str, start: int, kind: str) -> HeadingStarts:
    """The first line from `start` on that is not blank, of this kind, and the last: in a log, they show its times."""
    first = next(_lines(text, start))[0]
    last = text.rfind("\n", first, len(text.rstrip())) + 1
    if last <= first:
        return [(kind, first)]
    return [(kind, first), ("record" if kind == "columns" else kind, last)]


def _level(line: str) -> int:
    """The depth of a heading from 0, or the columns of a definition's indentation. The two are never compared."""
    return len(line) - len(line.lstrip(" \t")) if line[0] != "#" else len(line) - len(line.lstrip("#")) - 1


def _pick(headings: Sequence[_Heading], max_headings: int) -> HeadingStarts:
    """At most `max_headings` headings, in order. The lowest levels are taken first; of the first level that does not
    fit as a whole, evenly spaced headings."""
    chosen: list[_Heading] = []
    for level in sorted({heading.level for heading in headings}):
        same_level = [heading for heading in headings if heading.level == level]
        count = min(len(same_level), max_headings - len(chosen))
        chosen += [same_level[number * len(same_level) // count] for number in range(count)]
    return [(candidate.kind, candidate.start) for candidate in sorted(chosen, key=lambda candidate: candidate.start)]


def _lines(text: str, start: int) -> Iterator[tuple[int, str]]:
    """The lines from a character on that are not blank, stripped, each with the character at which it begins."""
    while start < len(text):
        stop = text.find("\n", start)
        stop = len(text) if stop < 0 else stop
        if line := text[start:stop].strip():
            yield start, line
        start = stop + 1
