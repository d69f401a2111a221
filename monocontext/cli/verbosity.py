"""Define `--quiet` and `--verbose` for all commands of both programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import click

from monocontext.cli.parameters import Option
from monocontext.cli.printing import hush, say

if TYPE_CHECKING:
    import logging

LOGGERS = ("monocontext", "rlm")

_handler: logging.Handler | None = None
"""Prints the records of our loggers, with `--verbose`; without it nothing imports `logging`."""


def _take_quiet(context: click.Context, wanted: bool) -> bool:
    """Remember the level. The program's own option comes first, and replaces the one of an earlier program."""
    if wanted or context.parent is None:
        hush(wanted)
    return wanted


def _take_verbose(context: click.Context, wanted: bool) -> bool:
    global _handler
    if wanted and _handler is None:
        _handler = _print_logs()
    elif _handler and not wanted and context.parent is None:
        _handler.close()
        _handler = None
    return wanted


def _print_logs() -> logging.Handler:
    """Let our loggers print each record as a line on stderr, with control characters escaped."""
    import logging

    class _StderrLines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(self.format(record), err=True)

        def close(self) -> None:
            for name in LOGGERS:
                logging.getLogger(name).removeHandler(self)
            super().close()

    lines = _StderrLines()
    lines.setFormatter(logging.Formatter("%(asctime)s %(name)s %(levelname)s %(message)s"))
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.addHandler(lines)
        logger.setLevel(logging.DEBUG)
    return lines


def options(
    quiet: Annotated[
        bool, Option("--quiet", callback=_take_quiet, expose_value=False, help="No remarks and no progress on stderr.")
    ] = False,
    verbose: Annotated[
        bool,
        Option(
            "--verbose", callback=_take_verbose, expose_value=False, help="Print on stderr what happens on the way."
        ),
    ] = False,
) -> None:
    """The options of both programs."""


SHARED = ("quiet", "verbose")
"""Options of a program that each of its commands takes, too."""


def is_verbose() -> bool:
    """Whether `--verbose` was given."""
    return _handler is not None
