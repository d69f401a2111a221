"""The command `grep`: find matching lines of a text, document by document, as ripgrep does with files."""

from __future__ import annotations

import json
import re
import shlex
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Annotated

import click

from monocontext.adapters.text_bytes import reader_of
from monocontext.cli import options as shared
from monocontext.cli.grep_json import json_messages
from monocontext.cli.options import S3, Allow, AsJson, Dask, Generation
from monocontext.cli.parameters import AT_LEAST_0, NOT_NEGATIVE, Argument, Option, OptionGroup, is_location
from monocontext.cli.printing import escape_controls, set_quiet, wants_colour, write_bytes
from monocontext.engine.stats import Stats
from monocontext.errors import MonocontextError
from monocontext.format.documents import Document
from monocontext.records import dataclass
from monocontext.shell.lines import NAME, ShownFile, Style, count_lines, format_lines, ranges_of, select_lines
from monocontext.text.monocontext import Monocontext
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.grep import compile_query

PATTERN_SECONDS = 30  # the most seconds that a pattern may take on one piece of the text where nobody can press Ctrl-C
_GLOBAL_FLAGS = r"(?:\(\?[aimsux]+\))+"  # at the beginning of a pattern: `(?i)`, `(?i)(?m)`
_POSIX_CLASS = r"(?<!\\)(?:\\\\)*\[\^?\]?(?:\\.|[^\]\\])*?(\[:\^?\w+:\])"
"""A set with a POSIX class, whose letters `re` would match: `[x[:digit:]]`, not `\\[[:digit:]`, which has no set."""
_ESCAPE_SET_COMMENT_OR_END = r"(?s)\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?#[^)]*\)|\$"
"""An escape as `\\$`, a set as `[$]`, a comment as `(?#$)`, or the end of a line, `$`: the only `$` on its own."""


