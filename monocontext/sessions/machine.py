"""Keep files on this machine, say where those of hooks are, and print errors. Imports next to nothing."""

from __future__ import annotations

import contextlib
import os
import sys


def home() -> str:
    """The folder of briefs, locks and the log: `MONOCONTEXT_HOME`, else `~/.monocontext`."""
    return os.environ.get("MONOCONTEXT_HOME") or os.path.join(os.path.expanduser("~"), ".monocontext")


def log_path() -> str:
    return os.path.join(home(), "upload.log")


def write_file(path: str | os.PathLike[str], data: bytes, mode: int = 0o600) -> None:
    """Write a file completely or not at all."""
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    with open(temporary, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(data)
    os.chmod(temporary, mode)
    os.replace(temporary, path)


def one_line(text: object) -> str:
    """Foreign text as one line, with control characters escaped that a terminal would obey."""
    words = " ".join(str(text).split())
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in words)


def complain(error: object) -> None:
    """Print an error on stderr."""
    with contextlib.suppress(OSError, ValueError):
        print(f"monocontext: {one_line(error)}", file=sys.stderr)
