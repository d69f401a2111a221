"""Print the output of commands. Control characters in lines are escaped; in texts, only on a terminal."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from monocontext import notebook
from monocontext.errors import AccessDenied, StoreFailure, Unsupported
from monocontext.stores.secrets_in_urls import without_secrets

if TYPE_CHECKING:
    import logging

LOGGERS = ("monocontext", "rlm")
_CONTROLS = "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)"
"""Control characters except tab and line ends, marks that reverse a line's direction, and lone surrogates."""

_OPTIONS = (
    "allow anonymous base_url encoding endpoint errors follow_links generation if_match max_bytes max_seconds prefetch "
    "profile region replace"
)
_KEYWORD = rf"""(?x) \b({"|".join(_OPTIONS.split())})=(?:  # a keyword of Python in a message of the library, such as
    True\b | \['([^']*)'\] | '([^']*)' | (?=[\s,;:)]|$)  # anonymous=True, allow=['s3://x'], region='x', max_bytes=
    )"""
_KEY_ADVICE = (("pass api_key= or", "give"), (", or pass api_key=", ""))
"""Advice in messages to pass `api_key=`, which no flag takes, and its replacement."""
_quiet = False
_handler: logging.Handler | None = None  # prints the records of our loggers with `--verbose`


def set_quiet(quiet: bool) -> None:
    """Suppress remarks and progress, or print them again. Errors and results are always printed."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    """Whether remarks and progress are suppressed."""
    return _quiet


def show_logs(verbose: bool) -> None:
    """Print each record of our loggers as a line on stderr, or stop printing them."""
    global _handler
    if verbose == is_verbose():
        return
    import logging  # 11 ms of CPU

    class StderrLines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            print_line(hide_secrets(self.format(record)), err=True)

    handler = _handler or StderrLines()
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for logger in map(logging.getLogger, LOGGERS):
        if verbose:
            logger.addHandler(handler)
            logger.setLevel(logging.DEBUG)
        else:
            logger.removeHandler(handler)
    _handler = handler if verbose else None


def is_verbose() -> bool:
    """Whether `--verbose` was given."""
    return _handler is not None


def shows_progress() -> bool:
    """Whether stderr shows progress: on a terminal, without `--quiet`."""
    return sys.stderr.isatty() and not _quiet


def progress_bar(label: str, total: int | None = None) -> AbstractContextManager[Callable[..., None]]:
    """Yield the `progress` callback of a long operation. It draws a bar, but only on a terminal."""
    return notebook.progress_bar(label, total) if shows_progress() else nullcontext(lambda *_: None)


def wants_colour() -> bool:
    """Whether stdout takes colours: a terminal, and no `NO_COLOR`."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def escape_controls(text: str) -> str:
    """Escape control characters: an escape sequence in a hostile name could fill the clipboard or hide a line."""
    return re.sub(_CONTROLS, lambda match: match[0].encode("unicode_escape").decode(), text)


def print_line(text: str, *, err: bool = False) -> None:
    """Print a line on stdout, or with `err` on stderr."""
    print(escape_controls(text), file=sys.stderr if err else sys.stdout, flush=err)


def print_row(text: str) -> None:
    """Print one row of a list; line ends in it are escaped."""
    print_line(text.replace("\n", "\\n").replace("\r", "\\r"))


def print_record(as_json: bool, row: Mapping[str, Any], text: str) -> None:
    """Print one row of a list: an object of JSON, or a text."""
    import json  # here, so that Ctrl-C during the start of a command prints one line

    print_row(json.dumps(row) if as_json else text)


def print_error(program: str, error: object) -> None:
    """Print an error as one line on stderr, with Python keyword arguments rewritten as flags.

    If a store refuses or fails, the message names the URL that the user gave instead of the manifest below it.
    """
    message = " ".join(str(error).split())
    if isinstance(error, AccessDenied | StoreFailure | Unsupported):
        message = message.replace("/manifest.json", "")
    print_line(f"{program}: {as_flags(message)}", err=True)


def hide_secrets(message: str) -> str:
    """A message without the passwords and signatures in its URLs, which a usage error may quote."""
    return re.sub(r"\S+", lambda word: without_secrets(word[0]), message)


def print_remark(text: str) -> None:
    """Print a line on stderr, or nothing with `--quiet`."""
    if not _quiet:
        print_line(text, err=True)


def print_note(text: str) -> None:
    """Print `note: TEXT` on stderr, or nothing with `--quiet`. Python keyword arguments in it become flags."""
    print_remark(f"note: {as_flags(text)}")


def write_text(text: str) -> None:
    """Write a text to stdout as it is; on a terminal, control characters are escaped."""
    write_bytes((escape_controls(text) if sys.stdout.isatty() else text).encode())


def write_bytes(data: bytes) -> None:
    """Write all of `data` to stdout. With PYTHONUNBUFFERED stdout has no buffer, and one call may write less."""
    unwritten = memoryview(data)
    while unwritten:
        unwritten = unwritten[sys.stdout.buffer.write(unwritten) or 0 :]


def as_flags(message: str) -> str:
    """A message without secrets, and with flags for Python keyword arguments: `--anonymous` for `anonymous=True`."""
    message = hide_secrets(message)
    for advice, replacement in _KEY_ADVICE:
        message = message.replace(advice, replacement)
    return re.sub(_KEYWORD, _as_flag, message)


def _as_flag(keyword: re.Match[str]) -> str:
    flag = f"--{keyword[1].replace('_', '-')}"
    value = keyword[2] or keyword[3]
    return f"{flag} {value}" if value else flag
