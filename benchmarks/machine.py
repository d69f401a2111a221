"""The machine and the versions on which a measurement ran."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path


def describe_machine() -> dict[str, str | int | float]:
    """The facts that decide whether two results are comparable."""
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _commit(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cores": os.cpu_count() or 0,
        "load": round(os.getloadavg()[0], 2),
        "monocontext": version("monocontext"),
        "boto3": version("boto3"),
    }


def machine_line() -> str:
    return ", ".join(f"{name} {value}" for name, value in describe_machine().items())


def _commit() -> str:
    """The short commit of this checkout, with a + if it has changes; `unknown` outside a checkout."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
