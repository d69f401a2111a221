"""Describe the machine and the versions of a measurement."""

from __future__ import annotations

import os
import platform
import resource
from datetime import UTC, datetime
from importlib.metadata import version


def describe_machine() -> dict[str, str | int | float]:
    """Enough to know whether two results may be compared."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 2),
        "monocontext": version("monocontext"),
        "boto3": version("boto3"),
    }


def cpu_seconds() -> float:
    """CPU time of all threads of this process, and of child processes that have ended."""
    return sum(
        usage.ru_utime + usage.ru_stime
        for usage in map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    )
