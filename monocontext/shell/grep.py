"""The commands `grep`, `egrep`, `fgrep` and `rg`. Search filters tell which parts of a text are read."""

from __future__ import annotations

import getopt
import re
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from itertools import islice
from string import digits

from monocontext.format.documents import Document
from monocontext.globs import Globs
from monocontext.shell.call import ShellCall
from monocontext.shell.lines import Line, Place, Style, count_lines, found_lines, place_of, print_lines, ranges_of
from monocontext.shell.patterns import from_posix, with_classes
from monocontext.shell.tree import TextFiles
from monocontext.text.regex.linewise import Linewise
from monocontext.text.search.grep import compile_query
from monocontext.text.search.hits import Hit

_COMMON = {
    "F": "fixed-strings", "P": "perl-regexp", "e:": "regexp=", "f:": "file=", "i": "ignore-case", "v": "invert-match",
    "w": "word-regexp", "x": "line-regexp", "c": "count", "l": "files-with-matches", "q": "quiet", "a": "text",
    "o": "only-matching", "n": "line-number", "H": "with-filename", "m:": "max-count=", "A:": "after-context=",
    "B:": "before-context=", "C:": "context=",
}  # fmt: skip
"""Options of grep and rg by letter, with `:` and `=` if they take a value."""
_GREP = _COMMON | {
    "E": "extended-regexp", "G": "basic-regexp", "y": "ignore-case", "L": "files-without-match", "s": "no-messages",
    "h": "no-filename", "r": "recursive", "R": "dereference-recursive", "I": "text",
}  # fmt: skip
_RG = _COMMON | {
    "S": "smart-case", "s": "case-sensitive", "N": "no-line-number", "I": "no-filename", "g:": "glob=", "t:": "type=",
    "T:": "type-not=", "u": "unrestricted", ".": "hidden",
}  # fmt: skip
_LONG = ("include=", "exclude=", "exclude-dir=", "silent", "line-buffered")
_RG_LONG = ("files", "no-heading", "no-ignore", "sort=", "files-without-match", "no-messages")
"""Options without a letter."""
_SAME = {"silent": "quiet", "dereference-recursive": "recursive"}
_KINDS = ("basic-regexp", "extended-regexp", "fixed-strings", "perl-regexp")
_KINDS_BY_NAME = {"egrep": "extended-regexp", "fgrep": "fixed-strings", "rg": "perl-regexp"}
_TYPES = {"py": "py,pyi", "js": "js,jsx,mjs,cjs", "ts": "ts,tsx,mts,cts", "md": "md,markdown", "rust": "rs",
          "c": "c,h", "cpp": "cpp,cc,cxx,hpp,hh,h", "yaml": "yaml,yml", "sh": "sh,bash,zsh"}  # fmt: skip
"""The endings of names of a type of `rg -t`; another type has one ending, its name."""
_ONE_IS_ENOUGH = {"quiet", "files-with-matches", "files-without-match"}
"""Options with which nothing of a file matters after its first selected line."""
_LISTING = ("files", "files-without-match", "invert-match", "include", "exclude", "exclude-dir", "glob", "type",
            "type-not")  # fmt: skip
"""Options for which all files must be named, or many are left out."""


