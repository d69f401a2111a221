"""Parse amounts and lists from the command line, format tables in Markdown, and name the machine, for all commands."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}


def amount(text: str) -> int:
    """The number of bytes in a text such as `0.2GB`, `100MB/s`, `64M` or `1000`. Raises `ArgumentTypeError`."""
    result = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)B?(?:/s)?", text)
    if result is None:
        raise argparse.ArgumentTypeError(f"not an amount of bytes: {text!r}; write for example 64M or 0.2GB")
    return round(float(result[1]) * _UNITS[result[2]])


def at_least_1(text: str) -> int:
    """Parse a whole number that is at least 1. Raises `ValueError` or `ArgumentTypeError`."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {number}")
    return number


def amounts(texts: str) -> dict[str, int]:
    """The numbers of bytes in a text such as `1MB,0.2GB`, by their texts. Raises `ArgumentTypeError`."""
    return {text: amount(text) for text in parse_list(texts)}


def parse_list(names: str) -> tuple[str, ...]:
    """The names in a text such as `code,prose`."""
    return tuple(filter(None, names.split(",")))


def head_line(*names: str) -> str:
    """The first two lines of a table in Markdown: the left column holds names, the others figures."""
    return f"{row_line(*names)}\n|---|" + "---:|" * (len(names) - 1)


def row_line(*cells: object) -> str:
    """One row of a table in Markdown."""
    return f"| {' | '.join(map(str, cells))} |"


def machine_line() -> str:
    """The facts that decide whether two results are comparable."""
    date, load = datetime.now(UTC).isoformat(timespec="seconds"), round(os.getloadavg()[0], 2)
    system = f"system {platform.system()} {platform.machine()}, cores {os.cpu_count() or 0}, load {load}"
    versions = ", ".join(f"{package} {version(package)}" for package in ("monocontext", "boto3"))
    return f"date {date}, commit {_commit()}, python {platform.python_version()}, {system}, {versions}"


def _commit() -> str:
    """The short commit of this checkout, with a + if it has changes; `unknown` outside a checkout."""
    command = ["git", "describe", "--always", "--dirty=+", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()
