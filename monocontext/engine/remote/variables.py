"""Select plain data of a modest size from a worker's namespace, such as the number in `at = context.find(...)`.

The host predicts reads of the model's next reply with it, and fetches `context[at - 500 : at + 1500]` early. A false
value costs bytes, as any wrong hint does.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Protocol

MOST_NAMES = 200
"""The most names whose values the host gets."""
MOST_CHARACTERS = 500
"""Longest string, and most items of a list."""
MOST_VALUES = 10_000
"""The most values in all, with four characters of a string counted as one: at most 500 KB of JSON, usually below 1 KB.
"""
_LARGEST = 1 << 62
"""Larger integers are not sent."""


class CodeFollower(Protocol):
    """Predicts, in the host, the reads of the code in a worker."""

    def ran(self, known: Mapping[str, object]) -> None:
        """Take the values that names have after a cell."""
        ...


def plain_values(namespace: Mapping[str, object]) -> dict[str, object]:
    """The latest names whose values are plain data, at most `MOST_NAMES`, with these values as JSON can encode them."""
    found: dict[str, object] = {}
    left = [MOST_VALUES]
    for name in islice(reversed(list(namespace)), 10 * MOST_NAMES):
        if name.startswith("_") or not name.isascii() or len(name) > 100:
            continue
        try:
            found[name] = _plain(namespace[name], left)
        except (KeyError, _NotPlain):
            continue
        if len(found) == MOST_NAMES:
            break
    return found


class _NotPlain(Exception):
    """A value is too large to send, or is not plain data."""


def _plain(value: object, left: list[int], depth: int = 0) -> object:
    left[0] -= 1 + (len(value) // 4 if type(value) is str else 0)
    if left[0] < 0 or depth > 3:
        raise _NotPlain
    if type(value) is int and abs(value) < _LARGEST:
        return value
    if type(value) is str and len(value) <= MOST_CHARACTERS:
        return value
    if type(value) in (list, tuple) and len(value) <= MOST_CHARACTERS:  # type: ignore[arg-type]
        return [_plain(item, left, depth + 1) for item in value]  # type: ignore[attr-defined]
    raise _NotPlain
