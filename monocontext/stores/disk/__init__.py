"""A disk cache in front of another store."""

from __future__ import annotations

CAPACITY_BYTES = 10 << 30
"""Of a folder, where the caller names no other."""
