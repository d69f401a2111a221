"""Report retries and fallbacks of a run to the standard `logging`, as `rlm`; silent by default."""

from __future__ import annotations

import sys

INFO, WARNING = 20, 30


def log(level: int, message: str, *arguments: object, said: str = "") -> None:
    """Pass one message to `logging`. A program that has not imported it pays nothing: it cannot have asked for it.

    Messages name models and kinds of errors. The words of an endpoint may hold names of accounts: `said` is an
    attribute of the record, for the terminal of the person who runs the command.
    """
    if "logging" not in sys.modules:
        return
    import logging

    logger = logging.getLogger("rlm")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr
    if logger.isEnabledFor(level):
        logger.log(level, message, *arguments, stacklevel=2, extra={"said": said})
