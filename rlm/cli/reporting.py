"""Report errors and retries of a command on stderr, one line each."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import click

from monocontext.cli.printing import fail, is_quiet, say
from monocontext.cli.progress import shows_progress
from monocontext.cli.verbosity import is_verbose
from monocontext.errors import MonocontextError
from rlm.errors import RLMError


class _StderrLines(logging.Handler):
    """Prints each log record as one line, followed by the endpoint's own message, its attribute `said`."""

    def emit(self, record: logging.LogRecord) -> None:
        words = (record.getMessage(), getattr(record, "said", ""))
        say(f"rlm: {' '.join(': '.join(filter(None, words)).split())}", err=True)


@contextmanager
def one_line_errors() -> Iterator[None]:
    """Decorate a command: print an error that a user can correct as one line, with status 2; a bug keeps its traceback.

    Each retry, and each workaround for an option that an endpoint refuses, is a line too. A terminal shows them in its
    live status line instead, and `--verbose` prints them as log lines.
    """
    logger, lines = logging.getLogger("rlm"), _StderrLines(logging.INFO)
    before = logger.level
    prints_retries = not (shows_progress() or is_verbose() or is_quiet())
    if prints_retries:
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
    try:
        yield
    except (RLMError, MonocontextError, OSError) as error:
        fail("rlm", str(error))
        raise click.exceptions.Exit(2) from None
    finally:
        if prints_retries:
            logger.removeHandler(lines)
            logger.setLevel(before)
