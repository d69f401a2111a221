"""Become an ordinary user, shown what lies below folders of root alone, and run `sandbox_user.py UID PROGRAM...`."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from rlm.runners.confine import system

MS_MOVE = 8192


def main() -> None:
    user = int(sys.argv[1])
    wanted = {Path(sys.prefix), Path(sys.base_prefix), Path(__file__).resolve().parents[4]}
    wanted |= {Path(path) for path in sys.path if path.endswith("-packages")}
    shut = {path: closed for path in sorted(wanted) if (closed := _closed(path)) is not None}
    if shut:
        system.unshare(system.CLONE_NEWNS)
        system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
        stage = tempfile.mkdtemp()
        system.mount("tmpfs", stage, "tmpfs", 0, "mode=755")
        for i, path in enumerate(shut):
            os.mkdir(f"{stage}/{i}")
            system.mount(str(path), f"{stage}/{i}", None, system.MS_BIND | system.MS_REC)
        for closed in set(shut.values()):
            system.mount("tmpfs", str(closed), "tmpfs", 0, "mode=755")
        for i, path in enumerate(shut):
            if not path.exists():
                path.mkdir(parents=True)
                system.mount(f"{stage}/{i}", str(path), None, MS_MOVE)
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    os.chdir("/")
    os.execv(sys.argv[2], sys.argv[2:])


def _closed(path: Path) -> Path | None:
    """The outermost folder on the way that others cannot enter."""
    return next((p for p in reversed([path, *path.parents]) if not p.stat().st_mode & 1), None)


main()
