"""The command `ls`, whose long form has the columns of GNU."""

from __future__ import annotations

import getopt
import math
import time
from typing import Any

from monocontext.shell.call import Call

_SHORT = "aAlh1RSrtdFpnogGCUk"
_LONG = ["all", "almost-all", "human-readable", "recursive", "reverse", "directory", "classify", "color=", "full-time"]
_LETTERS = {"--all": "a", "--almost-all": "A", "--human-readable": "h", "--recursive": "R", "--reverse": "r",
            "--directory": "d", "--classify": "F"}  # fmt: skip
_FOLDER_BYTES = 4096
_BLOCK_BYTES = 4096
_HALF_A_YEAR = 15_778_476
"""Seconds. Older times are shown with their year."""


async def ls(call: Call) -> int:
    """List files and folders; returns 2 if an operand is missing."""
    arguments = [item for item in call.arguments if item not in ("--color", "--color=auto", "--color=never")]
    try:
        options, operands = getopt.gnu_getopt(arguments, _SHORT, _LONG)
    except getopt.GetoptError as error:
        await call.complain(str(error))
        return 2
    flags = {_LETTERS.get(option, option[1:]) for option, _ in options}
    status, files, folders = 0, dict[str, Any](), dict[str, Any]()
    for operand in sorted(operands) or ["."]:
        path = call.path(operand)
        if not call.files.exists(path):
            await call.complain(f"cannot access '{operand}': No such file or directory")
            status = 2
            continue
        info = call.files.stat(path)
        (folders if info["file_type"] == "directory" and "d" not in flags else files)[operand] = info
    await _write_rows(call, flags, files)
    has_titles = len(operands) > 1 or "R" in flags
    pending = list(folders)
    is_first = not files
    while pending:
        folder = pending.pop(0)
        await call.write(("" if is_first else "\n") + f"{folder}:\n" if has_titles else "")
        is_first = False
        entries = {entry["name"]: entry["metadata"] for entry in call.files.read_dir(call.path(folder))}
        if not flags & {"a", "A"}:
            entries = {name: info for name, info in entries.items() if not name.startswith(".")}
        if "R" in flags:
            below = _ordered(entries, flags)
            pending[:0] = [f"{folder.rstrip('/')}/{name}" for name in below if _is_folder(entries[name])]
        if "a" in flags:
            entries |= {name: call.files.stat(call.path(folder)) for name in (".", "..")}
        if flags & {"l", "n", "o", "g"}:
            blocks = sum(_BLOCK_BYTES // 1024 * math.ceil(_size(info) / _BLOCK_BYTES) for info in entries.values())
            await call.write(f"total {_human(blocks * 1024) if 'h' in flags else blocks}\n")
        await _write_rows(call, flags, entries)
    await call.flush()
    return status


def _is_folder(info: Any) -> bool:
    return bool(info["file_type"] == "directory")


def _size(info: Any) -> int:
    return _FOLDER_BYTES if _is_folder(info) else int(info["size"])


def _ordered(entries: dict[str, Any], flags: set[str]) -> list[str]:
    names = sorted(entries)
    if "t" in flags:
        names.sort(key=lambda name: -float(entries[name]["modified"]))
    if "S" in flags:
        names.sort(key=lambda name: -_size(entries[name]))
    return names[::-1] if "r" in flags else names


async def _write_rows(call: Call, flags: set[str], entries: dict[str, Any]) -> None:
    names = _ordered(entries, flags)
    is_long = bool(flags & {"l", "n", "o", "g"})
    sizes = {name: _human(_size(info)) if "h" in flags else str(_size(info)) for name, info in entries.items()}
    width = max(map(len, sizes.values()), default=0)
    for name in names:
        info = entries[name]
        end = "/" if _is_folder(info) and flags & {"F", "p"} else ""
        row = f"{name}{end}\n"
        if is_long:
            kind = "drwxr-xr-x 2" if _is_folder(info) else "-rw-r--r-- 1"
            row = f"{kind} user user {sizes[name]:>{width}} {_date(float(info['modified']))} {row}"
        await call.write(row)


def _human(size: int) -> str:
    """A size as `ls -h` shows it: rounded up, with one digit after the point below 10."""
    value, unit = float(size), ""
    for unit in ("", "K", "M", "G", "T"):
        if value <= 999 or unit == "T":
            break
        value /= 1024
    if not unit:
        return str(size)
    return f"{math.ceil(value * 10) / 10:.1f}{unit}" if value < 9.95 else f"{math.ceil(value)}{unit}"


def _date(seconds: float) -> str:
    moment = time.gmtime(seconds)
    return time.strftime("%b %e %H:%M" if time.time() - seconds < _HALF_A_YEAR else "%b %e  %Y", moment)
