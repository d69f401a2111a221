"""Enter new namespaces, with a file system view and process ids of their own and an empty network.

Root makes them directly, and the worker then becomes a user of its own. Any other user makes a user namespace too,
inside which it has the rights to make the others.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from rlm.runners.confine import system
from rlm.runners.confine.limits import Limits
from rlm.runners.confine.view import DEVICES, FolderView

_NAMESPACES = system.CLONE_NEWNS | system.CLONE_NEWPID | system.CLONE_NEWNET | system.CLONE_NEWIPC | system.CLONE_NEWUTS
_FIRST_ID = 700_000_000  # the first user id for workers of root: far from ids in use
_NOBODY = 65534


def enter() -> None:
    """Create the namespaces, in which child processes will run. Raises SystemFailed."""
    user, group = os.geteuid(), os.getegid()
    if user == 0:
        system.unshare(_NAMESPACES)
        return
    system.unshare(_NAMESPACES | system.CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_NOBODY} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{_NOBODY} {group} 1")


def build_view(view: FolderView, limits: Limits) -> None:
    """Mount Python's files read-only, devices, an empty /tmp, and nothing else. For the namespaces' first process."""
    system.mount("none", "/", None, system.MS_REC | system.MS_PRIVATE)
    quiet = system.MS_NOSUID | system.MS_NODEV
    system.mount("tmpfs", "/tmp", "tmpfs", quiet, "mode=755,size=1m")  # room for `old` and `new` only
    os.mkdir("/tmp/old")
    os.mkdir("/tmp/new")
    system.pivot_root("/tmp", "/tmp/old")
    os.chdir("/")
    system.mount("tmpfs", "/new", "tmpfs", quiet, "mode=755,size=1m")
    os.mkdir("/new/tmp")  # before Python's files, which may be below it
    room = f"mode=1777,size={limits.disk_bytes},nr_inodes=10000"
    system.mount("tmpfs", "/new/tmp", "tmpfs", quiet | system.MS_NOEXEC, room)
    for path in view.readable:
        _bind(path, writable=False)
    for path in DEVICES:
        if os.path.exists(f"/old{path}"):
            _bind(path, writable=True)
    for path, target in view.links:
        os.makedirs(os.path.dirname(f"/new{path}"), exist_ok=True)
        os.symlink(target, f"/new{path}")
    os.chdir("/new")
    system.pivot_root(".", ".")  # puts the old root on top of the new one, where it is unmounted
    system.unmount(".")
    os.chdir("/tmp")
    system.mount("none", "/", None, system.MS_REMOUNT | system.MS_BIND | system.MS_RDONLY | quiet)


def become_ordinary_user() -> None:
    """Give up the rights of root for good. Does nothing for other users, who have only those of a user namespace."""
    if os.geteuid() == 0:
        os.setgroups([])
        # Random, since the process id of each worker is the first of its namespace.
        own_id = _FIRST_ID + int.from_bytes(os.urandom(3), "big")
        for number in (own_id, _NOBODY):
            with suppress(OSError):  # not an id of the container that this runs in
                os.setresgid(number, number, number)
                os.setresuid(number, number, number)
                break
        if os.geteuid() == 0:
            raise system.SystemFailed(f"cannot become an ordinary user: there is no user {own_id} or {_NOBODY} here")


def check_readable(view: FolderView) -> None:
    """Raise SystemFailed if this process, as an ordinary user, cannot read Python's files."""
    for path in view.readable:
        if not os.access(path, os.R_OK | (os.X_OK if os.path.isdir(path) else 0)):
            raise system.SystemFailed(f"an ordinary user cannot read {path}")


def _bind(path: str, *, writable: bool) -> None:
    """Show a file or folder of the old root in the new one."""
    old, new = f"/old{path}", f"/new{path}"
    if os.path.isdir(old):
        os.makedirs(new, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(new), exist_ok=True)
        Path(new).touch(exist_ok=False)
    system.mount(old, new, None, system.MS_BIND | system.MS_REC)
    for mounted in _mounts_at(new):
        flags = system.MS_NOSUID if writable else system.MS_NOSUID | system.MS_NODEV | system.MS_RDONLY
        system.mount("none", mounted, None, system.MS_REMOUNT | system.MS_BIND | _flags_to_keep(mounted) | flags)


def _flags_to_keep(mounted: str) -> int:
    """The flags that a mount has, as mount(2) takes them. A remount in a user namespace must not drop them."""
    present = os.statvfs(mounted).f_flag
    # All flags but this one have the same number in statvfs(3) and mount(2).
    flags = system.MS_RELATIME if present & os.ST_RELATIME else 0
    return flags | present & (os.ST_NOSUID | os.ST_NODEV | os.ST_NOEXEC | os.ST_NOATIME | os.ST_NODIRATIME)


def _mounts_at(path: str) -> Sequence[str]:
    """The mount at a path and the mounts below it."""
    with open("/old/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as file:
        # An octal number encodes a blank or a backslash: "\040" in "/mnt/my\040disk".
        mounts = [re.sub(r"\\(\d{3})", lambda octal: chr(int(octal[1], 8)), line.split(" ")[4]) for line in file]
    return [mount for mount in mounts if mount == path or mount.startswith(path + "/")]
