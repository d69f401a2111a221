"""What every store checks before it answers, and the words in which it refuses: the same for all of them."""

from __future__ import annotations

from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, InvalidUrl, NotFound
from monocontext.store import check_key


def usable_key(key: str) -> str:
    """Return `key`, or raise `InvalidUrl`: it must stay inside the store and have a UTF-8 form."""
    check_key(key)
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InvalidUrl(f"not a key inside a store: {key!r} has no UTF-8 form") from error
    return key


def check_range(start: int, length: int) -> None:
    """Refuse a range that no caller can mean (a programming error, hence `ValueError`)."""
    if start < 0 or length < 0:
        raise ValueError(f"a range needs start >= 0 and length >= 0, not start {start} and length {length}")


def check_write(if_absent: bool, if_match: str | None) -> None:
    """Refuse two conditions that cannot both hold."""
    if if_absent and if_match is not None:
        raise ValueError("if_absent and if_match exclude each other")


def check_version(url: str, expected: str | None, found: str) -> None:
    """Raise `ContextChanged` when the reader asked for another version than the one that is there."""
    if expected is not None and expected != found:
        raise ContextChanged(f"{url} was replaced: expected ETag {expected}, found {found}")


def check_end(url: str, start: int, length: int, total_bytes: int) -> None:
    """Raise `DamagedData` when the object ends before the range does."""
    if start + length > total_bytes:
        raise DamagedData(
            f"{url} is too short: expected bytes {start:,} to {start + length:,}, found {total_bytes:,} bytes in all"
        )


def absent(url: str) -> NotFound:
    """The error for an object that is not there."""
    return NotFound(f"nothing at {url}")


def lost(url: str, if_match: str | None, found: str) -> AlreadyExists:
    """The error for a conditional write that met something else."""
    if if_match is None:
        return AlreadyExists(f"{url} exists already: ETag {found}")
    return AlreadyExists(f"{url} was written by someone else: expected ETag {if_match}, found {found}")
