"""Explain why the kernel killed a process: the machine ran out of memory, or of processes."""

from __future__ import annotations

import re
from pathlib import Path

_VMSTAT, _MEMINFO = Path("/proc/vmstat"), Path("/proc/meminfo")
_GROUP = Path("/sys/fs/cgroup")


def memory_kills() -> int:
    """The number of processes that the kernel has killed for lack of memory since the machine started."""
    return _find(_VMSTAT, r"^oom_kill (\d+)$") or 0


def why_killed(kills_before: int) -> str:
    """An explanation of a SIGKILL, for an error message. `kills_before`: `memory_kills` before the process started."""
    if more := memory_kills() - kills_before:
        processes = "a process" if more == 1 else f"{more:,} processes"
        return f"as the kernel killed {processes} for lack of memory meanwhile: start fewer at once, or raise the limit"
    free = _find(_MEMINFO, r"^MemAvailable: +(\d+) kB$")
    state = [f"{free // 1024:,} MB of memory available"] if free is not None else []
    for name, folder in (("processes", "pids"), ("bytes of memory", "memory")):
        for file in (_GROUP / f"{folder}.max", _GROUP / folder / f"{folder}.max"):  # of version 2, and of 1
            if (most := _find(file, r"^(\d+)$")) is not None:
                state.append(f"at most {most:,} {name} in the control group")
    return f"not for lack of memory as the kernel counts it ({', '.join(state) or 'no more is known'})"


def _find(path: Path, pattern: str) -> int | None:
    """A number in a file; None if there is none."""
    try:
        match = re.search(pattern, path.read_text(), re.MULTILINE)
    except OSError:  # another system, or hidden
        return None
    return int(match[1]) if match else None
