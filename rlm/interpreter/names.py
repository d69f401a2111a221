"""Name volumes, and keys on them, as fleet-rlm does."""

from __future__ import annotations

import getpass
import re
from pathlib import Path


def sanitize_key(key: str) -> str:
    """A key as a file name: letters, digits and `-_.` stay, all else becomes `_`; an empty key becomes `unnamed`.

    Two keys may get the same name (`a/b`, `a_b`). `monocontext.memory` keeps keys apart.
    """
    return "".join(item if item.isalnum() or item in "-_." else "_" for item in key) or "unnamed"


def get_default_volume_name() -> str:
    """`rlm-data-{user}-{folder}`, of the current user and folder."""
    return _join_parts("rlm-data", getpass.getuser(), Path.cwd().name)


def _join_parts(*parts: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "none" for part in parts)
