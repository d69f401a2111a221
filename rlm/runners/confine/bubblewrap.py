"""Build the command line of `bwrap`, which gives a worker its view of files and its namespaces."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence

from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import DEVICES, FolderView


def find() -> str | None:
    """The path of the program `bwrap`; None where it is not installed."""
    return shutil.which("bwrap", path=os.environ.get("PATH") or os.defpath)


def command(bwrap: str, view: FolderView, limits: Limits, inner: Sequence[str]) -> list[str]:
    """The command line that runs the command `inner` confined."""
    options = ["--unshare-all", "--unshare-user", "--uid", "65534", "--gid", "65534", "--die-with-parent"]
    options += ["--new-session", "--cap-drop", "ALL", "--clearenv"]
    options += ["--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", "/tmp"]  # Python may be below it
    for path in view.readable:
        options += ["--ro-bind", path, path]
    for path in DEVICES:
        options += ["--dev-bind-try", path, path]
    for path, target in view.links:
        options += ["--symlink", target, path]
    options += ["--remount-ro", "/", "--chdir", "/tmp"]
    return [bwrap, *options, "--", *inner]
