"""Checks and error messages that all stores share."""

from __future__ import annotations

from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, InvalidUrl, NotFound


def check_key(key: str) -> str:
    """Return `key`. Raises `InvalidUrl` where it could lead out of the store's root, or has no UTF-8 form."""
    parts = key.split("/")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidUrl(f"not a key inside a store: {key!r} has no UTF-8 form") from None
    if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise InvalidUrl(f"not a key inside a store: {key!r}")
    return key


def check_range(start: int, length: int) -> None:
    """Raise `ValueError` for a negative start or length."""
    if start < 0 or length < 0:
        raise ValueError(f"a range needs start >= 0 and length >= 0, not start {start} and length {length}")


def check_write(if_absent: bool, if_match: str | None) -> None:
    """Raise `ValueError` for two conditions that cannot both hold."""
    if if_absent and if_match is not None:
        raise ValueError("if_absent and if_match exclude each other")


def check_version(url: str, expected: str | None, found: str) -> None:
    """Raise `ContextChanged` when the reader expects another version of the object."""
    if expected is not None and expected != found:
        raise ContextChanged(f"{url} was replaced: expected ETag {expected}, found {found}")


def check_end(url: str, start: int, length: int, total_bytes: int) -> None:
    """Raise `DamagedData` when the object ends before the range does."""
    if start + length > total_bytes:
        raise DamagedData(
            f"{url} is too short: expected bytes {start:,} to {start + length:,}, found {total_bytes:,} bytes in all"
        )


def check_part(url: str, expected: str | None, found: str, start: int, length: int, total_bytes: int) -> None:
    """Check the version of an object, and that it holds a range. Raises `ContextChanged`, `DamagedData`."""
    check_version(url, expected, found)
    check_end(url, start, length, total_bytes)


def check_size(url: str, most_bytes: int | None, found_bytes: int | None) -> None:
    """Raise `DamagedData` when an object is larger than `most_bytes`."""
    if most_bytes is not None and found_bytes is not None and found_bytes > most_bytes:
        raise DamagedData(f"{url} is too large: {found_bytes:,} bytes, at most {most_bytes:,}")


def not_found_error(url: str) -> NotFound:
    """The error for a missing object."""
    return NotFound(f"nothing at {url}")


def conflict_error(url: str, if_match: str | None, found: str) -> AlreadyExists:
    """The error for a conditional write that found another version."""
    if if_match is None:
        return AlreadyExists(f"{url} exists already: ETag {found}")
    return AlreadyExists(f"{url} was written by someone else: expected ETag {if_match}, found {found}")