@dataclass(frozen=True, slots=True)
class PatternOptions:
    """The options that say how to read patterns."""

    ignore_case: Annotated[bool, Option("--ignore-case", "-i", help="Letters match in either case.")] = False
    fixed: Annotated[bool, Option("--fixed-strings", "-F", help="Patterns are plain texts.")] = False
    words: Annotated[bool, Option("--word-regexp", "-w", help="Match whole words only.")] = False
    whole_lines: Annotated[bool, Option("--line-regexp", "-x", help="Match whole lines only.")] = False

    def compile(self, patterns: list[str]) -> Linewise:
        """Compile patterns into one that matches where any does. Raises `MonocontextError` if one is invalid."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings are for authors of Python code
                expressions = [self._expression_of(pattern) for pattern in patterns]
                return compile_query(expressions, ignore_case=self.ignore_case)
        except (re.error, OverflowError, RecursionError) as error:
            shown = f"{error.pattern!r}: " if isinstance(error, re.error) else ""
            message = f"not a regular expression: {shown}{error} (-F searches for it as plain text)"
            raise MonocontextError(message) from None

    def _expression_of(self, pattern: str) -> str:
        """The regular expression for a pattern. Raises `MonocontextError` or `re.error` for an invalid pattern."""
        expression = re.escape(pattern) if self.fixed else _scope_flags(_check_pattern(pattern))
        if self.whole_lines:
            expression = rf"^(?:{expression})$"
        elif self.words:
            expression = rf"(?<!\w)(?:{expression})(?!\w)"
        return _allow_cr_at_line_end(expression)


@dataclass(frozen=True, slots=True)
class LayoutOptions:
    """The options for printed lines. None: the default depends on stdout and on the text."""

    numbers: Annotated[bool | None, Option("--line-number/--no-line-number", "-n/-N", help="Number lines.")] = None
    columns: Annotated[bool, Option("--column", help="Print the byte of the first match in its line, from 1.")] = False
    names: Annotated[bool | None, Option("--with-filename/--no-filename", "-H/-I", help="Print names.")] = None
    heading: Annotated[bool | None, Option("--heading/--no-heading", help="Print a name above its lines.")] = None
    after: Annotated[int | None, Option("--after-context", "-A", type=AT_LEAST_0, help="Lines after a hit.")] = None
    before: Annotated[int | None, Option("--before-context", "-B", type=AT_LEAST_0, help="Lines before it.")] = None
    around: Annotated[int, Option("--context", "-C", type=AT_LEAST_0, help="Lines before and after it.")] = 0
    only_matching: Annotated[bool, Option("--only-matching", "-o", help="Print each match, not its line.")] = False

    def style(self, pattern: Linewise, *, has_several: bool) -> Style:
        """The style of the lines that match a pattern. `has_several`: whether the text has several documents."""
        is_terminal = sys.stdout.isatty()
        before = self.around if self.before is None else self.before
        after = self.around if self.after is None else self.after
        return Style(
            pattern,
            has_names=has_several if self.names is None else self.names,
            has_numbers=is_terminal or self.columns if self.numbers is None else self.numbers,
            only_matching=self.only_matching,
            before=before,
            after=after,
            has_groups=before + after > 0,
            has_headings=is_terminal if self.heading is None else self.heading,
            has_columns=self.columns,
            has_colour=wants_colour(),
            escape=escape_controls if is_terminal else str,
        )


def grep(
    arguments: Annotated[list[str], Argument(metavar="[PATTERN] URL", help="Pattern, unless -e gives it; then URL.")],
    pattern_options: Annotated[PatternOptions, OptionGroup(PatternOptions)],
    layout: Annotated[LayoutOptions, OptionGroup(LayoutOptions)],
    s3: S3,
    patterns: Annotated[list[str] | None, Option("--regexp", "-e", help="A pattern; repeatable.")] = None,
    invert: Annotated[bool, Option("--invert-match", "-v", help="Print lines that do not match.")] = False,
    most: Annotated[int | None, Option("--max-count", "-m", type=AT_LEAST_0, help="At most N of a document.")] = None,
    count: Annotated[bool, Option("--count", "-c", help="Print how many lines match; with -o, matches.")] = False,
    files: Annotated[bool, Option("--files-with-matches", "-l", help="Print names of documents that match.")] = False,
    silent: Annotated[bool, Option("-q", "--quiet", "--silent", help="Print nothing; stop at a match.")] = False,
    globs: Annotated[list[str] | None, Option("--glob", "-g", "--documents", help="Names to search, or !not.")] = None,
    max_seconds: Annotated[float | None, Option(type=NOT_NEGATIVE, help="Limit for one piece; 0: none.")] = None,
    stats: Annotated[bool, Option(help="Print on stderr what the search read.")] = False,
    dask: Dask = None,
    generation: Generation = None,
    allow: Allow = None,
    as_json: AsJson = False,
) -> None:
    """Print the lines of the context at URL that match PATTERN, reading as little as search filters allow.

    Lines count within their document, and the header lines between documents are not searched. Exits with 0 if a line
    matched, 1 if none did, 2 on errors. With --json, prints the messages of `rg --json`, whose matches also have
    `offset`, in characters of the whole text.
    """
    began = time.monotonic()
    if silent:
        set_quiet(True)
    expressions, url = _split_url(arguments, patterns)
    pattern = pattern_options.compile(expressions)
    if silent or files:
        most = 1 if most is None else min(most, 1)
    options = shared.checked_options(url, s3)
    is_terminal = sys.stdout.isatty()
    if max_seconds is None:
        max_seconds = 0 if is_terminal else PATTERN_SECONDS
    with (
        shared.workers(dask) as executor,
        Monocontext.open(url, allow=allow or (), generation=generation, **options) as context,
        _pattern_limit(max_seconds, context.stats),
    ):
        scope = _SearchScope(context, url, globs or [], str if as_json else escape_controls)
        style = layout.style(pattern, has_several=context.documents.count > 1)
        selected = select_lines(
            context, pattern, scope.ranges(), scope.file_at, invert=invert, most_per_file=most, executor=executor
        )
        first = next(selected, None)  # tells the exit status
        lines = chain([first] if first else [], selected)
        rows: Iterator[str]
        if silent:
            rows = iter(())
        elif files:
            rows = (json.dumps({"path": name}) if as_json else name for name, _ in count_lines(lines, style))
        elif count:
            rows = _format_counts(count_lines(lines, style), style, as_json=as_json)
        elif as_json:
            rows = json_messages(lines, context, style, ascii_only=is_terminal)
        else:
            rows = format_lines(lines, style)
        for row in rows:
            write_bytes(row.encode() + b"\n")
            if is_terminal:  # a person waits for each row
                sys.stdout.flush()
        sys.stdout.flush()
        if stats:
            _print_stats(context.stats, time.monotonic() - began)
    if first is None:
        raise click.exceptions.Exit(1)


@contextmanager
def _pattern_limit(seconds: float, stats: Stats) -> Iterator[None]:
    """Raise `MonocontextError` in the block if a search reads no text for this long; 0 for no limit.

    An example is `(a+)+$` over a line of a hundred letters, which would take years. The seconds are processor time: a
    slow network, or a pager at the other end of the pipe, is not a slow pattern. Only a signal can stop the C code of
    `re`, so there is no limit on Windows, and outside the main thread.
    """
    if not seconds or not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    bytes_at_last_signal = stats.bytes_used

    def check_progress(*_: object) -> None:
        nonlocal bytes_at_last_signal
        if bytes_at_last_signal == stats.bytes_used:
            raise MonocontextError(
                f"a pattern took more than {seconds:g} seconds on one piece of the text: avoid a repeat in a repeat, "
                "such as (a+)+, or allow more with --max-seconds"
            )
        bytes_at_last_signal = stats.bytes_used

    before = signal.signal(signal.SIGVTALRM, check_progress)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _split_url(arguments: list[str], patterns: list[str] | None) -> tuple[list[str], str]:
    """The patterns and the URL in the arguments PATTERN URL, or URL alone with -e. Raises `click.BadParameter`."""
    expected = 1 if patterns else 2
    if len(arguments) != expected:
        expected_words = "one argument with -e, the URL" if patterns else "two arguments, PATTERN and URL"
        hint = "; to search a folder, name the folder rather than its files" if len(arguments) > expected else ""
        raise click.BadParameter(f"expected {expected_words}, got {len(arguments)}{hint}")
    if not patterns and is_location(arguments[0]) and not is_location(arguments[1]):
        swapped = shlex.join(arguments[::-1])
        raise click.BadParameter(f"no text at {arguments[1]!r}; the URL comes last: `monocontext grep {swapped}`")
    return patterns or arguments[:1], arguments[-1]


def _check_pattern(pattern: str) -> str:
    """Return a valid pattern. Raises `MonocontextError` for a POSIX class, `re.error` for any other invalid pattern."""
    posix_class = re.search(_POSIX_CLASS, pattern)
    if posix_class:
        raise MonocontextError(
            f"{posix_class[1]} is not supported: write a-zA-Z, \\d, \\s or \\w, or search for plain text with -F"
        )
    re.compile(pattern)
    return pattern


def _scope_flags(pattern: str) -> str:
    """The pattern with its flags in a group, `(?i:one)` for `(?i)one`, so that it may stand inside another pattern."""
    flags = re.match(_GLOBAL_FLAGS, pattern)
    if flags is None:
        return pattern
    letters = "".join(sorted({*flags[0]} - {*"(?)"}))
    comment_end = "\n" if "x" in letters else ""  # else a comment at the end would hide the parenthesis
    return f"(?{letters}:{pattern[flags.end() :]}{comment_end})"


def _allow_cr_at_line_end(pattern: str) -> str:
    r"""A pattern whose `$` also matches before the `\r` of a line end, as with `rg --crlf`."""
    return re.sub(_ESCAPE_SET_COMMENT_OR_END, lambda part: r"(?=\r?$)" if part[0] == "$" else part[0], pattern)


class _SearchScope:
    """The part of a text to search: its documents that the globs select, or the whole text if it has no documents."""

    def __init__(self, context: Monocontext, url: str, globs: list[str], escape: Callable[[str], str]):
        """`escape`: makes names safe to print. JSON escapes them itself, so `str` does for JSON."""
        self._context, self._documents, self._escape = context, context.documents, escape
        self._folder = shared.folder_prefix(url) or ""
        self._globs = shared.globs_of(globs) if globs else None
        text_bytes = reader_of(context).manifest.text_bytes
        self._whole_text = ShownFile(escape(url), Document(0, url, 0, len(context), 0, 0, text_bytes), context)

    def ranges(self) -> list[tuple[int, int]]:
        """The ranges [start, stop) of characters to search."""
        if self._globs is None or not self._documents.count:  # a text without documents is a file that is named
            return [(0, len(self._context))]
        return ranges_of(record for record in self._documents.records() if self._globs.select(record.name))

    def file_at(self, character: int) -> ShownFile | None:
        """The file that holds a character; None if it is not to be searched, or between documents."""
        if not self._documents.count:
            return self._whole_text
        record = self._documents.at(character)
        if record is None or (self._globs is not None and not self._globs.select(record.name)):
            return None
        return ShownFile(self._escape(self._folder + record.name), record, self._context)


def _format_counts(counts: Iterator[tuple[str, int]], style: Style, *, as_json: bool) -> Iterator[str]:
    for name, count in counts:
        if as_json:
            yield json.dumps({"path": name, "count": count})
        else:
            yield f"{style.paint(NAME, name)}:{count}" if style.has_names else str(count)


def _print_stats(stats: Stats, seconds: float) -> None:
    search = stats.search
    frames = "none pruned, every line is looked at"
    if search.searches:
        frames = f"{search.frames:,} in all, {search.pruned:,} pruned, {search.looked_at:,} looked at"
        frames += f", {search.false_positives:,} in vain"
    print(f"frames: {frames}", file=sys.stderr)
    text_bytes = stats.bytes_fetched - search.filter_bytes
    print(f"bytes: {text_bytes:,} of text and index, {search.filter_bytes:,} of filters", file=sys.stderr)
    print(f"GETs: {stats.gets:,}; seconds: {seconds:.2f}", file=sys.stderr)