@dataclass(slots=True)
class _Query:
    """What to search for, and how to print it."""

    pattern: Linewise
    flags: frozenset[str]
    """The words of the options that are set."""
    style: Style
    most: int | None
    is_rg: bool
    is_found: bool = False
    """Whether a line was selected."""

    def has(self, *flags: str) -> bool:
        return not self.flags.isdisjoint(flags)

    def watch(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            self.is_found = True
            yield line


@dataclass(frozen=True, slots=True)
class _Lines:
    """A file that is not of a text."""

    name: str
    lines: list[str]

    def names(self) -> list[str]:
        return [self.name]

    def found(self, query: _Query) -> Iterator[Line]:
        whole = Document(0, self.name, 0, 0, 0, 0, 0)
        place = Place(self.name, whole, lambda start, stop: self.lines[start:stop])
        inverts = query.has("invert-match")
        numbered = ((number, line) for number, line in enumerate(self.lines, 1))
        selected = (item for item in numbered if (query.pattern.search(item[1]) is None) == inverts)
        return (Line(place, number, line, Hit(0, number, line)) for number, line in islice(selected, query.most))


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
        return [name for name, _ in (self.shown or {}).values()]

    def found(self, query: _Query) -> Iterator[Line]:
        text = self.files.text
        records = [record for _, record in (self.shown or {}).values()]
        ranges = [(0, len(text))] if self.shown is None else ranges_of(records)
        invert = query.has("invert-match")
        return found_lines(text, query.pattern, ranges, self._place_at, invert=invert, most=query.most)

    def _place_at(self, character: int) -> Place | None:
        """How the file that has a character is shown; None if it is not to be searched."""
        located = self.files.path_at(character)
        if located is None:
            return None
        path, record = located
        if self.shown is not None:
            name, _ = self.shown.get(record.number, ("", record))
        else:
            name = self.root + path[1:] if self.select(path[1:]) else ""
        return place_of(self.files.text, record, name) if name else None


async def grep(call: ShellCall) -> int:
    """Run a command; returns its exit code: 0 if a line was selected, 1 if none was, 2 after an error."""
    options, operands = _parse(call)
    query, operands = await _compile(call, options, operands)
    is_recursive = query.is_rg or query.has("recursive")
    is_failed, has_names = False, query.has("with-filename")
    targets = list[_Stored | _Lines]()
    if not operands and (query.is_rg or not is_recursive):
        lines = await call.lines("-")
        targets += [_Lines("(standard input)", lines)] if lines or not query.is_rg else []
    if not targets:
        targets, is_failed, are_several = await _targets(call, query, operands, is_recursive, _selection(call, options))
        has_names = has_names or (are_several and not query.has("no-filename"))
    query.style = replace(query.style, has_names=has_names)
    for row in _rows(query, targets):
        await call.write(f"{row}\n")
    return 2 if is_failed and not (query.is_found and query.has("quiet")) else int(not query.is_found)


def _rows(query: _Query, targets: list[_Stored | _Lines]) -> Iterator[str]:
    """What is printed."""
    selected = query.watch(line for target in targets for line in target.found(query))
    if query.has("files"):
        for target in targets:
            query.is_found = True
            yield from target.names()
    elif query.has("quiet"):
        next(selected, None)
    elif query.has("files-with-matches"):
        yield from (name for name, _ in count_lines(selected, query.style))
    elif query.has("count", "files-without-match"):
        for target in targets:
            counted = count_lines(query.watch(target.found(query)), query.style)
            for name, count in (dict.fromkeys(target.names(), 0) | dict(counted)).items():
                if query.has("files-without-match"):
                    yield from [] if count else [name]
                elif count or not query.is_rg:
                    yield f"{name}:{count}" if query.style.has_names else str(count)
    elif query.has("only-matching") and query.has("invert-match") and not query.is_rg:
        deque(selected, 0)  # grep prints no line that it selects
    else:
        yield from print_lines(selected, query.style)


def _parse(call: ShellCall) -> tuple[list[tuple[str, str]], list[str]]:
    """The options by their words, and the operands."""
    arguments = [item for item in call.arguments if not item.startswith("--color")]
    letters, others = (_RG, _RG_LONG) if call.name == "rg" else (_GREP, _LONG)
    flags, operands = getopt.gnu_getopt(arguments, "".join(letters) + digits, [*letters.values(), *others])
    words = {f"-{letter[0]}": word.rstrip("=") for letter, word in letters.items()}
    named = [(words.get(option, option[2:]), value) for option, value in flags if option[1] not in digits]
    if number := "".join(option[1] for option, _ in flags if option[1] in digits):
        named.append(("context", number))  # such as `-2` and `-rn12`
    return [(_SAME.get(word, word), value) for word, value in named], operands


async def _compile(call: ShellCall, options: list[tuple[str, str]], operands: list[str]) -> tuple[_Query, list[str]]:
    """The query, and the operands that name files."""
    flags = {word for word, _ in options}
    listings = [word for word, _ in options if word in ("files-with-matches", "files-without-match")]
    flags -= {word for word in listings if word != listings[-1]}
    patterns = [line for word, value in options if word == "regexp" for line in value.split("\n")]
    for word, value in options:
        patterns += await call.lines(value) if word == "file" else []
    if not flags & {"regexp", "file", "files"}:
        if not operands:
            raise ValueError("no pattern: usage: grep [OPTION]... PATTERNS [FILE]...")
        patterns, operands = operands[0].split("\n"), operands[1:]
    kind = next((word for word, _ in reversed(options) if word in _KINDS), _KINDS_BY_NAME.get(call.name, _KINDS[0]))
    linewise, is_rg = compile_query(_joined(patterns, kind, flags)), call.name == "rg"
    numbers = {word: int(value) for word, value in options if word.endswith(("context", "max-count"))}
    only = "only-matching" in flags and (is_rg or "count" not in flags)
    near = [numbers.get(word, numbers.get("context", 0)) for word in ("before-context", "after-context")]
    before, after = (0, 0) if only else near
    style = Style(linewise, False, "line-number" in flags, only, before, after)
    most = 1 if flags & _ONE_IS_ENOUGH and numbers.get("max-count") != 0 else numbers.get("max-count")
    return _Query(linewise, frozenset(flags), style, most, is_rg), operands


def _joined(patterns: list[str], kind: str, flags: set[str]) -> re.Pattern[str]:
    """One pattern of Python for several in a language of grep, any of which may match."""
    if kind == "fixed-strings":
        patterns = [re.escape(pattern) for pattern in patterns]
    elif kind == "perl-regexp":
        patterns = [with_classes(pattern) for pattern in patterns]
    else:
        patterns = [from_posix(pattern, extended=kind == "extended-regexp") for pattern in patterns]
    joined = "|".join(f"(?:{pattern})" for pattern in patterns) if len(patterns) > 1 else "".join(patterns)
    if "line-regexp" in flags:
        joined = f"^(?:{joined})$"
    elif "word-regexp" in flags:
        joined = rf"(?<!\w)(?:{joined})(?!\w)"
    ignores_case = "ignore-case" in flags or ("smart-case" in flags and not any(map(str.isupper, joined)))
    return re.compile(joined if patterns else "(?!)", re.IGNORECASE if ignores_case else 0)


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
) -> tuple[list[_Stored | _Lines], bool, bool]:
    """The files to search, whether an operand names none, and whether there may be several."""
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
    return results, is_failed, len(operands) > 1 or folders > 0


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
