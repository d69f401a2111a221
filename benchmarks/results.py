"""Results as JSON with a version: written beside the run, read by the report and the plots.

results/<date>-<commit>-<label>.json: {benchmark, version, machine, commit, seed, setting, rows, ...}
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
    """Write a result, by default to a file named after its day, commit and label."""
    day = result["machine"]["date"][:10]
    path = path or FOLDER / f"{day}-{result['commit']}-{label(result)}.json"
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


def label(result: Mapping[str, Any]) -> str:
    """`virtual-0.2GB-far_150`: what of the same label may take each other's place."""
    setting = result["setting"]
    words = [result["benchmark"]]
    if "size_bytes" in setting:
        words.append(f"{setting['size_bytes'] / 1e9:g}GB")
    if setting.get("server", "stand-in") != "stand-in":
        words.append(setting["server"])
    elif "profile" in setting:
        words.append(setting["profile"])
    return "-".join(words)


def newest(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """The results of a folder by label, those that were measured last."""
    found: dict[str, dict[str, Any]] = {}
    for result in map(read, sorted(folder.glob("*.json"))):
        before = found.get(label(result))
        if before is None or before["machine"]["date"] <= result["machine"]["date"]:
            found[label(result)] = result
    return found


def commit() -> str:
    """Of the checkout that runs, short, with a + where it has changes; `unknown` outside of one."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
