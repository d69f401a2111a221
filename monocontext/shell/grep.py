"""The commands `grep`, `egrep`, `fgrep` and `rg`. Search filters tell which parts of a text are read."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import islice
from string import digits

from monocontext.format.documents import Document
from monocontext.globs import Globs
from monocontext.shell.call import ShellCall
from monocontext.shell.lines import Line, Place, Style, count_lines, format_lines, found_lines, place_of, ranges_of
from monocontext.shell.listing import is_folder
from monocontext.shell.patterns import from_posix, with_classes, with_kept
from monocontext.shell.tree import TextFiles
from monocontext.text.search.grep import compile_query
from monocontext.text.search.hits import Hit

_COMMON = {
    "F": "fixed-strings", "P": "perl-regexp", "e:": "regexp=", "f:": "file=", "i": "ignore-case", "v": "invert-match",
    "w": "word-regexp", "x": "line-regexp", "c": "count", "l": "files-with-matches", "q": "quiet", "a": "text",
    "o": "only-matching", "n": "line-number", "H": "with-filename", "m:": "max-count=", "A:": "after-context=",
    "B:": "before-context=", "C:": "context=",
} | {digit: digit for digit in digits}  # fmt: skip
"""Options of grep and rg by letter, with `:` and `=` if they take a value."""
_GREP = _COMMON | {
    "E": "extended-regexp", "G": "basic-regexp", "y": "ignore-case", "L": "files-without-match", "s": "no-messages",
    "h": "no-filename", "r": "recursive", "R": "recursive", "I": "text", "Z": "null",
}  # fmt: skip
_RG = _COMMON | {
    "S": "smart-case", "s": "case-sensitive", "N": "no-line-number", "I": "no-filename", "g:": "glob=", "t:": "type=",
    "u": "unrestricted", ".": "hidden", "0": "null",
}  # fmt: skip
_GREP_LONG = ("include=", "exclude=", "exclude-dir=", "line-buffered")
_RG_LONG = ("files", "no-heading", "no-ignore", "sort=", "files-without-match", "no-messages")
"""Options without a letter."""
_LAST_WINS = (
    ("files-with-matches", "files-without-match"), ("with-filename", "no-filename"), ("line-number", "no-line-number"),
    ("basic-regexp", "extended-regexp", "fixed-strings", "perl-regexp"),
)  # fmt: skip
_SYNTAXES = {"grep": "basic-regexp", "egrep": "extended-regexp", "fgrep": "fixed-strings", "rg": "perl-regexp"}
_TYPES = {"py": "py,pyi", "js": "js,jsx,mjs,cjs", "ts": "ts,tsx,mts,cts", "md": "md,markdown", "rust": "rs",
          "c": "c,h", "cpp": "cpp,cc,cxx,hpp,hh,h", "yaml": "yaml,yml", "sh": "sh,bash,zsh"}  # fmt: skip
"""The endings of names of a type of `rg -t`; another type has one ending, its name."""
_MOST = 1 << 40
"""The largest number in an option: more lines than a text has."""
_NAMING = ("files", "files-without-match", "invert-match", "include", "exclude", "exclude-dir", "glob", "type")
"""Options for which all files must be named, or many are left out."""


async def grep(call: ShellCall) -> int:
    """Run a command; returns its exit code: 0 if a line was selected, 1 if none was, 2 after an error."""
    query = _Query(call)
    await query.compile()
    if query.most == 0 and not query.has("files-without-match"):
        return 1
    targets = list[_Target]()
    if not query.operands and (query.is_rg or not query.is_recursive):
        lines = await call.lines("-")
        targets += [_File("(standard input)", lines)] if lines or not query.is_rg else []
    if not targets:
        targets = await _targets(query)
    has_names = query.has("with-filename") or (query.may_be_several and not query.has("no-filename"))
    query.style = replace(query.style, has_names=has_names)
    end = "\0" if query.has("null") else "\n"
    for row in query.rows(targets):
        await call.write(row + end)
    return 2 if query.is_missing and not (query.has_selected and query.has("quiet")) else int(not query.has_selected)


async def _targets(query: _Query) -> list[_Target]:
    """The files that the operands name; tells of those that name none."""
    call, targets = query.call, list[_Target]()
    query.may_be_several = len(query.operands) > 1
    for operand in query.operands or [""]:
        path, stored = call.path(operand), call.document(operand)
        is_left_out = not query.is_rg and not query.selects(operand.rpartition("/")[2])
        if operand == "-":
            targets.append(_File("(standard input)", await call.lines(operand)))
        elif stored is not None:
            if not is_left_out:
                _add_document(targets, operand, *stored)
        elif not call.files.exists(path):
            query.is_missing = True
            if not query.has("no-messages"):
                await call.complain(f"{operand}: No such file or directory")
        elif not is_folder(call.files.stat(path)):
            if not is_left_out:
                targets.append(_File(operand, await call.lines(path)))
        elif not query.is_recursive:
            query.is_missing = True
            await call.complain(f"{operand}: Is a directory")
        elif not (operand and query.skips(operand)):
            query.may_be_several, prefix = True, operand.rstrip("/") + "/" if operand else ""
            targets += [target async for target in _below(query, path, prefix)]
    return targets


def _add_document(targets: list[_Target], operand: str, files: TextFiles, record: Document) -> None:
    """Search a document together with the last target, if that has documents before it in the same text."""
    last = targets[-1] if targets else None
    if isinstance(last, _Stored) and last.files is files and last.shown and record.number > next(reversed(last.shown)):
        last.shown[record.number] = operand, record
    else:
        targets.append(_Stored(files, {record.number: (operand, record)}))


async def _below(query: _Query, path: str, prefix: str) -> AsyncIterator[_Target]:
    """The files of a folder."""
    call = query.call
    if location := call.locate(path):
        files, inner = location
        if inner == "/" and not query.has(*_NAMING) and (query.is_rg or not query.has("count")):
            yield _Stored(files, None, prefix)
            return
        start = len(inner.rstrip("/")) + 1
        below = [(item[start:], record) for item, record in files.below(inner)]
        yield _Stored(files, {record.number: (prefix + name, record) for name, record in below if query.selects(name)})
        return
    for entry in sorted(call.files.read_dir(path), key=lambda entry: str(entry["name"])):
        inner, shown = f"{path.rstrip('/')}/{entry['name']}", prefix + entry["name"]
        if is_folder(entry["metadata"]):
            if inner not in ("/proc", "/dev") and not query.skips(entry["name"]):
                async for target in _below(query, inner, shown + "/"):
                    yield target
        elif query.selects(entry["name"]):
            yield _File(shown, await call.lines(inner))


@dataclass(frozen=True, slots=True)
class _File:
    """A file that is not of a text."""

    name: str
    lines: list[str]

    def names(self) -> list[str]:
        return [self.name]

    def select(self, query: _Query) -> Iterator[Line]:
        place = Place(self.name, Document(0, self.name, 0, 0, 0, 0, 0), lambda start, stop: self.lines[start:stop])
        inverts, search = query.has("invert-match"), query.style.pattern.search
        selected = (item for item in enumerate(self.lines, 1) if (search(item[1]) is None) == inverts)
        return (Line(place, number, line, Hit(0, number, line)) for number, line in islice(selected, query.most))


@dataclass(frozen=True, slots=True)
class _Stored:
    """Documents of one text that are searched together, in the order of the text."""

    files: TextFiles
    shown: dict[int, tuple[str, Document]] | None
    """How each document is shown, by its number; None for the whole text, whose paths are shown below `root`."""
    root: str = ""

    def names(self) -> list[str]:
        return [name for name, _ in (self.shown or {}).values()]

    def select(self, query: _Query) -> Iterator[Line]:
        text, pattern = self.files.text, query.style.pattern
        ranges = [(0, len(text))] if self.shown is None else ranges_of(record for _, record in self.shown.values())
        invert, place_at = query.has("invert-match"), partial(self._place_at, query)
        return found_lines(text, pattern, ranges, place_at, invert=invert, most=query.most)

    def _place_at(self, query: _Query, character: int) -> Place | None:
        """How the file that has a character is shown; None if it is not to be searched."""
        path_and_record = self.files.path_at(character)
        if path_and_record is None:
            return None
        path, record = path_and_record
        if self.shown is not None:
            name, _ = self.shown.get(record.number, ("", record))
        else:
            name = self.root + path[1:] if query.selects(path[1:]) else ""
        return place_of(self.files.text, record, name) if name else None


_Target = _Stored | _File


class _Query:
    """What to search for, and how to print it."""

    def __init__(self, call: ShellCall) -> None:
        self.call, self.is_rg = call, call.name == "rg"
        call.arguments = [item for item in call.arguments if not item.startswith("--color")]
        words = (_RG, _RG_LONG) if self.is_rg else (_GREP, _GREP_LONG)
        self._options, self.operands = call.options(*words)
        self._flags = {word for word, _ in self._options}
        for group in _LAST_WINS:
            given = [word for word, _ in self._options if word in group]
            self._flags -= {word for word in given if word != given[-1]}
        if self.has("null") and not self.has("files-with-matches", "files-without-match"):
            raise ValueError("not supported here: a zero byte after names other than those of -l")
        self.is_recursive = self.is_rg or self.has("recursive")
        self.has_selected = self.is_missing = self.may_be_several = False
        """Whether a line was selected, an operand names nothing to search, and there may be several files."""
        self.style: Style
        self.most: int | None
        """The most lines of a file."""

    def has(self, *flags: str) -> bool:
        return not self._flags.isdisjoint(flags)

    def values(self, word: str) -> list[str]:
        return [value for item, value in self._options if item == word]

    async def compile(self) -> None:
        """Read the pattern, which may be the first operand or in files. Raises `ValueError` and `re.error`."""
        patterns = [line for value in self.values("regexp") for line in value.split("\n")]
        for operand in self.values("file"):
            patterns += await self.call.lines(operand)
        if not self.has("regexp", "file", "files"):
            if not self.operands:
                raise ValueError("no pattern: usage: grep [OPTION]... PATTERNS [FILE]...")
            patterns = self.operands.pop(0).split("\n")
        syntax = next((syntax for syntax in _SYNTAXES.values() if self.has(syntax)), _SYNTAXES[self.call.name])
        if syntax == "fixed-strings":
            patterns = [re.escape(pattern) for pattern in patterns]
        elif syntax == "perl-regexp":
            patterns = [with_kept(with_classes(pattern)) for pattern in patterns]
        else:
            patterns = [from_posix(pattern, extended=syntax == "extended-regexp") for pattern in patterns]
        whole = "|".join(f"(?:{pattern})" for pattern in patterns) if len(patterns) > 1 else "".join(patterns)
        if self.has("line-regexp"):
            whole = f"^(?:{whole})$"
        elif self.has("word-regexp"):
            whole = rf"(?<!\w)(?:{whole})(?!\w)"
        ignores_case = self.has("ignore-case") or (self.has("smart-case") and not any(map(str.isupper, whole)))
        pattern = re.compile(whole if patterns else "(?!)", re.IGNORECASE if ignores_case else 0)
        numbers = {
            word: min(int(value), _MOST) for word, value in self._options if word.endswith(("context", "max-count"))
        }
        if number := "".join(word for word, _ in self._options if word.isdigit()):  # such as `-2` and `-rn12`
            numbers["context"] = min(int(number), _MOST)
        only = self.has("only-matching") and (self.is_rg or not self.has("count"))
        near = [numbers.get(word, numbers.get("context", 0)) for word in ("before-context", "after-context")]
        before, after = (0, 0) if only else near
        self.style = Style(compile_query(pattern), False, self.has("line-number"), only, before, after)
        self.most = numbers.get("max-count")
        if self.most != 0 and self.has("quiet", "files-with-matches", "files-without-match"):
            self.most = 1  # nothing of a file matters after its first line

    def watch(self, lines: Iterable[Line]) -> Iterator[Line]:
        for line in lines:
            self.has_selected = True
            yield line

    def rows(self, targets: list[_Target]) -> Iterator[str]:
        """What is printed."""
        selected = self.watch(line for target in targets for line in target.select(self))
        if self.has("files"):
            self.has_selected = bool(targets)
            yield from (name for target in targets for name in target.names())
        elif self.has("quiet"):
            next(selected, None)
        elif self.has("files-with-matches"):
            yield from (name for name, _ in count_lines(selected, self.style))
        elif self.has("count", "files-without-match"):
            for target in targets:
                counted = count_lines(self.watch(target.select(self)), self.style)
                for name, count in (dict.fromkeys(target.names(), 0) | dict(counted)).items():
                    if self.has("files-without-match"):
                        yield from [] if count else [name]
                    elif count or not self.is_rg:
                        yield f"{name}:{count}" if self.style.has_names else str(count)
        elif self.has("only-matching") and self.has("invert-match") and not self.is_rg:
            for _ in selected:  # grep prints no line that it selects
                pass
        else:
            yield from format_lines(selected, self.style)

    def selects(self, path: str) -> bool:
        """Whether a file below a folder, given its path in it, is to be searched."""
        *above, name = path.split("/")
        if self.is_rg:
            hides = not self.has("hidden", "unrestricted")
            return self._globs.select(path) and not (hides and any(part[:1] == "." for part in [*above, name]))
        include = self.values("include")
        return (
            (not include or any(fnmatchcase(name, glob) for glob in include))
            and not any(fnmatchcase(name, glob) for glob in self.values("exclude"))
            and not any(self.skips(folder) for folder in above)
        )

    def skips(self, folder: str) -> bool:
        """Whether `--exclude-dir` leaves out a folder, by its name."""
        name = folder.rpartition("/")[2]
        return any(fnmatchcase(name, glob.rstrip("/")) for glob in self.values("exclude-dir"))

    @cached_property
    def _globs(self) -> Globs:
        types = [f"*.{{{_TYPES.get(item, item)}}}" for item in self.values("type")]
        return Globs(self.values("glob") + types)
