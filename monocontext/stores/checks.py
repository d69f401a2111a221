"""Checks and error messages that all stores share."""

from __future__ import annotations

from monocontext.errors import AlreadyExists, ContextChanged, DamagedData, InvalidUrl, NotFound


def check_key(key: str) -> str:
    """Return `key`. Raises `InvalidUrl` if it could lead out of the root of the store, or is not valid Unicode."""
    parts = key.split("/")
    try:
        key.encode()
    except UnicodeEncodeError:
        raise InvalidUrl(f"invalid key {key!r}: it cannot be encoded as UTF-8") from None
    if not key or "\0" in key or any(part in ("", ".", "..") for part in parts):
        raise InvalidUrl(f"invalid key {key!r}: no part may be empty, '.' or '..', and it must not contain NUL")
    return key


def check_range(start: int, length: int) -> None:
    """Raise `ValueError` for a negative start or length."""
    if start < 0 or length < 0:
        raise ValueError(f"start and length must not be negative, found start {start} and length {length}")


def check_write(if_absent: bool, if_match: str | None) -> None:
    """Raise `ValueError` if both conditions are given."""
    if if_absent and if_match is not None:
        raise ValueError("if_absent and if_match cannot be combined")


def check_version(url: str, expected: str | None, etag: str) -> None:
    """Raise `ContextChanged` unless the object has the version that the reader expects, if any."""
    if expected is not None and expected != etag:
        raise ContextChanged(f"{url} was replaced: expected ETag {expected}, found {etag}")


def check_end(url: str, start: int, length: int, total_bytes: int) -> None:
    """Raise `DamagedData` if the object ends before the range does."""
    if start + length > total_bytes:
        raise DamagedData(
            f"{url} is too short: expected bytes {start:,} to {start + length:,}, found {total_bytes:,} bytes in all"
        )


def check_part(url: str, expected: str | None, etag: str, start: int, length: int, total_bytes: int) -> None:
    """Check the version and the end of an object. Raises `ContextChanged`, `DamagedData`."""
    check_version(url, expected, etag)
    check_end(url, start, length, total_bytes)


def check_size(url: str, most_bytes: int | None, found_bytes: int | None) -> None:
    """Raise `DamagedData` if an object is larger than `most_bytes`."""
    if most_bytes is not None and found_bytes is not None and found_bytes > most_bytes:
        raise DamagedData(f"{url} is too large: {found_bytes:,} bytes, at most {most_bytes:,} are allowed")


def one_line(error: object) -> str:
    """The message of an error in one line; the name of its type if it has no message."""
    return " ".join(str(error).split()) or type(error).__name__


def not_found_error(url: str) -> NotFound:
    """The error for a missing object."""
    return NotFound(f"nothing at {url}")


def conflict_error(url: str, if_match: str | None, etag: str) -> AlreadyExists:
    """The error for a conditional write that found another version."""
    if if_match is None:
        return AlreadyExists(f"{url} already exists: ETag {etag}")
    return AlreadyExists(f"{url} was written by someone else: expected ETag {if_match}, found {etag}")
