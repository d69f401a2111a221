"""Report retries and lost workers to the standard `logging`, as `rlm`; silent by default."""

import logging

INFO, WARNING = logging.INFO, logging.WARNING
_logger = logging.getLogger("rlm")
_logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr


def log(level: int, message: str, *arguments: object, said: str = "") -> None:
    """Log a message, which names only models and kinds of errors. `said`: the endpoint's own words, which only the
    command prints, since they may hold names of accounts."""
    _logger.log(level, message, *arguments, stacklevel=2, extra={"said": said})
