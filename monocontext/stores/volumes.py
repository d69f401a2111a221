"""Make, list and remove volumes: named folders of plain files, each a prefix below one URL."""

from __future__ import annotations

import os
import re
from pathlib import Path

from monocontext.errors import InvalidUrl
from monocontext.stores.protocol import Store, list_usable

VOLUMES_VARIABLE = "MONOCONTEXT_VOLUMES"
_MARKERS = ".volumes"
"""The folder with an empty object for each volume that `create` made: a store cannot show a volume without files."""
_NAME = re.compile(r"\w[\w.-]*")  # `notes` or `a.b-2`, but not `.a`, `-a` or `a/b`


def volumes_url(volumes: str | None = None) -> str:
    """The URL or path above all volumes: `volumes`, else `$MONOCONTEXT_VOLUMES`, else `~/.monocontext/volumes`."""
    return volumes or os.environ.get(VOLUMES_VARIABLE) or str(Path.home() / ".monocontext" / "volumes")


def volume_url(name: str, volumes: str | None = None) -> str:
    """The URL or path of a volume: `name` itself if it has a slash, else `name` below `volumes_url(volumes)`.

    Raises `InvalidUrl` for an invalid name.
    """
    return name if "/" in name else f"{volumes_url(volumes).rstrip('/')}/{_check_name(name)}"


def is_volume_name(word: str) -> bool:
    """Whether a word is a valid name: letters, digits and `-_.`, with neither `.` nor `-` at the start."""
    return _NAME.fullmatch(word) is not None


class Volumes:
    """The volumes below the root of a store. A volume exists if `create` made it, or if it has a file."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def names(self) -> list[str]:
        """The names of all volumes, sorted (1 LIST per 1,000 files)."""
        result = set()
        for info in self._store.list():
            first, _, below = info.key.partition("/")
            name = below if first == _MARKERS else first
            if below and is_volume_name(name):
                result.add(name)
        return sorted(result)

    def exists(self, name: str) -> bool:
        """Whether there is such a volume (1 or 2 LISTs)."""
        marker = self._marker(name)
        has_files = any(True for _ in self._store.list(f"{name}/"))
        return has_files or any(info.key == marker for info in self._store.list(marker))

    def create(self, name: str) -> None:
        """Create an empty volume (1 PUT). Raises `AlreadyExists` if `create` made it before."""
        self._store.put(self._marker(name), b"", if_absent=True)

    def remove(self, name: str, left_out: list[str] | None = None) -> int:
        """Remove a volume and its files; returns the number of files (1 LIST per 1,000 files, 1 DELETE per file).

        Objects whose keys no verb accepts remain, and their keys are added to `left_out`.
        """
        marker = self._marker(name)
        keys = [info.key for info in list_usable(self._store, [] if left_out is None else left_out, f"{name}/")]
        for key in [*keys, marker]:
            self._store.delete(key)
        return len(keys)

    def _marker(self, name: str) -> str:
        return f"{_MARKERS}/{_check_name(name)}"


def _check_name(name: str) -> str:
    """Return `name`. Raises `InvalidUrl` if it is not a valid name."""
    if not is_volume_name(name):
        raise InvalidUrl(
            f'{name!r} is not a volume name: use letters, digits and "-_.", without "-" or "." at the start'
        )
    return name
