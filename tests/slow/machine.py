"""What a process has taken of the machine."""

from __future__ import annotations

from pathlib import Path


def memory_bytes(pid: int | str = "self") -> int:
    """The most memory a process has had resident since its program started (VmHWM), 0 once it has ended.

    Not `ru_maxrss`: that one a child inherits from whoever forked it.
    """
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    result = [line.split() for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(result[0][1]) << 10 if result else 0
