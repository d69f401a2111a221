"""Name volumes: places for plain files, each a prefix below one place."""

from __future__ import annotations

import os
import re
from pathlib import Path

from monocontext.errors import InvalidUrl
from monocontext.stores.protocol import Store, list_telling

VOLUMES_VARIABLE = "MONOCONTEXT_VOLUMES"
_MARKS = ".volumes"
"""Holds an empty object for each volume that was made by name: stores keep no empty prefixes."""
_NAME = re.compile(r"\w[\w.-]*")


def volumes_url(volumes: str | None = None) -> str:
    """The place of volumes: $MONOCONTEXT_VOLUMES, such as `s3://bucket/volumes`, else `~/.monocontext/volumes`."""
    return volumes or os.environ.get(VOLUMES_VARIABLE) or str(Path.home() / ".monocontext" / "volumes")


def volume_url(name: str, volumes: str | None = None) -> str:
    """The place of a volume: a URL or a path as it is, a name below `volumes_url(volumes)`. Raises `InvalidUrl`."""
    return name if "/" in name else f"{volumes_url(volumes).rstrip('/')}/{_checked(name)}"


def is_volume_name(word: str) -> bool:
    """Whether a volume may be called so: letters, digits and `-_.`, not first a `.` or a `-`."""
    return _NAME.fullmatch(word) is not None


class Volumes:
    """The volumes below a place. One exists once it was made by `create`, or holds a file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self) -> list[str]:
        """All volumes, sorted (1 LIST a thousand files of all volumes)."""
        found = set()
        for info in self._store.list():
            first, _, below = info.key.partition("/")
            name = below if first == _MARKS else first
            if below and is_volume_name(name):
                found.add(name)
        return sorted(found)

    def exists(self, name: str) -> bool:
        """Whether there is such a volume (1 or 2 LISTs)."""
        mark = self._mark(name)
        return any(True for _ in self._store.list(f"{name}/")) or any(
            info.key == mark for info in self._store.list(mark)
        )

    def create(self, name: str) -> None:
        """Make an empty volume (1 PUT). Raises `AlreadyExists` where one was made by this."""
        self._store.put(self._mark(name), b"", if_absent=True)

    def remove(self, name: str, left_out: list[str] | None = None) -> int:
        """Remove a volume and its files; returns their number (1 LIST a thousand, 1 DELETE each). Adds to `left_out`
        the keys that remain, since no verb takes them."""
        mark = self._mark(name)
        keys = [info.key for info in list_telling(self._store, [] if left_out is None else left_out, f"{name}/")]
        for key in [*keys, mark]:
            self._store.delete(key)
        return len(keys)

    def _mark(self, name: str) -> str:
        return f"{_MARKS}/{_checked(name)}"


def _checked(name: str) -> str:
    """Raises `InvalidUrl` for a name that no volume can have."""
    if not is_volume_name(name):
        raise InvalidUrl(f"a volume has a name of letters, digits and -_., not {name!r}")
    return name
