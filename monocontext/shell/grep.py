"""The commands `grep`, `egrep`, `fgrep` and `rg`. Search filters tell which parts of a text are read."""

from __future__ import annotations

import getopt
import re
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import groupby, islice
from operator import itemgetter

from monocontext.format.documents import Document
from monocontext.globs import Globs
from monocontext.shell.call import ShellCall
from monocontext.shell.patterns import from_posix, with_classes
from monocontext.shell.tree import TextFiles
from monocontext.text.search.grep import compile_query

GREP_SECONDS = 20.0
"""A search stops after this time and says so."""
_PART = 128 << 20
"""The characters of one part of a search. The clock is read after each part."""
_MOST_GAP = 1 << 20
"""Documents are searched together if at most as many characters lie between them."""

_COMMON = {
    "F": "fixed-strings", "P": "perl-regexp", "e:": "regexp=", "f:": "file=", "i": "ignore-case", "v": "invert-match",
    "w": "word-regexp", "x": "line-regexp", "c": "count", "l": "files-with-matches", "q": "quiet", "a": "text",
    "o": "only-matching", "n": "line-number", "H": "with-filename", "m:": "max-count=", "A:": "after-context=",
    "B:": "before-context=", "C:": "context=",
}  # fmt: skip
"""Options of grep and rg by letter, with `:` and `=` if they take a value."""
_GREP = _COMMON | {
    "E": "extended-regexp", "G": "basic-regexp", "y": "ignore-case", "L": "files-without-match", "s": "no-messages",
    "h": "no-filename", "r": "recursive", "R": "dereference-recursive", "I": "text", "1": "include=", "2": "exclude=",
    "3": "exclude-dir=", "4": "silent", "5": "line-buffered",
}  # fmt: skip
_RG = _COMMON | {
    "S": "smart-case", "s": "case-sensitive", "N": "no-line-number", "I": "no-filename", "g:": "glob=", "t:": "type=",
    "T:": "type-not=", "u": "unrestricted", ".": "hidden", "1": "files", "2": "no-heading", "3": "no-ignore",
    "4": "sort=", "5": "files-without-match", "6": "no-messages",
}  # fmt: skip
_SAME = {"silent": "quiet", "dereference-recursive": "recursive"}
_KINDS = ("basic-regexp", "extended-regexp", "fixed-strings", "perl-regexp")
_KINDS_BY_NAME = {"egrep": "extended-regexp", "fgrep": "fixed-strings", "rg": "perl-regexp"}
_TYPES = {"py": "py,pyi", "js": "js,jsx,mjs,cjs", "ts": "ts,tsx,mts,cts", "md": "md,markdown", "rust": "rs",
          "c": "c,h", "cpp": "cpp,cc,cxx,hpp,hh,h", "yaml": "yaml,yml", "sh": "sh,bash,zsh"}  # fmt: skip
"""The endings of names of a type of `rg -t`; another type has one ending, its name."""
_ONE_IS_ENOUGH = ("quiet", "files-with-matches", "files-without-match")
"""Options with which nothing of a file matters after its first selected line."""
_LISTING = ("files", "files-without-match", "invert-match", "include", "exclude", "exclude-dir", "glob", "type",
            "type-not")  # fmt: skip
"""Options for which all files must be named, or many are left out."""
_REFUSALS = (getopt.GetoptError, re.error, ValueError, OverflowError, RecursionError)
LinesOf = Callable[[int, int], Sequence[str]]
"""Returns lines [start, stop) of a file, from 0."""
Found = Iterator[tuple[str, Iterator[tuple[int, str]], LinesOf]]
"""For each file with selected lines: how it is shown, those lines with their numbers from 1, and any of its lines."""


@dataclass(slots=True)
class _Query:
    """What to search for, and how to print it."""

    pattern: re.Pattern[str]
    flags: frozenset[str]
    """The words of the options that are set."""
    before: int
    after: int
    most: int | None
    has_names: bool = False
    has_printed: bool = False
    """Whether lines were printed before: with context, what follows is separated by a line `--`."""

    def has(self, *flags: str) -> bool:
        return not self.flags.isdisjoint(flags)

    def selects(self, line: str) -> bool:
        return (self.pattern.search(line) is None) == ("invert-match" in self.flags)


@dataclass(frozen=True, slots=True)
class _Lines:
    """A file that is not of a text."""

    shown: str
    lines: list[str]

    def names(self) -> list[str]:
        return [self.shown]

    def found(self, query: _Query) -> Found:
        selected = ((number, line) for number, line in enumerate(self.lines, 1) if query.selects(line))
        yield self.shown, selected, lambda start, stop: self.lines[start:stop]


