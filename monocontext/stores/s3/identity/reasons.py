"""Exceptions for missing keys: botocore has to be asked, or no source has any."""

from __future__ import annotations


class UnsupportedBySigner(Exception):
    """Only botocore knows what is configured here; the message names it."""


class NoIdentity(Exception):
    """No keys were found; the message is one line that names the source, and holds no secret."""


class NothingFound(NoIdentity):
    """No source has keys; the message names those that were tried."""


def check_line(text: object, what: str) -> None:
    """Raise `NoIdentity` for a value that could not be sent in a header: it holds a line break, or the like."""
    if isinstance(text, str) and any(ord(sign) < 32 or 127 <= ord(sign) < 160 for sign in text):
        raise NoIdentity(f"{what} holds a line break or another control character: remove it")
