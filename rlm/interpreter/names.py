"""Names of volumes and of keys on them, in the shape of fleet-rlm. Pure but for the user and the folder it asks for."""

from __future__ import annotations

import getpass
import os
import re
from pathlib import Path

VOLUMES_VARIABLE = "MONOCONTEXT_VOLUMES"


def sanitize_key(key: str) -> str:
    """A key as the name of a file: letters, digits and `-_.` stay, all else becomes `_`; `unnamed` for none.

    Two keys may get one name (`a/b`, `a_b`). `monocontext.memory` keeps keys apart.
    """
    return "".join(each if each.isalnum() or each in "-_." else "_" for each in key) or "unnamed"


def get_memory_path(key: str) -> str:
    """Where a key's value lies by convention: `/data/memory/KEY.json`."""
    return f"/data/memory/{key}.json"


def get_default_volume_name() -> str:
    """`rlm-data-{user}-{folder}`, of who runs this and where."""
    return _named("rlm-data", getpass.getuser(), Path.cwd().name)


def get_workspace_volume_name(workspace_id: str | None = None) -> str:
    """`rlm-workspace-{id}`, by default of the folder that this runs in."""
    return _named("rlm-workspace", workspace_id or Path.cwd().name)


def volume_url(name: str, volumes: str | None = None) -> str:
    """Where a volume lies: a URL or a path as it is, a name below `volumes`.

    Without `volumes` that is $MONOCONTEXT_VOLUMES, such as `s3://bucket/volumes`, else `~/.monocontext/volumes`.
    """
    if "/" in name:
        return name
    if not re.fullmatch(r"[\w.-]+", name) or set(name) == {"."}:
        raise ValueError(f"a volume has a name of letters, digits and -_., not {name!r}")
    root = volumes or os.environ.get(VOLUMES_VARIABLE) or str(Path.home() / ".monocontext" / "volumes")
    return f"{root.rstrip('/')}/{name}"


def _named(*parts: str) -> str:
    return "-".join(re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "none" for part in parts)
