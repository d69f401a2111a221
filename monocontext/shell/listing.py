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

_OPTIONS = {"a": "all", "A": "almost-all", "h": "human-readable", "R": "recursive", "r": "reverse", "d": "directory",
            "F": "classify", "G": "no-group", "l": "long", "g": "without-owner", "o": "without-group", "p": "slashes",
            "S": "by-size", "t": "by-time", "1": "1", "C": "C", "U": "U", "k": "k"}  # fmt: skip  # 1CUk: no effect
_LONG_FORMAT = frozenset(["long", "without-owner", "without-group"])  # each of these options prints sizes and times
_RECENT_SECONDS = 31_556_952 // 2  # half a year: beyond it, GNU prints the year of a file instead of the time of day
_FILE_TYPES = {"d": "directory", "f": "file"}  # by the letter of `find -type`
Stat = dict[str, Any]  # what bashkit says of a file: `file_type`, `size` in bytes, `modified` in seconds since 1970
_Test = Callable[[str, Stat], bool]  # takes a path as `find` prints it, and the `Stat` of its file


async def ls(call: ShellCall) -> int:
    """List files and folders. Returns 2 if an operand is missing, else 0."""
    options, operands = call.options(_OPTIONS)
    flags = {name for name, _ in options}
    status = 0
    files, folders = dict[str, Stat](), list[str]()
    for operand in sorted(operands, reverse="reverse" in flags) or ["."]:
        if not call.files.exists(path := call.path(operand)):
            await call.complain(f"cannot access '{operand}': No such file or directory")
            status = 2
        elif is_folder(stat := call.files.stat(path)) and "directory" not in flags:
            folders.append(operand)
        else:
            files[operand] = stat
    await _write_rows(call, flags, files)
    separator = "\n" if files else ""
    while folders:
        folder = folders.pop(0)
        if len(operands) > 1 or "recursive" in flags:
            await call.write(f"{separator}{folder}:\n")
        separator = "\n"
        entries = {entry["name"]: entry["metadata"] for entry in call.files.read_dir(call.path(folder))}
        if not flags & {"all", "almost-all"}:
            entries = {name: stat for name, stat in entries.items() if not name.startswith(".")}
        if "recursive" in flags:
            folders[:0] = [join(folder, name) for name in _ordered(entries, flags) if is_folder(entries[name])]
        if "all" in flags:
            entries |= dict.fromkeys((".", ".."), call.files.stat(call.path(folder)))
        if flags & _LONG_FORMAT:
            blocks = sum(math.ceil(bytes_of(stat) / DISK_BLOCK_BYTES) for stat in entries.values())
            used_bytes = blocks * DISK_BLOCK_BYTES
            await call.write(f"total {_in_units(used_bytes) if 'human-readable' in flags else used_bytes // 1024}\n")
        await _write_rows(call, flags, entries)
    return status


def is_folder(stat: Stat) -> bool:
    return bool(stat["file_type"] == "directory")


def bytes_of(stat: Stat) -> int:
    return DISK_BLOCK_BYTES if is_folder(stat) else int(stat["size"])


def _ordered(entries: dict[str, Stat], flags: set[str]) -> list[str]:
    names = sorted(entries)
    if "by-size" in flags:
        names.sort(key=lambda name: -bytes_of(entries[name]))
    elif "by-time" in flags:
        names.sort(key=lambda name: -float(entries[name]["modified"]))
    return names[::-1] if "reverse" in flags else names


async def _write_rows(call: ShellCall, flags: set[str], entries: dict[str, Stat]) -> None:
    """Print a row for each entry, in the order that the options ask for."""
    format_bytes = _in_units if "human-readable" in flags else str
    width = max((len(format_bytes(bytes_of(stat))) for stat in entries.values()), default=0)
    users = "user " * (2 - ("without-owner" in flags) - bool(flags & {"without-group", "no-group"}))
    for name in _ordered(entries, flags):
        stat = entries[name]
        row = f"{name}{'/' if is_folder(stat) and flags & {'classify', 'slashes'} else ''}\n"
        if flags & _LONG_FORMAT:
            mode = "drwxr-xr-x 2" if is_folder(stat) else "-rw-r--r-- 1"
            is_recent = 0 <= time.time() - stat["modified"] < _RECENT_SECONDS
            when = time.strftime("%b %e %H:%M" if is_recent else "%b %e  %Y", time.gmtime(stat["modified"]))
            row = f"{mode} {users}{format_bytes(bytes_of(stat)):>{width}} {when} {row}"
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
    """Print the paths that pass tests. Returns 0. Raises `LeftToShell` for a missing operand, or an unknown test."""
    first = next((i for i, word in enumerate(call.arguments) if word[:1] in ("-", "!", "(")), len(call.arguments))
    operands, words = call.arguments[:first] or ["."], call.arguments[first:]
    action = words.pop() if words[-1:] in (["-print"], ["-print0"]) else "-print"
    depths, tests = _parse(words)
    if not all(call.files.exists(call.path(operand)) for operand in operands):
        raise LeftToShell
    for operand in operands:
        for depth, path, stat in _walk(call, operand, call.files.stat(call.path(operand)), range(depths.stop)):
            if depth in depths and all(test(path, stat) for test in tests):
                await call.write(path + ("\0" if action == "-print0" else "\n"))
    return 0


def _parse(words: list[str]) -> tuple[range, list[_Test]]:
    """The depths to print, and the tests that an entry must pass. Raises `LeftToShell` for an unknown test."""
    depths, tests = {"-mindepth": 0, "-maxdepth": 1 << 30}, list[_Test]()
    remaining = iter(words)
    for first in remaining:
        negates = first in ("!", "-not")
        word, value = next(remaining, "") if negates else first, next(remaining, "")
        if word in depths and value.isdecimal() and not negates:
            depths[word] = int(value)
        else:
            tests.append(_make_test(word, value, expected=not negates))
    return range(depths["-mindepth"], depths["-maxdepth"] + 1), tests


def _make_test(word: str, value: str, *, expected: bool) -> _Test:
    """The test `WORD VALUE`, such as `-name '*.py'`; its opposite unless `expected`. Raises `LeftToShell`."""
    if word == "-type" and value in _FILE_TYPES:
        return lambda _, stat: (stat["file_type"] == _FILE_TYPES[value]) is expected
    if word not in ("-name", "-iname", "-path") or "\\" in value or not value:  # fnmatch knows no escapes
        raise LeftToShell
    fold = str.lower if word == "-iname" else str
    glob = fold(value.replace("[^", "[!"))
    name_of = str if word == "-path" else lambda path: path.rstrip("/").rpartition("/")[2] or "/"
    return lambda path, _: fnmatchcase(fold(name_of(path)), glob) is expected


def _walk(call: ShellCall, path: str, stat: Stat, depths: range) -> Iterator[tuple[int, str, Stat]]:
    """Yield an entry at the first of `depths`, and the entries below it at the others, with depth, path and `stat`."""
    yield depths.start, path, stat
    if is_folder(stat) and len(depths) > 1:
        for entry in sorted(call.files.read_dir(call.path(path)), key=lambda entry: str(entry["name"])):
            yield from _walk(call, join(path, entry["name"]), entry["metadata"], depths[1:])
