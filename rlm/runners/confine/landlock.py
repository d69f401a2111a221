"""Restrict this process to lists of files, with Landlock (Linux 5.13 or newer). Only devices stay writable.

Landlock does not hide that files exist, nor their names and sizes (`stat`). It has no rule for sockets that are open
already; the seccomp filter refuses their use.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable

from rlm.runners.confine import system

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # numbers of the system calls
_GET_VERSION = 1  # the flag of `_CREATE` that asks for the version of the kernel's interface, from 1
_PATH_BENEATH = 1  # the type of a `_PathRule`
_EXECUTE, _READ_FILE, _READ_DIR, _WRITE_FILE = 1, 4, 8, 2  # rights of `struct landlock_path_beneath_attr`
_FILE_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1, 4: (1 << 15) - 1, 5: (1 << 16) - 1}
"""All rights to files that each version knows, 1 to 5; later ones add none here."""
_TCP = 3  # the rights to bind and to connect TCP sockets (since version 4)
_SCOPES = 3  # abstract sockets and signals to processes outside (since version 6)


class _Ruleset(ctypes.Structure):
    """`struct landlock_ruleset_attr`: rights that are refused without a rule. Older kernels know fewer fields."""

    _fields_ = [("fs", ctypes.c_uint64), ("net", ctypes.c_uint64), ("scoped", ctypes.c_uint64)]


class _PathRule(ctypes.Structure):
    """Allows access to a path and all below it."""

    _pack_ = 1
    _fields_ = [("access", ctypes.c_uint64), ("parent_fd", ctypes.c_int32)]


def restrict(readable: Iterable[str], devices: Iterable[str]) -> None:
    """Let this process, for good, only read and execute `readable`, and read and write `devices`. Needs
    `no_new_privileges`. Raises SystemFailed, as on kernels without Landlock, and OSError if a path cannot be opened."""
    version = system.syscall("landlock", _CREATE, None, 0, _GET_VERSION)
    refused = _Ruleset(_FILE_RIGHTS[min(version, 5)], _TCP if version >= 4 else 0, _SCOPES if version >= 6 else 0)
    fields = 1 + (version >= 4) + (version >= 6)  # of `_Ruleset` that the kernel knows
    ruleset = system.syscall("landlock_create_ruleset", _CREATE, ctypes.byref(refused), 8 * fields, 0)
    try:
        for path in readable:
            is_folder = os.path.isdir(path)
            _allow(ruleset, path, _EXECUTE | _READ_FILE | (_READ_DIR if is_folder else 0))
        for path in devices:
            _allow(ruleset, path, _READ_FILE | _WRITE_FILE)
        system.syscall("landlock_restrict_self", _RESTRICT, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, access: int) -> None:
    """Allow these rights to a path and all below it."""
    fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _PathRule(access, fd)
        system.syscall("landlock_add_rule", _ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(fd)
