"""Report on stderr why a run waits: retries, and workarounds for options that an endpoint refuses."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from monocontext.cli.printing import is_quiet, say
from monocontext.cli.progress import shows_progress
from monocontext.cli.verbosity import is_verbose
from rlm.trajectory.flags import in_flags


class _StderrLines(logging.Handler):
    """Prints each record as one line, with what the endpoint said (`said`) after it."""

    def emit(self, record: logging.LogRecord) -> None:
        words = (record.getMessage(), getattr(record, "said", ""))
        say(f"rlm: {' '.join(': '.join(filter(None, words)).split())}", err=True)


@contextmanager
def saying_retries() -> Iterator[None]:
    """Inside, print each retry on stderr as one line, except on a terminal, where a live status line moves, and with
    `--verbose`, which prints them already.

    A `UserWarning`, such as `RLM` gives, is printed the same way, on a terminal too; nothing is printed with `--quiet`.
    """
    logger, lines = logging.getLogger("rlm"), _StderrLines(logging.INFO)
    before, show = logger.level, warnings.showwarning

    def warn(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if category is not UserWarning:
            show(message, category, *where, **more)
        elif not is_quiet():
            say(f"rlm: {in_flags(str(message))}", err=True)

    is_told = not (shows_progress() or is_verbose() or is_quiet())
    if is_told:
        logger.addHandler(lines)
        logger.setLevel(logging.INFO)
    warnings.showwarning = warn
    try:
        yield
    finally:
        warnings.showwarning = show
        if is_told:
            logger.removeHandler(lines)
            logger.setLevel(before)
