"""Match names with globs as in `.gitignore`, and with braces: `*.py`, `src/**`, `/top.txt`, `*.{ts,tsx}`, `!lib`.

A glob with no slash but at its end matches at any depth; any other glob matches from the top. `*` does not match a
slash. A glob that matches a folder covers everything in it. The last glob that matches a name decides, but nothing
below an excluded folder is selected again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathspec import PathSpec
    from pathspec.pattern import Pattern

_MOST_EXPANDED = 1_000  # the most globs that one glob with braces may stand for
_MOST_FOLDERS = 10_000  # the most folders that are remembered
_PARTS = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|[{},]|.", re.DOTALL)
r"""The parts of a glob: `a\{[bc]{d,e}` has the parts `a`, `\{`, `[bc]`, `{`, `d`, `,`, `e` and `}`."""


class Globs:
    """Selects names by globs; a glob that begins with `!` excludes names.

    If every glob excludes names, all other names are selected.
    """

    def __init__(self, globs: Iterable[str], exclude: Iterable[str] = ()) -> None:
        """`exclude`: globs, applied after the others, that exclude names or, with `!`, select them again.

        Raises `ValueError` for an invalid glob, such as `!` alone.
        """
        patterns = list(globs)
        self._selects_others = all(glob.startswith("!") for glob in patterns)
        lines = patterns + [glob[1:] if glob.startswith("!") else f"!{glob}" for glob in exclude]
        self._spec = _compile(lines) if lines else None  # None: there are no globs
        self._excluded: dict[str, bool] = {}  # by folder, for those that were looked up recently

    def select(self, name: str) -> bool:
        """Whether the globs select a name, a path with slashes."""
        if self._spec is None:
            return True
        name = name.lstrip("/")
        if self._is_excluded(name.rpartition("/")[0]):
            return False
        verdict = self._verdict(name)
        return self._selects_others if verdict is None else verdict

    def _is_excluded(self, folder: str) -> bool:
        """Whether a folder, or one above it, is excluded."""
        if not folder:
            return False
        is_excluded = self._excluded.get(folder)
        if is_excluded is None:
            is_excluded = self._is_excluded(folder.rpartition("/")[0]) or self._verdict(f"{folder}/") is False
            if len(self._excluded) > _MOST_FOLDERS:
                self._excluded.clear()
            self._excluded[folder] = is_excluded
        return is_excluded

    def _verdict(self, path: str) -> bool | None:
        """Whether the last glob that matches a path selects it; None if none matches."""
        assert self._spec is not None
        return self._spec.check_file(path.replace("\n", "\r")).include  # its `**` does not cross a newline


def _compile(lines: list[str]) -> PathSpec[Pattern]:
    # Here, because it takes a third of the CPU time of a small `grep`, which seldom has globs.
    from pathspec import PathSpec
    from pathspec.patterns.gitignore import GitIgnorePatternError

    plain_lines = [plain for line in lines for plain in _without_braces(line.replace("\n", "\r"))]
    try:
        return PathSpec.from_lines("gitignore", plain_lines)
    except GitIgnorePatternError as error:
        raise ValueError(f"invalid glob: {str(error).removeprefix('Invalid git pattern: ')}") from None


def _without_braces(glob: str) -> Iterator[str]:
    """Yield the globs that a glob with braces stands for, each as a line of a `.gitignore`."""
    mark = "!" if glob.startswith("!") else ""
    for count, item in enumerate(_expand(_PARTS.findall(glob.removeprefix(mark))), 1):
        if count > _MOST_EXPANDED:
            raise ValueError(f"the braces of {glob[:80]!r} stand for more than {_MOST_EXPANDED:,} globs: use fewer")
        if item.startswith("./"):
            item = item[1:]
        if item.endswith(" "):
            item = f"{item[:-1]}\\ "  # a space at the end of a line would not count
        yield mark + (f"\\{item}" if item.startswith(("#", "!")) and not mark else item)


def _expand(parts: list[str]) -> Iterator[str]:
    """Yield a glob for each combination of the choices in its braces. An unclosed brace stays as it is."""
    positions = _first_group(parts)
    if not positions:
        yield "".join(parts)
    for start, stop in pairwise(positions):
        yield from _expand(parts[: positions[0]] + parts[start + 1 : stop] + parts[positions[-1] + 1 :])


def _first_group(parts: list[str]) -> list[int]:
    """The indexes of the first pair of braces and of the commas between them; empty if no brace is closed."""
    depth, positions = 0, list[int]()
    for index, part in enumerate(parts):
        if part == "{":
            depth += 1
            if depth == 1:
                positions = [index]
        elif part == "," and depth == 1:
            positions.append(index)
        elif part == "}" and depth:
            depth -= 1
            if not depth:
                return [*positions, index]
    return []
