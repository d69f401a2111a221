"""`grep`: the lines of a context that match, printed as ripgrep prints them."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.options import S3, Allow, AsJson, options_of
from monocontext.cli.printing import escape_controls, wants_colour
from monocontext.cli.reading import Generation
from monocontext.cli.source_names import SourceNames
from monocontext.cli.writing import HEADER
from monocontext.errors import MonocontextError

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats
    from monocontext.text.documents import Documents
    from monocontext.text.monocontext import Monocontext
    from monocontext.text.regex.linewise import Linewise
    from monocontext.text.search.explain import Explanation
    from monocontext.text.search.grep import Hit

Places = Annotated[list[str], typer.Argument(metavar="[PATTERN] URL", help="The pattern, unless -e gives it; the URL.")]
Patterns = Annotated[list[str] | None, typer.Option("--regexp", "-e", help="A pattern; may be repeated.")]
IgnoreCase = Annotated[bool, typer.Option("--ignore-case", "-i", help="Letters match in either case.")]
Fixed = Annotated[bool, typer.Option("--fixed-strings", "-F", help="Patterns are texts, not regular expressions.")]
Invert = Annotated[bool, typer.Option("--invert-match", "-v", help="Lines without a match; reads everything.")]
Numbers = Annotated[
    bool | None, typer.Option("--line-number/--no-line-number", "-n/-N", help="Line numbers; usual on a terminal.")
]
Most = Annotated[int | None, typer.Option("--max-count", "-m", min=0, help="End after this many lines.")]
After = Annotated[int | None, typer.Option("--after-context", "-A", min=0, metavar="N", help="N lines after each.")]
Before = Annotated[int | None, typer.Option("--before-context", "-B", min=0, metavar="N", help="N lines before each.")]
Around = Annotated[int, typer.Option("--context", "-C", min=0, metavar="N", help="N lines before and after each.")]
Count = Annotated[bool, typer.Option("--count", "-c", help="Print how many lines match.")]
Files = Annotated[bool, typer.Option("--files-with-matches", "-l", help="Print the names of source files that match.")]
DocumentGlob = Annotated[
    str | None,
    typer.Option("--documents", metavar="GLOB", help="Search documents whose names match alone."),
]
Only = Annotated[bool, typer.Option("--only-matching", "-o", help="Print each match, not its line.")]
Header = Annotated[str, typer.Option(help="Line before each source file, as it was uploaded: for -l.")]
ShowStats = Annotated[bool, typer.Option("--stats", help="Print on stderr what was read.")]

_NUMBER, _MATCH, _PLAIN = "\x1b[32m", "\x1b[1;31m", "\x1b[0m"


def grep(
    places: Places,
    patterns: Patterns = None,
    ignore_case: IgnoreCase = False,
    fixed: Fixed = False,
    invert: Invert = False,
    numbers: Numbers = None,
    most: Most = None,
    after: After = None,
    before: Before = None,
    around: Around = 0,
    count: Count = False,
    files: Files = False,
    only_matching: Only = False,
    documents: DocumentGlob = None,
    header: Header = HEADER,
    stats: ShowStats = False,
    dask: Dask = None,
    generation: Generation = None,
    allow: Allow = None,
    *,
    s3: S3,
    as_json: AsJson = False,
) -> None:
    """Print the lines of the context at URL that match PATTERN, reading as little as search filters allow.

    Exits with 0 if a line matched, 1 if none did, 2 on errors. With --json one object a line: `offset` (characters),
    `line_number`, `line`; with -o also `match`.
    """
    from monocontext.text.monocontext import Monocontext

    began = time.monotonic()
    if "{path}" not in header:
        raise typer.BadParameter(f"--header needs {{path}} where the name stands, as in {HEADER!r}; found {header!r}")
    expressions, url = _split_places(places, patterns)
    pattern = _compile_patterns(expressions, ignore_case, fixed)
    options = options_of(url, s3)
    with (
        workers(dask) as executor,
        Monocontext.open(url, allow=allow or (), generation=generation, **options) as context,
    ):
        explained = context.explain(list(pattern.patterns)) if stats else None
        if documents is not None:
            if invert or executor is not None:
                raise typer.BadParameter("--documents goes with neither --invert-match nor --dask")
            found = _hits_in(context, list(pattern.patterns), documents)
        elif invert:
            found = _lines_without_match(context, pattern)
        else:
            found = context.grep(list(pattern.patterns), max_hits=most, executor=executor)
        hits = _Tally(islice(found, most))
        is_terminal = sys.stdout.isatty()
        if files:
            printed = _file_names(hits, SourceNames(context, header), url, as_json)
        elif count:
            printed = _count_row(hits, as_json)
        elif as_json:
            printed = _json_rows(hits, pattern, only_matching, is_terminal, context.documents)
        else:
            has_numbers, has_colour = is_terminal if numbers is None else numbers, wants_colour()
            style = _Style(has_numbers, has_colour, pattern, is_terminal)
            if only_matching:
                printed = (style.match(hit, match) for hit in hits for match in pattern.finditer(hit.line))
            else:
                near = around if before is None else before, around if after is None else after
                printed = (style.line(line) for line in _with_context(context, hits, *near))
        _print(printed, is_terminal)
        if explained is not None:
            _print_stats(explained, context.stats, time.monotonic() - began)
    if not hits.count:
        raise typer.Exit(1)


def _split_places(places: list[str], patterns: list[str] | None) -> tuple[list[str], str]:
    """The patterns and the URL."""
    expected = 1 if patterns else 2
    if len(places) != expected:
        arguments = "the URL alone beside -e" if patterns else "PATTERN and URL"
        raise typer.BadParameter(f"expected {arguments}, got {len(places)} arguments")
    if not patterns and _is_place(places[0]) and not _is_place(places[1]):
        raise typer.BadParameter(f"the URL comes last: `monocontext grep {shlex.join(places[::-1])}`")
    return patterns or places[:1], places[-1]


def _is_place(word: str) -> bool:
    return "://" in word or os.path.isfile(f"{word}/manifest.json")  # a `Path` raises for a long pattern


def _compile_patterns(patterns: list[str], ignore_case: bool, fixed: bool) -> Linewise:
    from monocontext.text.search.grep import compile_query

    for pattern in patterns:
        if "\n" in pattern:
            raise MonocontextError("a pattern is looked for within lines and cannot hold a newline: give each with -e")
        if not fixed and (named := re.search(r"\[\[:\w+:\]", pattern)):
            raise MonocontextError(
                f"{named[0]}] is not known here: write [a-zA-Z], \\d, \\s, \\w, or -F for plain text"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they are for authors of Python code
            return compile_query(patterns, ignore_case=ignore_case, fixed=fixed)
    except (OverflowError, RecursionError) as error:
        raise MonocontextError(f"not a regular expression: {error} (-F takes it as it is)") from None
    except re.error as error:
        raise MonocontextError(f"not a regular expression: {error.pattern!r}: {error} (-F takes it as it is)") from None


def _lines_without_match(context: Monocontext, pattern: Linewise) -> Iterator[Hit]:
    """The lines that do not match; reads everything."""
    from monocontext.text.search.grep import Hit

    offset = 0
    for number, line in enumerate(context.lines, 1):
        text = line.removesuffix("\n")
        if not pattern.search(text):
            yield Hit(offset, number, text)
        offset += len(line)


def _hits_in(context: Monocontext, patterns: list[re.Pattern[str]], glob: str) -> Iterator[Hit]:
    """The hits in documents whose names match; neighbours are searched in one go."""
    start = stop = -1
    for record in context.documents.records():
        if not len(record) or not fnmatchcase(record.name, glob):
            continue
        if record.start > stop + 1:
            if start >= 0:
                yield from context.grep(patterns, start=start, stop=stop)
            start = record.start
        stop = record.stop
    if start >= 0:
        yield from context.grep(patterns, start=start, stop=stop)


class _Tally:
    """An iterator over hits that counts them."""

    def __init__(self, hits: Iterator[Hit]):
        self._hits = hits
        self.count = 0

    def __iter__(self) -> Iterator[Hit]:
        for hit in self._hits:
            self.count += 1
            yield hit


# -- what is printed ---------------------------------------------------------------------------------------------------


class OutputLine(NamedTuple):
    """A line to print; number 0 stands for the mark between lines that are not neighbours."""

    number: int
    text: str
    is_hit: bool


class _Style:
    """Formats lines: numbers, colours, escapes."""

    def __init__(self, has_numbers: bool, has_colour: bool, pattern: Linewise, is_terminal: bool):
        self._has_numbers = has_numbers
        self._has_colour = has_colour
        self._pattern = pattern
        self._shown = escape_controls if is_terminal else str

    def line(self, line: OutputLine) -> str:
        if not line.number:
            return "--"
        matches = self._pattern.finditer(line.text) if line.is_hit and self._has_colour else ()
        text = self._add_colour(line.text, matches)
        return self._add_number(line.number, text, ":" if line.is_hit else "-")

    def match(self, hit: Hit, match: re.Match[str]) -> str:
        text = self._shown(match[0])
        return self._add_number(hit.line_number, f"{_MATCH}{text}{_PLAIN}" if self._has_colour else text, ":")

    def _add_number(self, number: int, text: str, mark: str) -> str:
        if not self._has_numbers:
            return text
        return f"{_NUMBER}{number}{_PLAIN}{mark}{text}" if self._has_colour else f"{number}{mark}{text}"

    def _add_colour(self, text: str, matches: Iterable[re.Match[str]]) -> str:
        parts, at = [], 0
        for match in matches:
            parts.append(f"{self._shown(text[at : match.start()])}{_MATCH}{self._shown(match[0])}{_PLAIN}")
            at = match.end()
        return "".join(parts) + self._shown(text[at:])


def _with_context(context: Monocontext, hits: Iterable[Hit], before: int, after: int) -> Iterator[OutputLine]:
    """The hits, and lines before and after them, each once."""
    last = behind = 0  # numbers of the last yielded line, and of the last line that is due after a hit
    for hit in hits:
        number = hit.line_number
        yield from _lines(context, last + 1, min(behind, number - 1))
        last = max(last, min(behind, number - 1))
        first = max(number - before, last + 1)
        if last and first > last + 1 and (before or after):
            yield OutputLine(0, "", False)
        yield from _lines(context, first, number - 1)
        yield OutputLine(number, hit.line, True)
        last, behind = number, number + after
    yield from _lines(context, last + 1, behind)


def _lines(context: Monocontext, first: int, last: int) -> Iterator[OutputLine]:
    """Lines by number, both ends included."""
    text = context.lines[first - 1 : last] if last >= first else ""
    if text:
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            yield OutputLine(number, line, False)


def _file_names(hits: Iterable[Hit], names: SourceNames, url: str, as_json: bool) -> Iterator[str]:
    """Each source file with a hit, once."""
    seen = set()
    for hit in hits:
        name = names.at(hit.offset) or url
        if name not in seen:
            seen.add(name)
            yield json.dumps({"path": name}) if as_json else escape_controls(name)


def _count_row(hits: Iterable[Hit], as_json: bool) -> Iterator[str]:
    """The number of hits."""
    count = sum(1 for _ in hits)
    yield json.dumps({"count": count}) if as_json else str(count)


def _json_rows(
    hits: Iterable[Hit], pattern: Linewise, only_matching: bool, ascii_only: bool, documents: Documents[Monocontext]
) -> Iterator[str]:
    for hit in hits:
        found = documents.at(hit.offset)
        name = {"document": found.name} if found else {}
        if not only_matching:
            yield json.dumps(hit._asdict() | name, ensure_ascii=ascii_only)
            continue
        matches = list(pattern.finditer(hit.line))
        start = hit.offset - first.start() if (first := pattern.search(hit.line)) else 0
        for match in matches:
            row = hit._replace(offset=start + match.start())._asdict()
            yield json.dumps(row | {"match": match[0]} | name, ensure_ascii=ascii_only)


def _print(lines: Iterable[str], at_once: bool) -> None:
    """Write lines to stdout; `at_once` flushes after each one."""
    out = sys.stdout.buffer
    for line in lines:
        out.write(line.encode() + b"\n")
        if at_once:
            out.flush()
    out.flush()


def _print_stats(explained: Explanation, stats: Stats, seconds: float) -> None:
    search = stats.search
    if search.searches:
        looked = f"{search.pruned:,} pruned, {search.looked_at:,} looked at, {search.false_positives:,} in vain"
    else:
        looked = f"none pruned: {explained.scans or 'every line is looked at'}"
    print(f"frames: {explained.frames:,} in all, {looked}", file=sys.stderr)
    text_bytes = stats.bytes_fetched - search.filter_bytes
    print(f"bytes: {text_bytes:,} of text and index, {search.filter_bytes:,} of filters", file=sys.stderr)
    print(f"GETs: {stats.gets:,}; seconds: {seconds:.2f}", file=sys.stderr)
