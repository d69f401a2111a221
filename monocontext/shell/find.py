"""The command `find` for tests of names, kinds and sizes, in one pass over names; the shell's own has the others."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

from monocontext.shell.call import NOT_OURS, ShellCall
from monocontext.shell.listing import bytes_of, is_folder


class _Entry(NamedTuple):
    path: str
    """As it is printed."""
    name: str
    info: Any
    done: list[str]
    """The actions that are done with it."""


Test = Callable[[_Entry], bool]
_SIZES = {"c": 1, "w": 2, "": 512, "b": 512, "k": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def _sized(value: str) -> Test:
    [(sign, number, unit)] = re.findall(r"\A([+-]?)(\d+)([cwbkMG]?)\Z", value)

    def test(entry: _Entry) -> bool:
        more = math.ceil(bytes_of(entry.info) / _SIZES[unit]) - int(number)
        return {"+": more > 0, "-": more < 0, "": more == 0}[sign]

    return test


def _named(field: int, fold: Callable[[str], str], glob: str) -> Test:
    if "\\" in glob:
        raise ValueError("fnmatch knows no escapes")
    glob = fold(glob.replace("[^", "[!"))
    return lambda entry: fnmatchcase(fold(str(entry[field])), glob)


def _typed(letters: str) -> Test:
    kinds = [{"d": "directory", "f": "file", "l": "symlink"}[letter] for letter in letters.split(",")]
    return lambda entry: entry.info["file_type"] in kinds


def _act(word: str, entry: _Entry) -> bool:
    entry.done.append(word)
    return True


_TESTS: dict[str, Callable[[str], Test]] = {
    "-path": partial(_named, 0, str), "-name": partial(_named, 1, str), "-iname": partial(_named, 1, str.lower),
    "-type": _typed, "-size": _sized,
}  # fmt: skip


async def find(call: ShellCall) -> int:
    """Print the names of files and folders; returns 1 if an operand is missing."""
    first = next((i for i, word in enumerate(call.arguments) if word[:1] in ("-", "!", "(")), len(call.arguments))
    operands, words = call.arguments[:first] or ["."], call.arguments[first:]
    prints = {"-print", "-print0"} & set(words)
    end = "\0" if "-print0" in prints else "\n"
    if len(prints) > 1:
        return NOT_OURS
    depths = {"-mindepth": 0, "-maxdepth": 1 << 30}
    try:
        for option in depths.keys() & set(words):
            index = words.index(option)
            if not words[index + 1].isdecimal():
                return NOT_OURS
            depths[option] = int(words[index + 1])
            del words[index : index + 2]
        test = _either(words or ["-path", "*"])
    except (KeyError, IndexError, ValueError, StopIteration):
        return NOT_OURS
    status = 0
    for operand in operands:
        path = call.path(operand)
        if not call.files.exists(path):
            await call.complain(f"'{operand}': No such file or directory")
            status = 1
            continue
        for depth, entry in _walk(call, path, operand, call.files.stat(path), 0, depths["-maxdepth"]):
            if depth >= depths["-mindepth"] and (test(entry) or prints) and prints <= set(entry.done):
                await call.write(entry.path + end)
    return status


def _walk(call: ShellCall, path: str, shown: str, info: Any, depth: int, most: int) -> Iterator[tuple[int, _Entry]]:
    """An entry and those below it, with their depths."""
    done: list[str] = []
    yield depth, _Entry(shown, shown.rstrip("/").rpartition("/")[2] or "/", info, done)
    if is_folder(info) and depth < most and "-prune" not in done:
        for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
            inner, name = (f"{folder.rstrip('/')}/{entry['name']}" for folder in (path, shown))
            yield from _walk(call, inner, name, entry["metadata"], depth + 1, most)


def _either(words: list[str]) -> Test:
    """The test that words stand for, which are taken from the list. Raises ValueError if a part of it is missing."""
    choices: list[list[Test]] = [[]]
    while words:
        if words[0] in ("-o", "-or"):
            del words[0]
            choices.append([])
        else:
            choices[-1].append(_one(words))
    if not all(choices):
        raise ValueError("nothing before or after -o, or between parentheses")
    return lambda entry: any(all(test(entry) for test in tests) for tests in choices)


def _one(words: list[str]) -> Test:
    word = words.pop(0)
    if word in ("!", "-not"):
        negated = _one(words)
        return lambda entry: not negated(entry)
    if word == "(":
        depths = accumulate((word == "(") - (word == ")") for word in words)
        end = next(i for i, depth in enumerate(depths) if depth < 0)
        inner, words[: end + 1] = words[:end], []
        return _either(inner)
    if word in ("-prune", "-print", "-print0"):
        return partial(_act, word)
    return _TESTS[word](words.pop(0))
