"""A stand-in for the context that writes down what is read of it, in the words of hints."""

from __future__ import annotations

import ast
import builtins
import contextlib
import io
import json
import re
from collections.abc import Iterator
from typing import Any

from monocontext.engine.hints import Lines, Needle, Pattern, Ranges, Whole

Read = tuple[int, int] | Lines | Needle | Pattern | Whole


def make_text(characters: int) -> str:
    """Numbered lines with a few words to look for, the same every time."""
    pieces, size, number = [], 0, 0
    while size < characters:
        number += 1
        line = f"line {number}: user_{number * 7 % 13} paid {number * 31 % 97} euros"
        if number % 500 == 0:
            line = f"## Section {number // 500}"
        elif number % 77 == 0:
            line = f"ERROR host-{number} failed: Timeout after {number % 60} ms"
        pieces.append(line + "\n")
        size += len(line) + 1
    return "".join(pieces)[:characters]


class Recording:
    """Behaves as the text; every read goes to `log`."""

    def __init__(self, text: str, log: list[Read], folded: bool = False) -> None:
        self._text = text
        self._log = log
        self._folded = folded

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, key: Any) -> str:
        if isinstance(key, slice):
            start, stop, step = key.indices(len(self._text))
            count = len(range(start, stop, step))
            if count:
                low, high = sorted((start, start + (count - 1) * step))
                self._log.append((low, high + 1))
        else:
            at = range(len(self._text))[key]
            self._log.append((at, at + 1))
        return self._text[key]

    def _all(self, backward: bool = False) -> str:
        self._log.append(Whole(backward))
        return self._text

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._all(backward=True))

    def __format__(self, spec: str) -> str:
        return self._all()

    def __add__(self, other: str) -> str:
        return self._all() + other

    def __radd__(self, other: str) -> str:
        return other + self._all()

    def __contains__(self, needle: str) -> bool:
        return self._look("find", needle) != -1

    def _look(self, name: str, needle: str, *bounds: int | None) -> int:
        start, stop, _ = slice(*(*bounds, None, None)[:2]).indices(len(self._text))
        if 0 < len(needle) <= stop - start:  # else there is nothing to look at
            self._log.append(Needle(needle, self._folded, name[0] == "r", start, max(start, stop)))
        return int(getattr(self._text, name)(needle, *bounds))

    def find(self, *arguments: Any) -> int:
        return self._look("find", *arguments)

    def rfind(self, *arguments: Any) -> int:
        return self._look("rfind", *arguments)

    def index(self, *arguments: Any) -> int:
        return self._look("index", *arguments)

    def rindex(self, *arguments: Any) -> int:
        return self._look("rindex", *arguments)

    def count(self, *arguments: Any) -> int:
        return self._look("count", *arguments)

    def startswith(self, needle: str) -> bool:
        self._log.append(Needle(needle, self._folded, False, 0, len(needle)))
        return self._text.startswith(needle)

    def endswith(self, needle: str) -> bool:
        self._log.append(Needle(needle, self._folded, True, len(self._text) - len(needle), len(self._text)))
        return self._text.endswith(needle)

    def split(self, separator: str | None = None, most: int = -1) -> LazyLines:
        if separator not in (None, "\n"):
            self._look("find", separator)
        lines = self._text.split(separator, most)
        return LazyLines(lines, self._log, is_lines=separator == "\n")

    def partition(self, separator: str) -> tuple[str, str, str]:
        self._look("find", separator)
        return self._text.partition(separator)

    def rpartition(self, separator: str) -> tuple[str, str, str]:
        self._look("rfind", separator)
        return self._text.rpartition(separator)

    def replace(self, old: str, new: str) -> Recording:
        self._look("find", old)
        return Recording(self._text.replace(old, new), self._log, self._folded)

    def strip(self) -> Recording:
        return self

    def splitlines(self) -> LazyLines:
        return LazyLines(self._text.splitlines(), self._log)

    @property
    def lines(self) -> LazyLines:
        return LazyLines(self._text.splitlines(keepends=True), self._log, counted=True)

    def chunks(self, size: int) -> Iterator[str]:
        for start in range(0, len(self._text), size):
            yield self[start : start + size]

    def lower(self) -> Recording:
        return Recording(self._text.lower(), self._log, folded=True)

    def upper(self) -> Recording:
        return Recording(self._text.upper(), self._log, folded=True)


