"""The command `grep`: find matching lines of a text, document by document, as ripgrep does with files."""

from __future__ import annotations

import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated

import click

from monocontext.cli import grep_output as output
from monocontext.cli.cluster import Dask, workers
from monocontext.cli.grep_output import Line, Place, Style
from monocontext.cli.options import S3, Allow, AsJson, globs_of, is_place, options_of, plain_folder
from monocontext.cli.parameters import AT_LEAST_0, NOT_NEGATIVE, Argument, Option
from monocontext.cli.printing import wants_colour, write_bytes
from monocontext.cli.reading import Generation
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext
from monocontext.text.search.grep import compile_query
from monocontext.text.search.hits import Hit

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from monocontext.engine.stats import Stats
    from monocontext.format.documents import Document
    from monocontext.text.regex.linewise import Linewise

PATTERN_SECONDS = 30
"""The most seconds that a pattern may take on one piece of the text where nobody can press Ctrl-C."""
_GLOBAL_FLAGS = re.compile(r"\(\?([aimsux]+)\)")


def grep(
    places: Annotated[list[str], Argument(metavar="[PATTERN] URL", help="The pattern, unless -e gives it; the URL.")],
    s3: S3,
    patterns: Annotated[list[str] | None, Option("--regexp", "-e", help="A pattern; repeatable.")] = None,
    ignore_case: Annotated[bool, Option("--ignore-case", "-i", help="Letters match in either case.")] = False,
    fixed: Annotated[bool, Option("--fixed-strings", "-F", help="Patterns are plain texts.")] = False,
    words: Annotated[bool, Option("--word-regexp", "-w", help="Match whole words only.")] = False,
    whole_lines: Annotated[bool, Option("--line-regexp", "-x", help="Match whole lines only.")] = False,
    invert: Annotated[bool, Option("--invert-match", "-v", help="Print lines that do not match.")] = False,
    numbers: Annotated[bool | None, Option("--line-number/--no-line-number", "-n/-N", help="Number lines.")] = None,
    columns: Annotated[bool, Option("--column", help="Print the byte of the first match in its line, from 1.")] = False,
    names: Annotated[bool | None, Option("--with-filename/--no-filename", "-H/-I", help="Print names.")] = None,
    heading: Annotated[bool | None, Option("--heading/--no-heading", help="Print a name above its lines.")] = None,
    most: Annotated[int | None, Option("--max-count", "-m", type=AT_LEAST_0, help="At most N of a document.")] = None,
    after: Annotated[int | None, Option("--after-context", "-A", type=AT_LEAST_0, help="Lines after a hit.")] = None,
    before: Annotated[int | None, Option("--before-context", "-B", type=AT_LEAST_0, help="Lines before it.")] = None,
    around: Annotated[int, Option("--context", "-C", type=AT_LEAST_0, help="Lines before and after it.")] = 0,
    count: Annotated[bool, Option("--count", "-c", help="Print how many lines match; with -o, matches.")] = False,
    files: Annotated[bool, Option("--files-with-matches", "-l", help="Print names of documents that match.")] = False,
    only_matching: Annotated[bool, Option("--only-matching", "-o", help="Print each match, not its line.")] = False,
    silent: Annotated[bool, Option("-q", help="Print nothing, and stop at the first match.")] = False,
    globs: Annotated[list[str] | None, Option("--glob", "-g", "--documents", help="Names to search, or !not.")] = None,
    max_seconds: Annotated[
        float | None, Option(type=NOT_NEGATIVE, help="Limit of a pattern on a piece; 0: none.")
    ] = None,
    stats: Annotated[bool, Option(help="Print on stderr what the search read.")] = False,
    dask: Dask = None,
    generation: Generation = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the lines of the context at URL that match PATTERN, reading as little as search filters allow.

    Lines count within their document, and the header lines between documents are not searched. Exits with 0 if a line
    matched, 1 if none did, 2 on errors. With --json the messages of `rg --json`, whose matches also have `offset`, in
    characters of the whole text.
    """
    began = time.monotonic()
    expressions, url = _split_places(places, patterns)
    pattern = _compile_patterns(expressions, ignore_case, fixed, words, whole_lines)
    if silent:
        most = 1 if most is None else min(most, 1)
    options = options_of(url, s3)
    is_terminal = sys.stdout.isatty()
    if max_seconds is None:
        max_seconds = 0 if is_terminal else PATTERN_SECONDS
    with (
        workers(dask) as executor,
        Monocontext.open(url, allow=allow or (), generation=generation, **options) as context,
        _pattern_limit(max_seconds, context.stats),
    ):
        documents = _Documents(context, url, globs or [])
        limit = most if documents.are_one else None
        hits = documents.lines_without_match(pattern) if invert else documents.hits(pattern, limit, executor)
        result = documents.locate(hits, most)
        has_names = not documents.are_one if names is None else names
        has_numbers = is_terminal or columns if numbers is None else numbers
        has_headings = is_terminal if heading is None else heading
        style = Style(
            has_names, has_headings, has_numbers, columns, wants_colour(), is_terminal, only_matching, pattern
        )
        near = around if before is None else before, around if after is None else after
        printed: Iterator[str] = iter(())
        if silent:
            next(result, None)
        elif files:
            printed = output.print_names(result, as_json)
        elif count:
            printed = output.print_counts(result, style, as_json)
        elif as_json:
            printed = output.print_json(result, context, pattern, *near, ascii_only=is_terminal)
        else:
            printed = output.print_lines(result, context, style, *near)
        for line in printed:
            write_bytes(line.encode() + b"\n")
            if is_terminal:
                sys.stdout.flush()
        sys.stdout.flush()
        if stats:
            _print_stats(context.stats, time.monotonic() - began)
    if not documents.any_located:
        raise click.exceptions.Exit(1)


@contextmanager
def _pattern_limit(seconds: float, stats: Stats) -> Iterator[None]:
    """Raise `MonocontextError` where a search takes this many seconds without going on in the text, as `(a+)+$` over a
    line of a hundred letters, which takes years; 0 for no limit.

    These are seconds of the processor: a slow network, or a pager at the other end of the pipe, is no slow pattern.
    `re` runs C code that only a signal can stop, so there is no limit on Windows, and outside the main thread.
    """
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    used = stats.bytes_used

    def ring(*_: object) -> None:
        nonlocal used
        if used == stats.bytes_used:
            raise MonocontextError(
                f"a pattern took more than {seconds:g} seconds on one piece of the text: avoid a repeat in a repeat, "
                "such as (a+)+, or allow more with --max-seconds"
            )
        used = stats.bytes_used

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _split_places(places: list[str], patterns: list[str] | None) -> tuple[list[str], str]:
    """The patterns and the URL."""
    expected = 1 if patterns else 2
    if len(places) != expected:
        arguments = "one argument with -e, the URL" if patterns else "two arguments, PATTERN and URL"
        several = "; to search a folder, name the folder rather than its files" if len(places) > expected else ""
        raise click.BadParameter(f"expected {arguments}, got {len(places)}{several}")
    if not patterns and is_place(places[0]) and not is_place(places[1]):
        turned = shlex.join(places[::-1])
        raise click.BadParameter(f"no text at {places[1]!r}; the URL comes last: `monocontext grep {turned}`")
    return patterns or places[:1], places[-1]


def _compile_patterns(patterns: list[str], ignore_case: bool, fixed: bool, words: bool, whole_lines: bool) -> Linewise:
    for pattern in patterns:
        if not fixed and (named := re.search(r"\[\[:\w+:\]", pattern)):
            raise MonocontextError(
                f"{named[0]}] is not supported: write [a-zA-Z], \\d, \\s or \\w, or search for plain text with -F"
            )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings are for authors of Python code
            for pattern in patterns if not fixed else ():
                re.compile(pattern)  # an error shows the pattern as the user typed it
            value = [re.escape(pattern) if fixed else output.before_cr(_scope_flags(pattern)) for pattern in patterns]
            if whole_lines:
                value = [output.before_cr(rf"^(?:{item})$") for item in value]
            elif words:
                value = [rf"(?<!\w)(?:{item})(?!\w)" for item in value]
            return compile_query(value, ignore_case=ignore_case)
    except (OverflowError, RecursionError) as error:
        raise MonocontextError(f"not a regular expression: {error} (-F searches for it as plain text)") from None
    except re.error as error:
        raise MonocontextError(
            f"not a regular expression: {error.pattern!r}: {error} (-F searches for it as plain text)"
        ) from None


def _scope_flags(pattern: str) -> str:
    """The pattern with its flags in a group, `(?i:one)` for `(?i)one`, so that it may stand inside another pattern."""
    flags = _GLOBAL_FLAGS.match(pattern)
    return f"(?{flags[1]}:{pattern[flags.end() :]})" if flags else pattern


class _Documents:
    """The documents of a text to search, and the places of hits in them."""

    def __init__(self, context: Monocontext, url: str, globs: list[str]):
        self._context = context
        self._documents = context.documents
        self._whole = Place(url, 0, len(context), 0, context.span.source.reader.manifest.text_bytes)  # type: ignore[attr-defined]
        self._folder = plain_folder(url)
        self._globs = globs_of(globs)
        self._selects_all = not globs or not self._documents.count  # a text without documents is a file that is named
        self.any_located = False

    @property
    def are_one(self) -> bool:
        """Whether a line needs no name of a document: the text has one at most."""
        return self._documents.count < 2

    def locate(self, hits: Iterable[Hit], most: int | None) -> Iterator[Line]:
        """The first `most` hits of each document, with the document."""
        for _, located in groupby(self._locate(hits), key=lambda item: item.place):
            for item in islice(located, most):
                self.any_located = True
                yield item

    def _locate(self, hits: Iterable[Hit]) -> Iterator[Line]:
        """Add to each hit its document. Hits in lines between documents are left out."""
        location: Place | None = None if self._documents.count else self._whole
        for hit in hits:
            if self._documents.count and (location is None or hit.offset >= location.stop):
                start = self._context.span.line_start(hit.line_number - 1)
                if location is None or start >= location.stop:
                    found = self._documents.at(start)
                    location = self._place(found) if found else None
            if location is not None:
                yield Line(location, hit.line_number - location.first_line, hit.line, hit)

    def _place(self, document: Document) -> Place:
        name = self._folder + document.name
        return Place(name, document.start, document.stop, document.first_line, document.bytes)

    def hits(self, pattern: Linewise, limit: int | None, executor: Executor | None) -> Iterator[Hit]:
        """The hits in documents that `--glob` selects, at most `limit` in a stretch of them."""
        grep = partial(self._context.grep, list(pattern.patterns), max_hits=limit, executor=executor)
        return (hit for start, stop in self._stretches() for hit in grep(start=start, stop=stop))

    def lines_without_match(self, pattern: Linewise) -> Iterator[Hit]:
        """The lines that do not match, in documents that `--glob` selects. Reads all of these."""
        for start, stop in self._stretches():
            part = self._context.view(start, stop)
            offset, number = start, self._context.span.source.line_of(start)
            for line in part.lines:
                number += 1
                text = line.removesuffix("\n")
                if not pattern.search(text):
                    yield Hit(offset, number, text)
                offset += len(line)

    def _stretches(self) -> Iterator[tuple[int, int]]:
        """Ranges of selected documents with nothing but a newline between them; without globs the whole text."""
        if self._selects_all:
            yield 0, len(self._context)
            return
        start = stop = -1
        for record in self._documents.records():
            if not len(record) or not self._globs.select(record.name):
                continue
            if start >= 0 and record.start > stop + 1:
                yield start, stop
                start = -1
            start, stop = record.start if start < 0 else start, record.stop
        if start >= 0:
            yield start, stop


def _print_stats(stats: Stats, seconds: float) -> None:
    search = stats.search
    pruned = f"{search.frames:,} in all, {search.pruned:,} pruned"
    looked = f"{pruned}, {search.looked_at:,} looked at, {search.false_positives:,} in vain"
    print(f"frames: {looked if search.searches else 'none pruned, every line is looked at'}", file=sys.stderr)
    text_bytes = stats.bytes_fetched - search.filter_bytes
    print(f"bytes: {text_bytes:,} of text and index, {search.filter_bytes:,} of filters", file=sys.stderr)
    print(f"GETs: {stats.gets:,}; seconds: {seconds:.2f}", file=sys.stderr)
