"""Define `--quiet` and `--verbose` for all commands of both programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from monocontext.cli.printing import hush, say

if TYPE_CHECKING:
    import logging

LOGGERS = ("monocontext", "rlm")

_handler: logging.Handler | None = None
"""Prints the records of our loggers with `--verbose`. Without it nothing imports `logging`."""


def _take_quiet(context: click.Context, _: object, wanted: bool) -> None:
    """Turn remarks off. Click reads the program's option first, which resets the state of an earlier call."""
    if wanted or context.parent is None:
        hush(wanted)


def _take_verbose(context: click.Context, _: object, wanted: bool) -> None:
    global _handler
    if wanted and _handler is None:
        _handler = _print_logs()
    elif _handler and not wanted and context.parent is None:
        _handler.close()
        _handler = None


def _print_logs() -> logging.Handler:
    """Let our loggers print each record as a line on stderr."""
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


def make_options() -> list[click.Option]:
    """The options `--quiet` and `--verbose` of a program."""
    settings: dict[str, Any] = {"is_flag": True, "expose_value": False}
    quiet, verbose = "Print no remarks and no progress on stderr.", "Print log records on stderr."
    return [
        click.Option(["--quiet"], callback=_take_quiet, help=quiet, **settings),
        click.Option(["--verbose"], callback=_take_verbose, help=verbose, **settings),
    ]


SHARED = ("quiet", "verbose")
"""The options of a program that each of its commands takes too."""


def is_verbose() -> bool:
    """Whether `--verbose` was given."""
    return _handler is not None
