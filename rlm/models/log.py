"""Report retries and lost workers to the standard `logging`, as `rlm`; silent by default."""

import logging

INFO, WARNING = logging.INFO, logging.WARNING
_logger = logging.getLogger("rlm")
_logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr


def log(level: int, message: str, *arguments: object, said: str = "") -> None:
    """Pass on a message, which names models and kinds of errors only. What an endpoint `said` may hold account names:
    the command alone prints it."""
    _logger.log(level, message, *arguments, stacklevel=2, extra={"said": said})