@dataclass(frozen=True, slots=True)
class _Stored:
    """Documents of one text that are searched together, in the order of the text."""

    files: TextFiles
    shown: dict[int, tuple[str, Document]] | None
    """How each document is shown, by its number; None for the whole text, whose paths are shown below `root`."""
    root: str = ""
    select: Callable[[str], bool] = bool
    """Of the whole text: whether a file, given its path, is to be searched."""

    def names(self) -> list[str]:
        return [shown for shown, _ in (self.shown or {}).values()]

    def found(self, query: _Query) -> Found:
        rows = self._inverted(query) if query.has("invert-match") else self._matches(query)
        for (shown, record), group in groupby(rows, key=itemgetter(0)):
            lines = self.files.view(record).lines
            numbered = ((number, line) for _, number, line in group)
            yield shown, numbered, lambda a, b, lines=lines: lines[a:b].removesuffix("\n").split("\n")  # type: ignore[misc]

    def _matches(self, query: _Query) -> Iterator[tuple[tuple[str, Document], int, str]]:
        """The lines that match, with their documents."""
        current: tuple[str, Document] | None = None
        end, count = time.monotonic() + GREP_SECONDS, 0
        most = 1 if query.has(*_ONE_IS_ENOUGH) else query.most
        parts = self._parts()
        while parts:
            start, stop = parts.pop()
            for hit in self.files.text.grep(query.pattern, start=start, stop=stop):
                _check_time(end)
                if current is None or hit.offset >= current[1].stop:
                    current, count = self._file_at(hit.offset), 0
                    if current is None:
                        continue
                yield current, hit.line_number - current[1].first_line, hit.line
                count += 1
                if count == most and current[1].stop - hit.offset > _MOST_GAP:
                    parts.append((current[1].stop, stop))
                    break
            _check_time(end)

    def _file_at(self, character: int) -> tuple[str, Document] | None:
        """How the file that has a character is shown, and its document; None if it is not to be searched."""
        location = self.files.path_at(character)
        if location is None:
            return None  # a line between documents
        path, record = location
        if self.shown is not None:
            return self.shown.get(record.number)
        return (self.root + path[1:], record) if self.select(path[1:]) else None

    def _inverted(self, query: _Query) -> Iterator[tuple[tuple[str, Document], int, str]]:
        """The lines that do not match, with their documents. Reads all of these."""
        end = time.monotonic() + GREP_SECONDS
        for item in (self.shown or {}).values():
            _check_time(end)
            for number, line in enumerate(self.files.view(item[1]).lines, 1):
                if query.selects(line.removesuffix("\n")):
                    yield item, number, line.removesuffix("\n")

    def _parts(self) -> list[tuple[int, int]]:
        """The ranges of the text that hold the documents, the last one first."""
        ranges = [(0, len(self.files.text))] if self.shown is None else []
        for _, record in (self.shown or {}).values():
            start = ranges.pop()[0] if ranges and record.start - ranges[-1][1] <= _MOST_GAP else record.start
            ranges.append((start, record.stop))
        parts = [(first, min(first + _PART, stop)) for start, stop in ranges for first in range(start, stop, _PART)]
        return parts[::-1]


def _check_time(end: float) -> None:
    if time.monotonic() > end:
        raise ValueError(f"stopped after {GREP_SECONDS:g} s, before the end: search fewer files, or a rarer word")


async def grep(call: ShellCall) -> int:
    """Run a command; returns its exit code: 0 if a line was selected, 1 if none was, 2 after an error."""
    status = 1
    try:
        options, operands = _parse(call)
        query, operands = await _compile(call, options, operands)
        is_recursive = call.name == "rg" or query.has("recursive")
        targets = list[_Stored | _Lines]()
        if not operands and (call.name == "rg" or not is_recursive):
            lines = await call.lines("-")
            targets += [_Lines("(standard input)", lines)] if lines or call.name != "rg" else []
            query.has_names = query.has("with-filename")
        is_failed = False
        if not targets:
            targets, is_failed = await _targets(call, query, operands, is_recursive, _selection(call, options))
        for target in targets:
            if query.has("files"):
                await call.write("".join(f"{shown}\n" for shown in target.names()))
                status = 0
            elif await _search(call, query, target):
                status = 0
                if query.has("quiet"):
                    return 0
        await call.flush()
        return 2 if is_failed else status
    except _REFUSALS as error:
        await call.flush()
        await call.complain(str(error))
        return 2


