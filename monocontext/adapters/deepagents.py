"""The documents of a text as the files of a deep agent, for its `ls`, `read_file`, `grep`, `glob` and writes.

    from deepagents import create_deep_agent
    from monocontext.adapters.deepagents import DocumentsBackend
    agent = create_deep_agent(model, backend=DocumentsBackend("s3://bucket/code"))

The document `src/a.py` is the file `/src/a.py`. Only what the agent reads is fetched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, cast

from deepagents.backends.protocol import (
    BackendProtocol,
    DeleteResult,
    EditResult,
    FileData,
    FileInfo,
    GlobResult,
    GrepMatch,
    GrepResult,
    LsResult,
    ReadResult,
    WriteResult,
)
from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob

from monocontext.errors import ContextTooLarge, InvalidParameters, MonocontextError
from monocontext.format.documents import Document
from monocontext.options import StoreOptions
from monocontext.text.monocontext import Monocontext
from monocontext.writing.upkeep.edit import delete, update

_MOST_FOUND = 1000
"""The most matches of a `grep`, or files of a `glob`. More would not fit into a model's prompt."""
_GREP_SECONDS = 15.0
"""The longest time of a `grep`. After it, the result has the matches so far."""
_READ_CHARACTERS = 1 << 20
"""The most characters of one `read`. The agent's own limit is far lower."""
_READ_ONLY = "this text is read-only: DocumentsBackend(url, writable=True) lets the agent change it"


