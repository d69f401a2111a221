"""The command `find` for tests of names and kinds, in one pass over names; the shell's own has the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from monocontext.shell.call import NOT_OURS, ShellCall
from monocontext.shell.listing import is_folder

Test = Callable[[str, Any], bool]
"""Takes a path as it is printed, and what `stat` says of it."""
_KINDS = {"d": "directory", "f": "file", "l": "symlink"}


async def find(call: ShellCall) -> int:
    """Print the names of files and folders; returns 1 if an operand is missing."""
    first = next((i for i, word in enumerate(call.arguments) if word[:1] in ("-", "!", "(")), len(call.arguments))
    operands, words = call.arguments[:first] or ["."], call.arguments[first:]
    end = "\0" if words[-1:] == ["-print0"] else "\n"
    if words[-1:] in (["-print"], ["-print0"]):
        del words[-1]
    depths, tests = {"-mindepth": 0, "-maxdepth": 1 << 30}, list[Test]()
    while words:
        negates = words[0] in ("!", "-not")
        word, value = [*words[negates:], "", ""][:2]
        words = words[2 + negates :]
        if word in depths and value.isdecimal() and not negates:
            depths[word] = int(value)
        elif (test := _test(word, value, negates)) is not None:
            tests.append(test)
        else:
            return NOT_OURS
    status = 0
    for operand in operands:
        path = call.path(operand)
        if call.files.exists(path):
            for depth, shown, info in _walk(call, path, operand, call.files.stat(path), 0, depths["-maxdepth"]):
                if depth >= depths["-mindepth"] and all(test(shown, info) for test in tests):
                    await call.write(shown + end)
        else:
            await call.complain(f"'{operand}': No such file or directory")
            status = 1
    return status


def _walk(call: ShellCall, path: str, shown: str, info: Any, depth: int, most: int) -> Iterator[tuple[int, str, Any]]:
    """An entry and those below it, with their depths."""
    yield depth, shown, info
    if is_folder(info) and depth < most:
        for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
            inner, name = (f"{folder.rstrip('/')}/{entry['name']}" for folder in (path, shown))
            yield from _walk(call, inner, name, entry["metadata"], depth + 1, most)


def _test(word: str, value: str, negates: bool) -> Test | None:
    """A test; None for one that is left to the shell."""
    kinds = [_KINDS.get(letter) for letter in value.split(",")]
    if word == "-type" and None not in kinds:
        return lambda path, info: (info["file_type"] in kinds) != negates
    if word not in ("-name", "-iname", "-path") or "\\" in value or not value:  # fnmatch knows no escapes
        return None
    fold = str.lower if word == "-iname" else str
    glob = fold(value.replace("[^", "[!"))
    name_of = str if word == "-path" else lambda path: path.rstrip("/").rpartition("/")[2] or "/"
    return lambda path, info: fnmatchcase(fold(name_of(path)), glob) != negates