def _parse(call: ShellCall) -> tuple[list[tuple[str, str]], list[str]]:
    """The options by their words, and the operands."""
    arguments = [re.sub(r"^-(\d+)$", r"-C\1", item) for item in call.arguments if not item.startswith("--color")]
    known = _RG if call.name == "rg" else _GREP
    given, operands = getopt.gnu_getopt(arguments, "".join(known), list(known.values()))
    words = {f"-{letter[0]}": word.rstrip("=") for letter, word in known.items()}
    named = [(words.get(option, option[2:]), value) for option, value in given]
    return [(_SAME.get(word, word), value) for word, value in named], operands


async def _compile(call: ShellCall, options: list[tuple[str, str]], operands: list[str]) -> tuple[_Query, list[str]]:
    """The query, and the operands that name files."""
    flags = {word for word, _ in options}
    patterns = [line for word, value in options if word == "regexp" for line in value.split("\n")]
    for word, value in options:
        patterns += await call.lines(value) if word == "file" else []
    if not flags & {"regexp", "file", "files"}:
        if not operands:
            raise ValueError("no pattern: usage: grep [OPTION]... PATTERNS [FILE]...")
        patterns, operands = operands[0].split("\n"), operands[1:]
    kind = next((word for word, _ in reversed(options) if word in _KINDS), _KINDS_BY_NAME.get(call.name, _KINDS[0]))
    if kind == "fixed-strings":
        patterns = [re.escape(pattern) for pattern in patterns]
    elif kind == "perl-regexp":
        patterns = [with_classes(pattern) for pattern in patterns]
    else:
        patterns = [from_posix(pattern, extended=kind == "extended-regexp") for pattern in patterns]
    whole = "|".join(f"(?:{pattern})" for pattern in patterns) if len(patterns) > 1 else "".join(patterns)
    if "line-regexp" in flags:
        whole = f"^(?:{whole})$"
    elif "word-regexp" in flags:
        whole = rf"(?<!\w)(?:{whole})(?!\w)"
    ignores_case = "ignore-case" in flags or ("smart-case" in flags and not any(map(str.isupper, whole)))
    pattern = re.compile(whole if patterns else "(?!)", re.IGNORECASE if ignores_case else 0)
    compile_query(pattern)  # refuses a pattern that needs a newline
    numbers = {word: int(value) for word, value in options if word.endswith(("context", "max-count"))}
    shows_lines = not flags & {"only-matching", "count", "files-with-matches", "files-without-match", "quiet"}
    before, after = (numbers.get(word, numbers.get("context", 0)) for word in ("before-context", "after-context"))
    before, after = before * shows_lines, after * shows_lines
    return _Query(pattern, frozenset(flags), before, after, numbers.get("max-count")), operands


def _selection(call: ShellCall, options: list[tuple[str, str]]) -> Callable[[str], bool]:
    """Whether a file below a folder, given its path in it, is to be searched."""

    def values(word: str) -> list[str]:
        return [value for item, value in options if item == word]

    if call.name == "rg":
        endings = {word: [f"*.{{{_TYPES.get(item, item)}}}" for item in values(word)] for word in ("type", "type-not")}
        globs = Globs(values("glob") + endings["type"], endings["type-not"])
        hides = not values("hidden") and not values("unrestricted")
        return lambda path: globs.select(path) and not (hides and any(part[:1] == "." for part in path.split("/")))
    include, exclude, folders = values("include"), values("exclude"), values("exclude-dir")

    def select(path: str) -> bool:
        *above, name = path.split("/")
        return (
            (not include or any(fnmatchcase(name, glob) for glob in include))
            and not any(fnmatchcase(name, glob) for glob in exclude)
            and not any(fnmatchcase(folder, glob.rstrip("/")) for folder in above for glob in folders)
        )

    return select


