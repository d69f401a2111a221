"""The files of a repository that git does not ignore."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from monocontext.errors import NotFound

_GIT = ["git", "-c", "core.fsmonitor=false"]
"""The configuration of a repository may name a program to run as file monitor: without it git runs no foreign code."""
_GIT_ENVIRONMENT = {"GIT_NO_LAZY_FETCH": "1", "GIT_OPTIONAL_LOCKS": "0"}


def _git(path: Path, *arguments: str) -> bytes:
    """Run a git command and return its output. Raises `NotFound`, with the reason that git prints."""
    try:
        command = [*_GIT, "-C", str(path), *arguments]
        found = subprocess.run(command, capture_output=True, env={**os.environ, **_GIT_ENVIRONMENT})
    except OSError as error:
        raise NotFound(f"{path}: git cannot be run: {error}") from None
    if found.returncode:
        raise NotFound(f"{path}: {os.fsdecode(found.stderr).strip() or 'git failed'}")
    return found.stdout


def not_ignored(path: Path) -> set[str] | None:
    """The paths of files in a git repository that git does not ignore. None for a folder that is no repository."""
    if not (path / ".git").exists():
        return None
    try:
        listed = _git(path, "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    except NotFound as error:
        raise NotFound(f"{error}; ignored=True (--no-ignore) takes all files without asking git") from None
    return {os.fsdecode(name) for name in listed.split(b"\0") if name}
