"""The command `find` for tests of names and kinds, in one pass over names; the shell's own has the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.listing import is_folder

_Test = Callable[[str, Any], bool]
"""Takes a path as it is printed, and what `stat` says of it."""
_KINDS = {"d": "directory", "f": "file", "l": "symlink"}


async def find(call: ShellCall) -> int:
    """Print the names of files and folders; returns 1 if an operand is missing."""
    first = next((i for i, word in enumerate(call.arguments) if word[:1] in ("-", "!", "(")), len(call.arguments))
    operands, words = call.arguments[:first] or ["."], call.arguments[first:]
    end = "\0" if words[-1:] == ["-print0"] else "\n"
    if words[-1:] in (["-print"], ["-print0"]):
        del words[-1]
    depths, tests = _parse(words)
    status = 0
    for operand in operands:
        path = call.path(operand)
        if not call.files.exists(path):
            await call.complain(f"'{operand}': No such file or directory")
            status = 1
            continue
        for depth, shown, info in _walk(call, path, operand, call.files.stat(path), 0, depths.stop):
            if depth in depths and all(test(shown, info) for test in tests):
                await call.write(shown + end)
    return status


def _parse(words: list[str]) -> tuple[range, list[_Test]]:
    """The depths to print, and the tests that all must pass. Raises `LeftToShell` for others."""
    depths, tests = {"-mindepth": 0, "-maxdepth": 1 << 30}, list[_Test]()
    while words:
        negates = words[0] in ("!", "-not")
        word, value = [*words[negates:], "", ""][:2]
        words = words[2 + negates :]
        if word in depths and value.isdecimal() and not negates:
            depths[word] = int(value)
        else:
            tests.append(_test(word, value, negates))
    return range(depths["-mindepth"], depths["-maxdepth"] + 1), tests


def _test(word: str, value: str, negates: bool) -> _Test:
    kinds = [_KINDS.get(letter) for letter in value.split(",")]
    if word == "-type" and None not in kinds:
        return lambda path, info: (info["file_type"] in kinds) != negates
    if word not in ("-name", "-iname", "-path") or "\\" in value or not value:  # fnmatch knows no escapes
        raise LeftToShell
    fold = str.lower if word == "-iname" else str
    glob = fold(value.replace("[^", "[!"))
    name_of = str if word == "-path" else lambda path: path.rstrip("/").rpartition("/")[2] or "/"
    return lambda path, info: fnmatchcase(fold(name_of(path)), glob) != negates


def _walk(call: ShellCall, path: str, shown: str, info: Any, depth: int, stop: int) -> Iterator[tuple[int, str, Any]]:
    """An entry and those below it, to the depth before `stop`, with their depths."""
    yield depth, shown, info
    if is_folder(info) and depth + 1 < stop:
        for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
            inner, name = (f"{folder.rstrip('/')}/{entry['name']}" for folder in (path, shown))
            yield from _walk(call, inner, name, entry["metadata"], depth + 1, stop)