async def _targets(
    call: ShellCall, query: _Query, operands: list[str], is_recursive: bool, select: Callable[[str], bool]
) -> tuple[list[_Stored | _Lines], bool]:
    """The files to search, and whether an operand names none."""
    results: list[_Stored | _Lines] = []
    is_failed, folders, latest = False, 0, -1
    for operand in operands or [""]:
        path, document = call.path(operand), call.document(operand)
        if document is not None:
            files, record = document
            last = results[-1] if results else None
            if not isinstance(last, _Stored) or last.files is not files or not last.shown or record.number <= latest:
                results.append(last := _Stored(files, {}))
            assert last.shown is not None
            last.shown[record.number] = operand, record
            latest = record.number
        elif operand == "-":
            results.append(_Lines("(standard input)", await call.lines(operand)))
        elif not call.files.exists(path):
            is_failed = True
            if not query.has("no-messages"):
                await call.complain(f"{operand}: No such file or directory")
        elif not call.is_folder(path):
            results.append(_Lines(operand, await call.lines(path)))
        elif is_recursive:
            folders += 1
            lists = query.has(*_LISTING) or (query.has("count") and call.name != "rg")
            prefix = operand.rstrip("/") + "/" if operand else ""
            results += [target async for target in _below(call, path, prefix, select, lists)]
        else:
            await call.complain(f"{operand}: Is a directory")
            is_failed = True
    are_several = len(operands) > 1 or folders > 0
    query.has_names = (are_several and not query.has("no-filename")) or query.has("with-filename")
    return results, is_failed


async def _below(
    call: ShellCall, path: str, prefix: str, select: Callable[[str], bool], lists: bool
) -> AsyncIterator[_Stored | _Lines]:
    """The files of a folder. `lists`: some of them are left out, or all must be named."""
    location = call.locate(path)
    if location is not None:
        files, inner = location
        if inner == "/" and not lists:
            yield _Stored(files, None, prefix, select)
            return
        start = len(inner.rstrip("/")) + 1
        below = [(item[start:], record) for item, record in files.below(inner)]
        yield _Stored(files, {record.number: (prefix + name, record) for name, record in below if select(name)})
        return
    for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
        inner, shown = f"{path.rstrip('/')}/{entry['name']}", prefix + entry["name"]
        if entry["metadata"]["file_type"] == "directory":
            if inner not in ("/proc", "/dev"):
                async for target in _below(call, inner, shown + "/", select, True):
                    yield target
        elif select(entry["name"]):
            yield _Lines(shown, await call.lines(inner))


async def _search(call: ShellCall, query: _Query, target: _Stored | _Lines) -> bool:
    """Search files and print what is selected; returns whether anything is."""
    counts = dict.fromkeys(target.names(), 0)
    for shown, matches, lines in target.found(query):
        counts[shown] = await _print_file(call, query, shown, islice(matches, query.most), lines)
        if counts[shown] and query.has("quiet"):
            return True
    for shown, count in counts.items():
        if query.has("files-without-match"):
            await call.write("" if count else shown + "\n")
        elif query.has("count") and not query.has(*_ONE_IS_ENOUGH) and (count or call.name != "rg"):
            await call.write(f"{shown}:{count}\n" if query.has_names else f"{count}\n")
    return any(counts.values())


async def _print_file(
    call: ShellCall, query: _Query, shown: str, matches: Iterator[tuple[int, str]], lines: LinesOf
) -> int:
    """Print the selected lines of one file; returns their number."""
    name = shown if query.has_names else ""
    if query.before or query.after:
        return await _print_near(call, query, name, [number for number, _ in matches], lines)
    count = 0
    for number, line in matches:
        count += 1
        if query.has(*_ONE_IS_ENOUGH):
            await call.write(shown + "\n" if query.has("files-with-matches") else "")
            return count
        if query.has("only-matching"):
            for match in query.pattern.finditer(line):
                await call.write(_row(query, name, number, ":", match[0]) if match[0] else "")
        elif not query.has("count"):
            await call.write(_row(query, name, number, ":", line))
    return count


async def _print_near(call: ShellCall, query: _Query, name: str, numbers: list[int], lines: LinesOf) -> int:
    """Print the lines of these numbers and those near them; returns how many there are of the first."""
    ranges: list[tuple[int, int]] = []
    for number in numbers:
        start, stop = max(0, number - 1 - query.before), number + query.after
        if ranges and start <= ranges[-1][1]:
            start = ranges.pop()[0]
        ranges.append((start, stop))
    selected = frozenset(numbers)
    for start, stop in ranges:
        await call.write("--\n" if query.has_printed else "")
        query.has_printed = True
        for number, line in enumerate(lines(start, stop), start + 1):
            await call.write(_row(query, name, number, ":" if number in selected else "-", line))
    return len(numbers)


def _row(query: _Query, name: str, number: int, separator: str, line: str) -> str:
    row = f"{number}{separator}{line}\n" if query.has("line-number") else f"{line}\n"
    return f"{name}{separator}{row}" if name else row
