"""The commands `ls` and `find`. They read names and sizes of documents, but no text."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from posixpath import join
from typing import Any

from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.tree import DISK_BLOCK_BYTES

_WORDS = {"a": "all", "A": "almost-all", "h": "human-readable", "R": "recursive", "r": "reverse", "d": "directory",
          "F": "classify"} | {letter: letter for letter in "l1StpnogGCUk"}  # fmt: skip
_LONG_FORMAT = frozenset("lnog")  # any of these options makes a list with sizes and times
_FILE_TYPES = {"d": "directory", "f": "file"}
_Test = Callable[[str, Any], bool]  # takes a path as `find` prints it, and what `stat` says of it


async def ls(call: ShellCall) -> int:
    """List files and folders; returns 2 if an operand is missing."""
    options, operands = call.options(_WORDS)
    flags = {word for word, _ in options}
    status = 0
    files, pending = dict[str, Any](), list[str]()
    for operand in sorted(operands, reverse="reverse" in flags) or ["."]:
        if not call.files.exists(path := call.path(operand)):
            await call.complain(f"cannot access '{operand}': No such file or directory")
            status = 2
        elif is_folder(info := call.files.stat(path)) and "directory" not in flags:
            pending.append(operand)
        else:
            files[operand] = info
    await _write_rows(call, flags, files)
    is_first = not files
    while pending:
        folder = pending.pop(0)
        if len(operands) > 1 or "recursive" in flags:
            await call.write(("" if is_first else "\n") + f"{folder}:\n")
        is_first = False
        entries = {entry["name"]: entry["metadata"] for entry in call.files.read_dir(call.path(folder))}
        if not flags & {"all", "almost-all"}:
            entries = {name: info for name, info in entries.items() if not name.startswith(".")}
        if "recursive" in flags:
            pending[:0] = [join(folder, name) for name in _ordered(entries, flags) if is_folder(entries[name])]
        if "all" in flags:
            entries |= dict.fromkeys((".", ".."), call.files.stat(call.path(folder)))
        if flags & _LONG_FORMAT:
            used = sum(math.ceil(bytes_of(info) / DISK_BLOCK_BYTES) * DISK_BLOCK_BYTES for info in entries.values())
            await call.write(f"total {_in_units(used) if 'human-readable' in flags else used // 1024}\n")
        await _write_rows(call, flags, entries)
    return status


def is_folder(info: Any) -> bool:
    return bool(info["file_type"] == "directory")


def bytes_of(info: Any) -> int:
    return DISK_BLOCK_BYTES if is_folder(info) else int(info["size"])


def _ordered(entries: dict[str, Any], flags: set[str]) -> list[str]:
    names = sorted(entries)
    if "S" in flags:
        names.sort(key=lambda name: -bytes_of(entries[name]))
    elif "t" in flags:
        names.sort(key=lambda name: -float(entries[name]["modified"]))
    return names[::-1] if "reverse" in flags else names


async def _write_rows(call: ShellCall, flags: set[str], entries: dict[str, Any]) -> None:
    format_bytes = _in_units if "human-readable" in flags else str
    width = max((len(format_bytes(bytes_of(info))) for info in entries.values()), default=0)
    for name in _ordered(entries, flags):
        info = entries[name]
        row = f"{name}{'/' if is_folder(info) and flags & {'classify', 'p'} else ''}\n"
        if flags & _LONG_FORMAT:
            kind = "drwxr-xr-x 2" if is_folder(info) else "-rw-r--r-- 1"
            when = time.strftime("%b %e %H:%M" if info["modified"] else "%b %e  %Y", time.gmtime(info["modified"]))
            users = "user " * (2 - ("g" in flags) - bool(flags & {"o", "G"}))  # without the owner, the group, or both
            row = f"{kind} {users}{format_bytes(bytes_of(info)):>{width}} {when} {row}"
        await call.write(row)


def _in_units(size_bytes: int) -> str:
    """A size as `ls -h` shows it: rounded up, with one digit after the point below 10, such as 1023, 9.9K and 10K."""
    if size_bytes < 1024:
        return str(size_bytes)
    value, units = size_bytes / 1024, "KMGTPE"
    while math.ceil(value) >= 1024:
        value, units = value / 1024, units[1:]
    return f"{math.ceil(value * 10) / 10 if value <= 9.9 else math.ceil(value)}{units[0]}"


async def find(call: ShellCall) -> int:
    """Print the paths that pass tests of name, type and depth. Leaves other tests and missing files to the shell."""
    first = next((i for i, word in enumerate(call.arguments) if word[:1] in ("-", "!", "(")), len(call.arguments))
    operands, words = call.arguments[:first] or ["."], call.arguments[first:]
    action = words.pop() if words[-1:] in (["-print"], ["-print0"]) else "-print"
    depths, tests = _parse(words)
    if not all(call.files.exists(call.path(operand)) for operand in operands):
        raise LeftToShell
    for operand in operands:
        path = call.path(operand)
        for depth, shown, info in _walk(call, path, operand, call.files.stat(path), 0, depths.stop):
            if depth in depths and all(test(shown, info) for test in tests):
                await call.write(shown + ("\0" if action == "-print0" else "\n"))
    return 0


def _parse(words: list[str]) -> tuple[range, list[_Test]]:
    """The depths to print, and the tests that an entry must pass. Raises `LeftToShell` for a test that is not ours."""
    depths, tests = {"-mindepth": 0, "-maxdepth": 1 << 30}, list[_Test]()
    remaining = iter(words)
    for first in remaining:
        negates = first in ("!", "-not")
        word, value = next(remaining, "") if negates else first, next(remaining, "")
        if word in depths and value.isdecimal() and not negates:
            depths[word] = int(value)
        else:
            tests.append(_test(word, value, negates))
    return range(depths["-mindepth"], depths["-maxdepth"] + 1), tests


def _test(word: str, value: str, negates: bool) -> _Test:
    """A test such as `-name '*.py'`. Raises `LeftToShell` for one that is not `-type`, `-name`, `-iname` or `-path`."""
    if word == "-type" and value in _FILE_TYPES:
        return lambda path, info: (info["file_type"] == _FILE_TYPES[value]) != negates
    if word not in ("-name", "-iname", "-path") or "\\" in value or not value:  # fnmatch knows no escapes
        raise LeftToShell
    fold = str.lower if word == "-iname" else str
    glob = fold(value.replace("[^", "[!"))
    name_of = str if word == "-path" else lambda path: path.rstrip("/").rpartition("/")[2] or "/"
    return lambda path, info: fnmatchcase(fold(name_of(path)), glob) != negates


def _walk(call: ShellCall, path: str, shown: str, info: Any, depth: int, stop: int) -> Iterator[tuple[int, str, Any]]:
    """An entry and those below it, up to the depth before `stop`: depth, path to print, and `stat`."""
    yield depth, shown, info
    if is_folder(info) and depth + 1 < stop:
        for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
            inner, name = (join(folder, entry["name"]) for folder in (path, shown))
            yield from _walk(call, inner, name, entry["metadata"], depth + 1, stop)
