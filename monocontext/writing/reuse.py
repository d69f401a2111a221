"""Name segments so that no name is stored twice, and find segments that an earlier, killed run has just stored.

A segment ends in a salt of 16 bytes, which is random for each run, and is named by a hash of all its bytes. So a run
never stores under a name that `gc` may be about to remove. The next run learns the salt of a killed one from a segment
of the same length, and reuses the segments of that run while they are young.
"""

from __future__ import annotations

import hashlib
import secrets

from monocontext.errors import DamagedData, NotFound
from monocontext.stores.protocol import Store, seconds_now

REUSE_SECONDS = 24 * 3600
"""Older segments are stored again: `gc` may be about to remove them, since no generation names them."""
SALT_BYTES = 16
"""The length of a salt. It is a line of text, so that raw segments stay plain text."""
MOST_LOOKS = 16
"""At most this many segments of a wanted length are read for their salt: they may be of other texts."""


class ReusableSegments:
    """Segments of one text that this run or earlier runs have stored. Each worker of an executor gets a copy."""

    def __init__(self, store: Store, after_seconds: float = 0.0) -> None:
        """List the segments (1 LIST a thousand). Those stored up to `after_seconds`, by the store's clock, are not
        reused."""
        listed = list(store.list("segments/"))
        oldest = seconds_now(store, listed[0].now_seconds) - REUSE_SECONDS if listed else 0.0
        young = [info for info in listed if info.modified_seconds >= oldest and info.modified_seconds > after_seconds]
        self._sizes = {info.key: info.size_bytes for info in young}
        self._by_size: dict[int, list[str]] = {}
        for info in young:
            self._by_size.setdefault(info.size_bytes, []).append(info.key)
        self._salts = [f"{secrets.token_urlsafe(11)}\n".encode()]
        """The salt of this run, then those of earlier runs."""
        self._looks = 0

    @property
    def salt(self) -> bytes:
        """The salt of this run."""
        return self._salts[0]

    def find(self, store: Store, digest: hashlib._Hash, stored_bytes: int) -> str | None:
        """The key of a stored segment whose frames have this SHA-256 and length in bytes, or None.

        Costs no request, or 1 GET of 16 bytes for each stored segment of that length, up to `MOST_LOOKS` in all.
        """
        size = stored_bytes + SALT_BYTES
        for salt in self._salts:
            if self._sizes.get(key := _key(digest, salt)) == size:
                return key
        for key in self._by_size.get(size, ()):
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
        """The key of a new segment, whose frames have this SHA-256. It counts as stored from now on."""
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
