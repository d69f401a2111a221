"""Results as JSON with a version: written beside the run, read by the report and the plots.

results/<date>-<commit>-<mode>.json: {benchmark, version, machine, commit, seed, guard, setting, versions, rows, gates}
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine

VERSION = 1
FOLDER = Path("results")
_FIELDS = ("benchmark", "version", "machine", "commit", "seed", "setting", "rows")


class UnknownResult(ValueError):
    """A file is no result that this version reads; one line that says why."""


def make(
    benchmark: str, seed: int, setting: Mapping[str, Any], rows: list[dict[str, Any]], **more: Any
) -> dict[str, Any]:
    """A result of now, on this machine."""
    head = {"benchmark": benchmark, "version": VERSION, "machine": describe_machine(), "commit": commit()}
    return {**head, "seed": seed, "setting": dict(setting), **more, "rows": rows}


def write(result: Mapping[str, Any], path: Path | None = None) -> Path:
    """Write a result, by default to a file named after its day, commit and benchmark."""
    day = result["machine"]["date"][:10]
    path = path or FOLDER / f"{day}-{result['commit']}-{result['benchmark']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=1, allow_nan=False) + "\n")
    return path


def read(path: Path) -> dict[str, Any]:
    """A result from a file. Raises `UnknownResult`."""
    try:
        found = json.loads(path.read_text())
    except ValueError as error:
        raise UnknownResult(f"{path} is no JSON: {error}") from None
    missing = [name for name in _FIELDS if not isinstance(found, dict) or name not in found]
    if missing:
        raise UnknownResult(f"{path} is no result: it lacks {', '.join(missing)}")
    if found["version"] != VERSION:
        raise UnknownResult(f"{path} is of version {found['version']}; this reads version {VERSION}")
    return dict(found)


def newest(benchmark: str, folder: Path = FOLDER) -> Path | None:
    """The file that was written last for a benchmark."""
    found = sorted(folder.glob(f"*-{benchmark}.json"), key=lambda path: path.stat().st_mtime)
    return found[-1] if found else None


def commit() -> str:
    """Of the checkout that runs, short, with a + where it has changes; `unknown` outside of one."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
