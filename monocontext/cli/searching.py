"""`grep`: the lines of a context that match, printed as ripgrep prints them."""

from __future__ import annotations

import json
import os
import re
import sys
import time
import warnings
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from monocontext.cli.cluster import Dask, workers
from monocontext.cli.options import Allow, Anonymous, AsJson, Endpoint, Profile, Region, options_of
from monocontext.cli.reading import Generation
from monocontext.cli.source_names import SourceNames
from monocontext.cli.writing import HEADER
from monocontext.errors import MonocontextError

if TYPE_CHECKING:
    from monocontext.explain import Explanation
    from monocontext.grep import Hit
    from monocontext.regex.linewise import Linewise
    from monocontext.stats import Stats
    from monocontext.text import Monocontext

Places = Annotated[list[str], typer.Argument(metavar="[PATTERN] URL", help="What to look for, unless -e says; where.")]
Patterns = Annotated[list[str] | None, typer.Option("--regexp", "-e", help="A pattern; several: any of them.")]
IgnoreCase = Annotated[bool, typer.Option("--ignore-case", "-i", help="Letters match in either case.")]
Fixed = Annotated[bool, typer.Option("--fixed-strings", "-F", help="Patterns are texts, not regular expressions.")]
Invert = Annotated[bool, typer.Option("--invert-match", "-v", help="Lines without a match; reads everything.")]
Numbers = Annotated[
    bool | None, typer.Option("--line-number/--no-line-number", "-n/-N", help="Line numbers; usual on a terminal.")
]
Most = Annotated[int | None, typer.Option("--max-count", "-m", min=0, help="End after so many lines.")]
After = Annotated[int | None, typer.Option("--after-context", "-A", min=0, metavar="N", help="N lines after each.")]
Before = Annotated[int | None, typer.Option("--before-context", "-B", min=0, metavar="N", help="N lines before each.")]
Around = Annotated[int, typer.Option("--context", "-C", min=0, metavar="N", help="N lines before and after each.")]
Count = Annotated[bool, typer.Option("--count", "-c", help="Print how many lines match.")]
Files = Annotated[bool, typer.Option("--files-with-matches", "-l", help="Print the names of source files that match.")]
Only = Annotated[bool, typer.Option("--only-matching", "-o", help="Print each match, not its line.")]
Header = Annotated[str, typer.Option(help="Line before each source file, as it was uploaded: for -l.")]
ShowStats = Annotated[bool, typer.Option("--stats", help="Say on stderr what was read.")]

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
    header: Header = HEADER,
    stats: ShowStats = False,
    dask: Dask = None,
    generation: Generation = None,
    allow: Allow = None,
    endpoint: Endpoint = None,
    region: Region = None,
    profile: Profile = None,
    anonymous: Anonymous = False,
    as_json: AsJson = False,
) -> None:
    """Print the lines of the context at URL that match PATTERN, reading as little as search filters allow.

    Exits with 0 if a line matched, 1 if none did, 2 on errors. With --json one object a line: `offset` (characters),
    `line_number`, `line`; with -o also `match`.
    """
    from monocontext.text import Monocontext

    began = time.monotonic()
    if "{path}" not in header:
        raise typer.BadParameter(f"--header says where the name stands, such as {HEADER!r}: {header!r} does not")
    asked, url = _asked(places, patterns)
    sought = _sought(asked, ignore_case, fixed)
    options = options_of(url, endpoint, region, profile, anonymous)
    with (
        workers(dask) as executor,
        Monocontext.open(url, allow=allow or (), generation=generation, **options) as context,
    ):
        explained = context.explain(list(sought.patterns)) if stats else None
        found = (
            _others(context, sought)
            if invert
            else context.grep(list(sought.patterns), max_hits=most, executor=executor)
        )
        hits = _Tally(islice(found, most))
        is_terminal = sys.stdout.isatty()
        if files:
            printed = _names(hits, SourceNames(context, header), url, as_json)
        elif count:
            printed = _counted(hits, as_json)
        elif as_json:
            printed = _objects(hits, sought, only_matching)
        else:
            style = _Style(is_terminal if numbers is None else numbers, is_terminal and _likes_colour(), sought)
            if only_matching:
                printed = (style.match(hit, match) for hit in hits for match in sought.finditer(hit.line))
            else:
                near = around if before is None else before, around if after is None else after
                printed = (style.line(line) for line in _with_context(context, hits, *near))
        _print(printed, is_terminal)
        if explained is not None:
            _print_stats(explained, context.stats, time.monotonic() - began)
    if not hits.count:
        raise typer.Exit(1)


def _asked(places: list[str], patterns: list[str] | None) -> tuple[list[str], str]:
    """The patterns and the URL."""
    expected = 1 if patterns else 2
    if len(places) != expected:
        wanted = "the URL alone beside -e" if patterns else "PATTERN and URL"
        raise typer.BadParameter(f"expected {wanted}, got {len(places)} arguments")
    return patterns or places[:1], places[-1]


