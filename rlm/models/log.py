"""Report retries and fallbacks of a run to the standard `logging`, as `rlm`; silent by default."""

from __future__ import annotations

import sys

INFO, WARNING = 20, 30


def log(level: int, message: str, *arguments: object, said: str = "") -> None:
    """Pass one message to `logging`, if the program has imported it.

    Messages name models and kinds of errors only. The message of an endpoint may contain account names, so it goes into
    the attribute `said` of the record, which the command prints on the user's terminal.
    """
    if "logging" not in sys.modules:
        return
    import logging

    logger = logging.getLogger("rlm")
    if not logger.handlers:
        logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr
    if logger.isEnabledFor(level):
        logger.log(level, message, *arguments, stacklevel=2, extra={"said": said})
