"""Exceptions for missing keys: botocore has to be asked, or no source has any."""

from __future__ import annotations


class AskBotocore(Exception):
    """Only botocore knows what is configured here; the message names it."""


class NoIdentity(Exception):
    """No keys were found; the message is one line that names the source, and holds no secret."""


class NothingFound(NoIdentity):
    """No source has keys; the message names those that were tried."""