def _sought(patterns: list[str], ignore_case: bool, fixed: bool) -> Linewise:
    from monocontext.grep import linewise

    for pattern in patterns:
        if "\n" in pattern:
            raise MonocontextError("a pattern is looked for within lines and cannot hold a newline: give each with -e")
        if not fixed and (named := re.search(r"\[\[:\w+:\]", pattern)):
            raise MonocontextError(
                f"{named[0]}] is not known here: write [a-zA-Z], \\d, \\s, \\w, or -F for plain text"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they speak to who writes Python
            return linewise(patterns, ignore_case=ignore_case, fixed=fixed)
    except (OverflowError, RecursionError) as error:
        raise MonocontextError(f"not a regular expression: {error} (-F takes it as it is)") from None
    except re.error as error:
        raise MonocontextError(f"not a regular expression: {error.pattern!r}: {error} (-F takes it as it is)") from None


def _others(context: Monocontext, sought: Linewise) -> Iterator[Hit]:
    """The lines that do not match; reads everything."""
    from monocontext.grep import Hit

    offset = 0
    for number, line in enumerate(context.lines, 1):
        text = line.removesuffix("\n")
        if not sought.search(text):
            yield Hit(offset, number, text)
        offset += len(line)


class _Tally:
    """Hits, counted as they pass."""

    def __init__(self, hits: Iterator[Hit]):
        self._hits = hits
        self.count = 0

    def __iter__(self) -> Iterator[Hit]:
        for hit in self._hits:
            self.count += 1
            yield hit


# -- what is printed ---------------------------------------------------------------------------------------------------


class Line(NamedTuple):
    """A line to print; number 0: the mark between lines that are not neighbours."""

    number: int
    text: str
    is_hit: bool


class _Style:
    """How lines look."""

    def __init__(self, has_numbers: bool, has_colour: bool, sought: Linewise):
        self._has_numbers = has_numbers
        self._has_colour = has_colour
        self._sought = sought

    def line(self, line: Line) -> str:
        if not line.number:
            return "--"
        text = line.text
        if line.is_hit and self._has_colour:
            text = _coloured(text, self._sought.finditer(text))
        return self._numbered(line.number, text, ":" if line.is_hit else "-")

    def match(self, hit: Hit, match: re.Match[str]) -> str:
        return self._numbered(hit.line_number, f"{_MATCH}{match[0]}{_PLAIN}" if self._has_colour else match[0], ":")

    def _numbered(self, number: int, text: str, mark: str) -> str:
        if not self._has_numbers:
            return text
        return f"{_NUMBER}{number}{_PLAIN}{mark}{text}" if self._has_colour else f"{number}{mark}{text}"


def _coloured(text: str, matches: Iterable[re.Match[str]]) -> str:
    parts, at = [], 0
    for match in matches:
        parts.append(f"{text[at : match.start()]}{_MATCH}{match[0]}{_PLAIN}")
        at = match.end()
    return "".join(parts) + text[at:]


def _with_context(context: Monocontext, hits: Iterable[Hit], before: int, after: int) -> Iterator[Line]:
    """The hits, and lines before and after them, each once."""
    last = behind = 0  # numbers of the last line given, and of the last that is due after a hit
    for hit in hits:
        number = hit.line_number
        yield from _lines(context, last + 1, min(behind, number - 1))
        last = max(last, min(behind, number - 1))
        first = max(number - before, last + 1)
        if last and first > last + 1 and (before or after):
            yield Line(0, "", False)
        yield from _lines(context, first, number - 1)
        yield Line(number, hit.line, True)
        last, behind = number, number + after
    yield from _lines(context, last + 1, behind)


def _lines(context: Monocontext, first: int, last: int) -> Iterator[Line]:
    """Lines by number, both ends included."""
    text = context.lines[first - 1 : last] if last >= first else ""
    if text:
        for number, line in enumerate(text.removesuffix("\n").split("\n"), first):
            yield Line(number, line, False)


def _names(hits: Iterable[Hit], names: SourceNames, url: str, as_json: bool) -> Iterator[str]:
    """Each source file with a hit, once."""
    seen = set()
    for hit in hits:
        name = names.at(hit.offset) or url
        if name not in seen:
            seen.add(name)
            yield json.dumps({"path": name}) if as_json else name


def _counted(hits: Iterable[Hit], as_json: bool) -> Iterator[str]:
    """The number of hits."""
    count = sum(1 for _ in hits)
    yield json.dumps({"count": count}) if as_json else str(count)


def _objects(hits: Iterable[Hit], sought: Linewise, only_matching: bool) -> Iterator[str]:
    for hit in hits:
        if not only_matching:
            yield json.dumps(hit._asdict(), ensure_ascii=False)
            continue
        matches = list(sought.finditer(hit.line))
        start = hit.offset - first.start() if (first := sought.search(hit.line)) else 0
        for match in matches:
            told = hit._replace(offset=start + match.start())._asdict()
            yield json.dumps(told | {"match": match[0]}, ensure_ascii=False)


def _print(lines: Iterable[str], at_once: bool) -> None:
    """`at_once`: someone looks on."""
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


def _likes_colour() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