class DocumentsBackend(BackendProtocol):  # type: ignore[misc]
    """The documents of the context at `url` as files. Safe for use by many threads.

    - `writable`: let the agent write, edit and delete documents. Each change is a new version of the text;
      `monocontext history` lists versions and `monocontext restore` returns to one. If two agents edit a file at once,
      the later edit wins
    - `store_options`: options of the store, as keywords of `Monocontext.open`

    A missing file, or a write to a read-only text, gives a result with an error. A failure of the store raises, and a
    text without documents is a `ValueError`. GETs are those of the text's methods with these names; `ls` and `glob`
    take 1 for 4,096 documents.
    """

    def __init__(self, url: str, *, writable: bool = False, **store_options: Any) -> None:
        self._url = url
        self._writable = writable
        self._store_options = cast(StoreOptions, store_options)
        self._text = Monocontext.open(url, materialize_limit=_READ_CHARACTERS, **self._store_options)
        if len(self._text) and not self._text.documents.count:
            self._text.close()
            raise ValueError(
                f"{url} is one text without documents, so it has no files: use monocontext.tools to read it"
            )

    def ls(self, path: str) -> LsResult:
        folder = _folder(path)
        entries: dict[str, FileInfo] = {}
        for record in self._records(folder):
            name, slash, _ = record.name.lstrip("/").removeprefix(folder).partition("/")
            location = f"/{folder}{name}{slash}"
            entries[location] = FileInfo(path=location, is_dir=True) if slash else _file_info(record)
        if not entries and folder:
            return LsResult(error=f"Error: no folder {path!r}")
        return LsResult(entries=[entries[entry] for entry in sorted(entries)])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        if limit <= 0:
            return ReadResult(file_data=FileData(content="", encoding="utf-8"), no_lines_requested=True)
        record = self._find(file_path)
        if record is None:
            return ReadResult(error=f"Error: File '{file_path}' not found")
        document = self._text.documents[record.name]
        total = len(document.lines)
        first = min(max(0, offset), total)
        last = min(first + limit, total)
        try:
            content = document.substring(document.span.line_start(first), document.span.line_start(last))
        except ContextTooLarge:
            too_long = f"line {first + 1:,} of {file_path} is" if last - first == 1 else f"{last - first:,} lines are"
            return ReadResult(error=f"Error: {too_long} too long for one read ({_READ_CHARACTERS:,} characters)")
        data = FileData(content=content, encoding="utf-8")
        if first == last:
            return ReadResult(file_data=data)
        following = last if last < total else None
        return ReadResult(None, data, total, start_line=first + 1, end_line=last, next_offset=following)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        record = self._find(path) if path else None
        folder = "" if record else _folder(path or "/")
        try:
            is_included = compile_grep_include_glob(glob) if glob else lambda name: True
        except InvalidGlobPatternError as error:
            return GrepResult(error=str(error))
        most = _MOST_FOUND if max_count is None else max_count
        matches: list[GrepMatch] = []
        end = time.monotonic() + _GREP_SECONDS
        start, stop = (record.start, record.stop) if record else (None, None)
        try:
            hits = self._text.grep(pattern, fixed=True, start=start, stop=stop)
        except InvalidParameters as error:
            return GrepResult(error=str(error))
        for hit in hits:
            if time.monotonic() > end:
                return GrepResult(matches=matches, truncated=True)
            name = (hit.document or "").lstrip("/")
            if hit.document is None or not name.startswith(folder) or not is_included(name.removeprefix(folder)):
                continue
            if len(matches) == most:
                return GrepResult(matches=matches, truncated=True)
            matches.append(GrepMatch(path=f"/{name}", line=hit.document_line or 1, text=hit.line))
        return GrepResult(matches=matches)

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        folder = _folder(path or "/")
        try:
            is_included = compile_grep_include_glob(pattern)
        except InvalidGlobPatternError as error:
            return GlobResult(error=str(error))
        matches: list[FileInfo] = []
        for record in self._records(folder):
            if is_included(record.name.lstrip("/").removeprefix(folder)):
                if len(matches) == _MOST_FOUND:
                    return GlobResult(matches=matches, truncated=True, truncation_reason="budget")
                matches.append(_file_info(record))
        return GlobResult(matches=matches)

    def write(self, file_path: str, content: str) -> WriteResult:
        error = self._change(file_path, content)
        return WriteResult(error=error) if error else WriteResult(path=file_path)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:
        record = self._find(file_path)
        if record is None:
            return EditResult(error=f"Error: File '{file_path}' not found")
        try:
            text = self._text.substring(record.start, record.stop)
        except ContextTooLarge:
            return EditResult(error=f"Error: {file_path} is too long to edit: {len(record):,} characters")
        occurrences = text.count(old_string) if old_string else 0
        if not occurrences:
            return EditResult(error=f"Error: String not found in file: {old_string!r}")
        if occurrences > 1 and not replace_all:
            return EditResult(
                error=f"Error: the string occurs {occurrences} times in {file_path}: give more of its lines"
            )
        error = self._change(file_path, text.replace(old_string, new_string))
        return EditResult(error=error) if error else EditResult(path=file_path, occurrences=occurrences)

    def delete(self, file_path: str) -> DeleteResult:
        if not self._writable:
            return DeleteResult(error=f"Error: {_READ_ONLY}")
        folder = _folder(file_path)
        if not folder:
            return DeleteResult(error="Error: '/' is the whole text: delete its files by name")
        record = self._find(file_path)
        names = [record.name] if record else []
        names += [item.name for item in self._records(folder)]
        if not names:
            return DeleteResult(error=f"Error: File '{file_path}' not found")
        delete(self._url, names, store_options=self._store_options)
        self._text = self._text.refresh()
        return DeleteResult(path=file_path)

    def _change(self, file_path: str, content: str) -> str | None:
        """Store a document. Returns an error message, or None."""
        name = file_path.lstrip("/")
        if not self._writable:
            return f"Error: {_READ_ONLY}"
        if not name or name.endswith("/"):
            return f"Error: {file_path!r} is not the path of a file"
        record = self._find(file_path)
        try:
            update(self._url, {record.name if record else name: content}, store_options=self._store_options)
        except MonocontextError as error:
            if isinstance(error, OSError):
                raise
            return f"Error: {error}"
        self._text = self._text.refresh()
        return None

    def _find(self, path: str) -> Document | None:
        """The document of a path, or None. Its name may begin with a slash or not."""
        documents = self._text.documents
        for name in (path.lstrip("/"), path):
            number = documents.number_of(name)
            if number is not None:
                return documents.table.document(number)
        return None

    def _records(self, folder: str) -> Iterator[Document]:
        """The documents in a folder and below it."""
        documents = self._text.documents
        return (record for record in documents.records() if record.name.lstrip("/").startswith(folder))


def _folder(path: str) -> str:
    """The prefix of the names of documents in a folder: `src/` for `/src`, empty for `/`."""
    inner = path.strip("/")
    return f"{inner}/" if inner else ""


def _file_info(document: Document) -> FileInfo:
    return FileInfo(path=f"/{document.name.lstrip('/')}", is_dir=False, size=document.bytes)
