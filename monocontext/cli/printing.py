"""Print the output of commands. On a terminal, control characters in it are escaped."""

from __future__ import annotations

import os
import re
import sys

from monocontext.errors import AccessDenied, StoreFailure

_STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|\r(?!\n)")
"""Control characters except tab and line ends, marks that reverse a line's direction, and lone surrogates."""

_KEYWORD = re.compile(
    r"\b(allow|anonymous|base_url|encoding|endpoint|errors|follow_links|generation|max_bytes|max_seconds|prefetch|profile|region|replace)="
    r"(?:True\b|\['([^']*)'\]|'([^']*)'|(?=[\s,;:)]|$))"
)


_quiet = False


def hush(wanted: bool) -> None:
    """Turn remarks and progress off or on. Errors and results are always printed."""
    global _quiet
    _quiet = wanted


def is_quiet() -> bool:
    """Whether remarks and progress are left out."""
    return _quiet


def wants_colour() -> bool:
    """Whether stdout takes colours: a terminal, and no `NO_COLOR`."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def escape_controls(text: str) -> str:
    """Escape control characters: a hostile name could fill the clipboard or hide a line by an escape sequence."""
    return _STEERING.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def say(text: str, *, err: bool = False) -> None:
    """Print a line."""
    print(escape_controls(text), file=sys.stderr if err else sys.stdout, flush=err)


def say_row(text: str) -> None:
    """Print one row of a list; line ends in it are escaped."""
    say(text.replace("\n", "\\n").replace("\r", "\\r"))


def fail(name: str, error: object) -> None:
    """Print the error that ended the program `name` in one line, with keywords of Python rewritten as flags.

    If a store refuses or fails, the message names the URL that the user gave instead of the manifest below it.
    """
    said = " ".join(str(error).split())
    if isinstance(error, AccessDenied | StoreFailure):
        said = said.replace("/manifest.json", "")
    say(f"{name}: {as_flags(said)}", err=True)


def remark(text: str) -> None:
    """Print a line on stderr, except with `--quiet`."""
    if not _quiet:
        say(text, err=True)


def note(text: str) -> None:
    """Print a remark of the library."""
    remark(f"note: {as_flags(text)}")


def write_text(text: str) -> None:
    """Write a text to stdout as it is; on a terminal, control characters are escaped."""
    display = escape_controls(text) if sys.stdout.isatty() else text
    write_bytes(display.encode())


def write_bytes(data: bytes) -> None:
    """Write all of `data` to stdout. With PYTHONUNBUFFERED stdout has no buffer, and one call may write less."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) or 0 :]


def as_flags(message: str) -> str:
    """Rewrite keywords of Python in a message as flags: `anonymous=True` becomes `--anonymous`."""

    def flag(found: re.Match[str]) -> str:
        value = found[2] or found[3]
        return f"--{found[1].replace('_', '-')}" + (f" {value}" if value else "")

    keyless = message.replace("pass api_key= or", "give").replace(", or pass api_key=", "")  # keys are no flags
    return _KEYWORD.sub(flag, keyless)
