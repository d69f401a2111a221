"""Report retries and lost workers to the standard `logging`, as `rlm`; silent by default."""

import logging

INFO, WARNING = logging.INFO, logging.WARNING
_logger = logging.getLogger("rlm")
_logger.addHandler(logging.NullHandler())  # else `logging` prints unwanted warnings to stderr


def log(level: int, message: str, *arguments: object, said: str = "") -> None:
    """Pass one message to `logging`. Messages name models and kinds of errors only.

    What an endpoint says may contain account names: it goes into the attribute `said` of the record, which the command
    prints on the user's terminal.
    """
    _logger.log(level, message, *arguments, stacklevel=2, extra={"said": said})
