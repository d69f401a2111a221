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


class _Lines(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        words = (record.getMessage(), getattr(record, "said", ""))
        say(f"rlm: {' '.join(': '.join(filter(None, words)).split())}", err=True)


@contextmanager
def saying_retries() -> Iterator[None]:
    """Print them as they come, each a line; not on a terminal, whose living line moves, and not twice (`--verbose`).

    Warnings of `RLM` are lines too, everywhere but with `--quiet`.
    """
    logger, lines = logging.getLogger("rlm"), _Lines(logging.INFO)
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
