"""A disk cache for the bytes of a store."""

from __future__ import annotations

CAPACITY_BYTES = 10 << 30  # default capacity of a cache folder, in bytes
