"""Call the kernel where Python 3.11 has no function for it, through `ctypes`. Linux on x86_64 and aarch64.

All functions raise `SystemFailed` if the kernel refuses.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform

CLONE_NEWNS, CLONE_NEWUTS, CLONE_NEWIPC = 0x20000, 0x4000000, 0x8000000
CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REMOUNT = 1, 2, 4, 8, 32
MS_BIND, MS_REC, MS_PRIVATE, MS_RELATIME = 4096, 16384, 1 << 18, 1 << 21
MNT_DETACH = 2

PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 24, 38
PR_SET_THP_DISABLE, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL = 41, 47, 4
_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_CAPSET = {"x86_64": 126, "aarch64": 91}
_CAPABILITY_VERSION_3 = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


class SystemFailed(OSError):
    """A system call failed."""


def machine() -> str:
    """The machine type. Raises SystemFailed if this module has no numbers of system calls for it."""
    name = platform.machine()
    if name not in _PIVOT_ROOT:
        raise SystemFailed(f"the sandbox supports the processor types {' and '.join(_PIVOT_ROOT)}, not {name}")
    return name


def _check_result(name: str, result: int) -> int:
    """`result`, what a function of the C library returned. Raises SystemFailed if it is negative."""
    if result < 0:
        number = ctypes.get_errno()
        raise SystemFailed(number, f"{name}: {os.strerror(number)}")
    return result


def syscall(name: str, number: int, *arguments: object) -> int:
    """The result of a system call. `name`: what an error message calls it."""
    words = [ctypes.c_long(item) if isinstance(item, int) else item for item in arguments]
    return _check_result(name, int(_libc.syscall(ctypes.c_long(number), *words)))


def prctl(name: str, option: int, *arguments: object) -> None:
    """Call `prctl(2)`. `name`: what an error message calls the option."""
    words = [ctypes.c_ulong(item) if isinstance(item, int) else item for item in arguments]
    words += [ctypes.c_ulong(0)] * (4 - len(words))
    _check_result(name, int(_libc.prctl(ctypes.c_int(option), *words)))


def unshare(flags: int) -> None:
    _check_result("unshare", int(_libc.unshare(ctypes.c_int(flags))))


def mount(source: str, target: str, file_system: str | None, flags: int, data: str | None = None) -> None:
    words = [part.encode() if part is not None else None for part in (source, target, file_system)]
    options = data.encode() if data is not None else None
    _check_result(f"mount {target}", int(_libc.mount(*words, ctypes.c_ulong(flags), options)))


def unmount(target: str) -> None:
    _check_result(f"umount {target}", int(_libc.umount2(target.encode(), ctypes.c_int(MNT_DETACH))))


def pivot_root(new: str, old: str) -> None:
    syscall("pivot_root", _PIVOT_ROOT[machine()], ctypes.c_char_p(new.encode()), ctypes.c_char_p(old.encode()))


def drop_capabilities() -> None:
    """Drop all capabilities for good."""
    for capability in range(64):
        try:
            prctl("drop from the bounding set", PR_CAPBSET_DROP, capability)
        except SystemFailed:  # this kernel knows no more, or the process may not drop any: then it has none
            break
    try:
        prctl("clear ambient capabilities", PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL)
    except SystemFailed:
        pass  # a kernel without ambient capabilities
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    syscall("capset", _CAPSET[machine()], ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))


def no_new_privileges() -> None:
    prctl("no_new_privs", PR_SET_NO_NEW_PRIVS, 1)


def no_huge_pages() -> None:
    """Disable huge pages: one keeps 2 MiB even if only 4 KiB of it are still mapped, and no limit counts that."""
    try:
        prctl("no huge pages", PR_SET_THP_DISABLE, 1)
    except SystemFailed as exc:
        if exc.errno != errno.EINVAL:  # a kernel without them
            raise


def hide_memory() -> None:
    """Prevent other processes of this user from reading this one and its children through `/proc` and `ptrace`."""
    prctl("not dumpable", PR_SET_DUMPABLE, 0)