class LazyLines:
    """The list of lines, or of pieces."""

    def __init__(self, items: list[str], log: list[Read], *, counted: bool = False, is_lines: bool = True) -> None:
        self._items = items
        self._log = log
        self._counted = counted
        self._is_lines = is_lines

    def __len__(self) -> int:
        if not self._counted:
            self._log.append(Whole())
        return len(self._items)

    def __getitem__(self, key: Any) -> Any:
        if self._is_lines:
            found = range(len(self._items))[key]
            numbers = list(found) if isinstance(found, range) else [found]
            if key == slice(None, None, -1):
                self._log.append(Whole(backward=True))
            elif numbers:
                self._log.append(Lines(min(numbers), max(numbers) + 1))
        return self._items[key]

    def __iter__(self) -> Iterator[str]:
        self._log.append(Whole())
        return iter(self._items)

    def __reversed__(self) -> Iterator[str]:
        self._log.append(Whole(backward=True))
        return reversed(self._items)


class RecordingRe:
    """`re` that takes the stand-in too."""

    def __init__(self, log: list[Read]) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        real = getattr(re, name)
        if name not in ("search", "match", "findall", "finditer", "split", "sub", "fullmatch", "compile"):
            return real
        if name == "compile":
            return lambda pattern, flags=0: RecordingPattern(re.compile(pattern, flags), pattern, int(flags), self._log)
        place = 2 if name == "sub" else 1

        def call(pattern: Any, *arguments: Any, flags: int = 0) -> Any:
            rest = list(arguments)
            if name in ("search", "match", "findall", "finditer") and len(rest) > 1:
                flags = rest.pop()
            source, subject = pattern, rest[place - 1]
            if isinstance(pattern, RecordingPattern):
                source, flags = pattern.source, pattern.flags
            if isinstance(subject, Recording):
                rest[place - 1] = subject._text
                stop = min(1 << 16, len(subject)) if name == "match" else len(subject)
                flags_told = int(flags) | (2 if subject._folded else 0)
                self._log.append(Pattern(source, flags_told, 0, stop))
            return getattr(re, name)(source, *rest, flags=flags)

        return call


class RecordingPattern:
    """`re.compile(...)`."""

    def __init__(self, compiled: re.Pattern[str], source: str, flags: int, log: list[Read]) -> None:
        self._compiled = compiled
        self.source = source
        self.flags = flags
        self._log = log

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._compiled, name)

        def call(subject: Any, *bounds: int) -> Any:
            if isinstance(subject, Recording):
                start, stop, _ = slice(*(*bounds, None, None)[:2]).indices(len(subject))
                self._log.append(Pattern(self.source, self.flags | (2 if subject._folded else 0), start, stop))
                subject = subject._text
            return real(subject, *bounds)

        return call


class _Json:
    loads = staticmethod(lambda text: json.loads(text._all() if isinstance(text, Recording) else text))


def _str(value: Any = "") -> Any:
    return value if isinstance(value, Recording) else str(value)


def _isinstance(value: Any, kinds: Any) -> bool:
    kinds = tuple(str if kind is _str else kind for kind in (kinds if isinstance(kinds, tuple) else (kinds,)))
    return isinstance("" if isinstance(value, Recording) else value, kinds)


def namespace(text: str, log: list[Read]) -> dict[str, Any]:
    """What a block finds in a REPL, with `import re` and `import json` giving stand-ins."""
    regex = RecordingRe(log)

    def bring(name: str, *rest: Any) -> Any:
        return {"re": regex, "json": _Json}.get(name) or __import__(name, *rest)

    return {
        "__builtins__": {**vars(builtins), "str": _str, "isinstance": _isinstance, "__import__": bring},
        "context": Recording(text, log),
        "re": regex,
        "llm_query": lambda prompt, model=None: "answer",
        "llm_query_batched": lambda prompts, model=None: ["answer"] * len(list(prompts)),
        "print": lambda *values, **_: [value._all() for value in values if isinstance(value, Recording)] and None,
    }


def reads_of(source: str, text: str) -> list[Read]:
    """What the block really reads, each once, in the order of its first time."""
    log: list[Read] = []
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(ast.parse(source), "<block>", "exec"), namespace(text, log))
    return list(dict.fromkeys(log))


def told(hints: list[Any]) -> list[Read]:
    """The same of hints, progressions taken apart."""
    found: list[Read] = []
    for hint in hints:
        found += list(hint) if isinstance(hint, Ranges) else [hint]
    return list(dict.fromkeys(found))
