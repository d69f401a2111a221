"""The commands `grep`, `egrep`, `fgrep` and `rg` over documents. They read only what search filters cannot rule out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from monocontext.format.documents import Document
from monocontext.shell.call import LeftToShell, ShellCall
from monocontext.shell.grep_query import GrepQuery
from monocontext.shell.lines import Line, ShownFile, Style, count_lines, format_lines, ranges_of, select_lines
from monocontext.shell.tree import TextFiles


async def grep(call: ShellCall) -> int:
    """Print the selected lines. Returns 0 if there are any, else 1. Raises `LeftToShell` for stdin and other files."""
    query = GrepQuery(call)
    if not query.operands and (not query.is_recursive or (query.is_rg and await call.has_input())):
        raise LeftToShell
    search = _Search(call, query)
    for operand in query.operands or [""]:
        await search.add(operand)
    for row in search.rows():
        await call.write(f"{row}\n")
    return 0 if search.has_selected else 1


@dataclass(frozen=True, slots=True)
class _Target:
    """Documents of one text that are searched together, in the order of the text."""

    files: TextFiles
    shown: dict[int, tuple[str, Document]] | None
    """The name to print and the document, by its number. None: the whole text, with `root` before each path."""
    root: str = ""

    def file_at(self, query: GrepQuery, character: int) -> ShownFile | None:
        """The file that holds a character of the text; None if no file does, or if that file is not to be searched."""
        path_and_record = self.files.path_at(character)
        if path_and_record is None:
            return None
        path, record = path_and_record
        if self.shown is not None:
            name, _ = self.shown.get(record.number, ("", record))
        else:
            name = self.root + path[1:] if query.selects(path[1:]) else ""
        return ShownFile(name, record, self.files.text) if name else None


class _Search:
    """The documents that a call searches, and the rows that it prints."""

    def __init__(self, call: ShellCall, query: GrepQuery) -> None:
        self._call, self._query = call, query
        self._targets: list[_Target] = []
        self._may_be_several = len(query.operands) > 1
        self.has_selected = False  # whether a line was selected, once all rows are taken

    async def add(self, operand: str) -> None:
        """Add what an operand names; an empty operand is the working folder. Raises `LeftToShell` outside texts."""
        call, query = self._call, self._query
        path, files_and_document = call.path(operand), call.document(operand)
        if files_and_document is not None:
            if query.is_rg or query.selects(operand.rpartition("/")[2]):
                self._add_document(operand, *files_and_document)
            return
        location, top = call.locate(path), path.rstrip("/") + "/"
        texts = [(folder, files) for folder, files in sorted(call.texts.items()) if folder.startswith(top)]
        if not query.is_recursive or not (texts or (location and call.files.exists(path))):
            raise LeftToShell
        if operand and query.skips(operand):
            return
        self._may_be_several = True
        prefix = operand.rstrip("/") + "/" if operand else ""
        if location is not None:
            self._add_folder(*location, prefix)
        elif path == "/" and call.files.read_dir("/tmp"):
            await call.complain("below /, only texts are searched: name /tmp to search it too")
        for folder, files in texts:
            name = folder.removeprefix(top)
            if not any(map(query.skips, name.split("/"))):
                self._add_folder(files, "/", f"{prefix}{name}/")

    def _add_document(self, operand: str, files: TextFiles, record: Document) -> None:
        """Add a document to the last target if it follows that in the same text; else as a new target."""
        last = self._targets[-1] if self._targets else None
        documents = last.shown if last is not None and last.files is files else None
        if documents and record.number > next(reversed(documents)):
            documents[record.number] = operand, record
        else:
            self._targets.append(_Target(files, {record.number: (operand, record)}))

    def _add_folder(self, files: TextFiles, folder: str, prefix: str) -> None:
        """Add the files below a folder. `prefix` is shown before their paths in the folder."""
        query = self._query
        # These options depend on each name, and `grep -c` also prints files without a match. Else one search does.
        needs_names = query.has("invert-match", "include", "exclude", "exclude-dir", "glob", "type")
        if folder == "/" and not needs_names and (query.is_rg or not query.has("count")):
            self._targets.append(_Target(files, None, prefix))
            return
        start = len(folder.rstrip("/")) + 1
        below = [(path[start:], record) for path, record in files.below(folder)]
        shown = {record.number: (prefix + name, record) for name, record in below if query.selects(name)}
        self._targets.append(_Target(files, shown))

    def rows(self) -> Iterator[str]:
        """Yield the rows to print, without line ends."""
        query = self._query
        has_names = query.has("with-filename") or (self._may_be_several and not query.has("no-filename"))
        style = Style(
            query.pattern, has_names=has_names, has_numbers=query.has("line-number"),
            only_matching=query.has("only-matching"), before=query.before, after=query.after,
            has_groups=query.has_groups, hides_context=query.has("only-matching") and not query.is_rg,
        )  # fmt: skip
        selected = (line for target in self._targets for line in self._select(target))
        if query.has("quiet"):
            next(selected, None)
        elif query.has("files-with-matches"):
            yield from (name for name, _ in count_lines(selected, style))
        elif query.has("count"):
            yield from self._counts(style)
        else:
            yield from format_lines(selected, style)

    def _counts(self, style: Style) -> Iterator[str]:
        for target in self._targets:
            counts = {name: 0 for name, _ in (target.shown or {}).values()}
            counts |= count_lines(self._select(target), style)
            for name, count in counts.items():
                if count or not self._query.is_rg:
                    yield f"{name}:{count}" if style.has_names else str(count)

    def _select(self, target: _Target) -> Iterator[Line]:
        text, query, shown = target.files.text, self._query, target.shown
        ranges = [(0, len(text))] if shown is None else ranges_of(record for _, record in shown.values())
        file_at, inverts = partial(target.file_at, query), query.has("invert-match")
        for line in select_lines(text, query.pattern, ranges, file_at, invert=inverts, most_per_file=query.most_lines):
            self.has_selected = True
            yield line
