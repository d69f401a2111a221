"""Limit the memory, CPU time, files and threads of a worker."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

_SIGPENDING = 11  # RLIMIT_SIGPENDING, for which Python has no name


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one worker. It is a single process, so they bound everything that a cell can start."""

    memory_bytes: int = 4 << 30  # address space; beyond it a cell gets a MemoryError
    cpu_seconds: int = 3600  # CPU seconds of all cells together; then the process ends
    disk_bytes: int = 64 << 20  # bytes of its in-memory /tmp, and of one file
    files: int = 256  # files open at once
    threads: int = 256  # at once. The kernel counts by user: no limit unless the worker has a user of its own


def apply(limits: Limits, *, has_own_user: bool) -> None:
    """Set the limits of this process, for good. `has_own_user`: no other process in its namespace has its user."""
    import resource  # only POSIX has it

    bounds = [
        (resource.RLIMIT_AS, limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_seconds),
        (resource.RLIMIT_FSIZE, limits.disk_bytes),
        (resource.RLIMIT_NOFILE, limits.files),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (_SIGPENDING, 64),  # counted by user, like timers
    ]
    if has_own_user and _counts_by_namespace():
        bounds.append((resource.RLIMIT_NPROC, limits.threads))
    for limit, value in bounds:
        _, hard = resource.getrlimit(limit)
        lower = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (lower, lower))


def _counts_by_namespace() -> bool:
    """Whether the kernel counts a user's processes by namespace. Before Linux 5.14, those outside counted too."""
    version = re.match(r"(\d+)\.(\d+)", os.uname().release)  # "5.15.0-91-generic"
    return version is not None and (int(version[1]), int(version[2])) >= (5, 14)
