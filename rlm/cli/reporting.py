"""Report errors, retries and warnings of a command on stderr, one line each."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from monocontext.cli.printing import fail, is_quiet, say
from monocontext.cli.progress import shows_progress
from monocontext.cli.verbosity import is_verbose
from monocontext.errors import MonocontextError
from rlm.errors import RLMError


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Decorate a command: report its retries, and print an error that a user can correct as one line, with status 2.

    A bug keeps its traceback.
    """
    try:
        with reporting_retries():
            yield
    except (RLMError, MonocontextError, OSError) as error:
        fail("rlm", str(error))
        raise click.exceptions.Exit(2) from None


class _StderrLines(logging.Handler):
    """Prints each log record as one line, followed by the endpoint's own message, its attribute `said`."""

    def emit(self, record: logging.LogRecord) -> None:
        words = (record.getMessage(), getattr(record, "said", ""))
        say(f"rlm: {' '.join(': '.join(filter(None, words)).split())}", err=True)


@contextmanager
def reporting_retries() -> Iterator[None]:
    """Print each retry, and each workaround for an option that an endpoint refuses, on stderr.

    A terminal shows them in its live status line instead, and `--verbose` prints them as log lines. A `UserWarning`
    is printed in every case, except with `--quiet`, which prints nothing.
    """
    logger, lines = logging.getLogger("rlm"), _StderrLines(logging.INFO)
    before, show = logger.level, warnings.showwarning

    def warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category is not UserWarning:
            show(message, category, *where, **more)
        elif not is_quiet():
            say(f"rlm: {message}", err=True)

    prints_retries = not (shows_progress() or is_verbose() or is_quiet())
    if prints_retries:
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
    warnings.showwarning = warn
    try:
        yield
    finally:
        warnings.showwarning = show
        if prints_retries:
            logger.removeHandler(lines)
            logger.setLevel(before)
