"""Name segments so that no name is stored twice, and find those that an earlier run has just stored.

A segment ends in 16 bytes that are random for each run, its salt, and all of its bytes decide its name. So a run never
stores under a name that `gc` may be about to remove. A run that follows a killed one learns its salt from a segment of
the same length, and relies on its segments while they are young.
"""

from __future__ import annotations

import hashlib
import secrets

from monocontext.errors import DamagedData, NotFound
from monocontext.stores.protocol import Store, seconds_now

REUSE_SECONDS = 24 * 3600
"""Older segments are sent again: `gc` may be about to remove them while no generation names them. It removes nothing
younger than its grace period."""
SALT_BYTES = 16
"""Here a line of text, so that raw segments stay plain text."""
MOST_LOOKS = 16
"""Segments of the same length whose salt is read: other texts may have as long ones."""


class ReusableSegments:
    """The segments of one run and, of the same text, of runs before it. Workers of an executor get a copy."""

    def __init__(self, store: Store, after_seconds: float = 0.0) -> None:
        """Lists segments (1 LIST a thousand). Segments stored up to `after_seconds`, by the store's clock, are not
        relied on."""
        listed = list(store.list("segments/"))
        oldest = seconds_now(store, listed[0].now_seconds) - REUSE_SECONDS if listed else 0.0
        young = [info for info in listed if info.modified_seconds >= oldest and info.modified_seconds > after_seconds]
        self._sizes = {info.key: info.size_bytes for info in young}
        self._as_long: dict[int, list[str]] = {}
        for info in young:
            self._as_long.setdefault(info.size_bytes, []).append(info.key)
        self._salts = [f"{secrets.token_urlsafe(11)}\n".encode()]
        """Salts of this run, then of others."""
        self._looks = 0

    @property
    def salt(self) -> bytes:
        """The random end of this run's segments."""
        return self._salts[0]

    def find(self, store: Store, digest: hashlib._Hash, stored_bytes: int) -> str | None:
        """The key of a stored segment of frames with this SHA-256 and length; None if there is none (no request, or 1
        GET of 16 bytes for a segment of that length)."""
        size = stored_bytes + SALT_BYTES
        for salt in self._salts:
            if self._sizes.get(key := _key(digest, salt)) == size:
                return key
        for key in self._as_long.get(size, ()):
            if self._looks == MOST_LOOKS:
                break
            self._looks += 1
            try:
                salt = store.get_range(key, stored_bytes, SALT_BYTES).data
            except (NotFound, DamagedData):
                continue
            if _key(digest, salt) == key:
                self._salts.append(salt)
                return key
        return None

    def name(self, digest: hashlib._Hash, stored_bytes: int) -> str:
        """The key of a new segment of this run, from the SHA-256 of its frames; counts as stored from now on."""
        key = _key(digest, self.salt)
        self._sizes[key] = stored_bytes + SALT_BYTES
        return key


def segment_key(sha256: str) -> str:
    """The key of a segment, from the SHA-256 of its bytes in hex."""
    return f"segments/{sha256[:32]}.seg"


def _key(digest: hashlib._Hash, salt: bytes) -> str:
    whole = digest.copy()
    whole.update(salt)
    return segment_key(whole.hexdigest())
