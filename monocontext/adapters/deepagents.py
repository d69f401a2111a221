"""The documents of a text as the files of a deep agent, for its `ls`, `read_file`, `grep`, `glob` and writes.

    from deepagents import create_deep_agent
    from monocontext.adapters.deepagents import DocumentsBackend
    agent = create_deep_agent(model, backend=DocumentsBackend("s3://bucket/code"))

The document `src/a.py` is the file `/src/a.py`. Only what the agent reads is fetched.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any

from deepagents.backends import protocol
from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob, perform_string_replacement

from monocontext.errors import ContextTooLarge, MonocontextError, ToolRefusal
from monocontext.format.documents import Document
from monocontext.text.monocontext import Monocontext
from monocontext.writing.upkeep.edit import delete, update

_MOST_FOUND = 1000
"""The most matches of a `grep`, or files of a `glob`. More would not fit into a model's prompt."""
_GREP_SECONDS = 15.0
"""The longest time of a `grep` that finds lines in other files than it may return. Then it returns what it has."""
_MOST_CHARACTERS = 1 << 20
"""The most characters that a `read` or `edit` takes. The agent's own limit is far lower."""


def _errors_as(result: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a method: an error that the agent can correct is a result. A failure of the store raises."""

    def decorate(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def run(*args: Any, **given: Any) -> Any:
            try:
                return method(*args, **given)
            except (MonocontextError, InvalidGlobPatternError) as error:
                if isinstance(error, OSError):
                    raise
                too_long = f"more than {_MOST_CHARACTERS:,} characters at once: ask for fewer lines"
                return result(error=f"Error: {too_long if isinstance(error, ContextTooLarge) else error}")

        return run

    return decorate


class DocumentsBackend(protocol.BackendProtocol):  # type: ignore[misc]
    """The documents of the context at `url` as files. Safe for use by many threads.

    - `writable`: let the agent write, edit and delete documents. Each change is a new version of the text;
      `monocontext history` lists versions and `monocontext restore` returns to one. If two agents edit a file at once,
      the later edit wins
    - `store_options`: options of the store, as keywords of `Monocontext.open`

    GETs are those of the text's methods with these names; `ls` and `glob` take 1 for 4,096 documents. Raises
    `ValueError` for a text without documents.
    """

    def __init__(self, url: str, *, writable: bool = False, **store_options: Any) -> None:
        self._url, self._writable, self._store_options = url, writable, store_options
        self._text: Monocontext = Monocontext.open(url, materialize_limit=_MOST_CHARACTERS, **store_options)
        if len(self._text) and not self._text.documents.count:
            self._text.close()
            raise ValueError(f"{url} is one text without documents, so it has no files: monocontext.tools read it")

    @_errors_as(protocol.LsResult)
    def ls(self, path: str) -> Any:
        entries: dict[str, protocol.FileInfo] = {}
        for name, record in self._files(path):
            first, slash, _ = name.partition("/")
            location = f"/{_folder(path)}{first}{slash}"
            entries[location] = protocol.FileInfo(path=location, is_dir=bool(slash), size=0 if slash else record.bytes)
        if not entries and _folder(path):
            raise ToolRefusal(f"no folder {path!r}")
        return protocol.LsResult(entries=[entries[location] for location in sorted(entries)])

    @_errors_as(protocol.ReadResult)
    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
        document = self._text.documents[self._document(file_path).name]
        total = len(document.lines)
        first = min(max(0, offset), total)
        last = min(first + max(0, limit), total)
        content = document.substring(document.span.line_start(first), document.span.line_start(last))
        data = protocol.FileData(content=content, encoding="utf-8")
        if first == last:
            return protocol.ReadResult(file_data=data, no_lines_requested=limit <= 0)
        following = last if last < total else None
        return protocol.ReadResult(None, data, total, start_line=first + 1, end_line=last, next_offset=following)

    @_errors_as(protocol.GrepResult)
    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> Any:
        record = self._find(path) if path else None
        folder = "" if record else _folder(path or "/")
        is_included = compile_grep_include_glob(glob) if glob else lambda name: True
        start, stop = (record.start, record.stop) if record else (None, None)
        most = _MOST_FOUND if max_count is None else max_count
        matches: list[protocol.GrepMatch] = []
        end = time.monotonic() + _GREP_SECONDS
        for hit in self._text.grep(pattern, fixed=True, start=start, stop=stop):
            if time.monotonic() > end:
                return protocol.GrepResult(matches=matches, truncated=True)
            name = (hit.document or "").lstrip("/")
            if hit.document is None or not name.startswith(folder) or not is_included(name.removeprefix(folder)):
                continue
            if len(matches) == most:
                return protocol.GrepResult(matches=matches, truncated=True)
            matches.append(protocol.GrepMatch(path=f"/{name}", line=hit.document_line or 1, text=hit.line))
        return protocol.GrepResult(matches=matches)

    @_errors_as(protocol.GlobResult)
    def glob(self, pattern: str, path: str | None = None) -> Any:
        is_included = compile_grep_include_glob(pattern)
        matches = [
            protocol.FileInfo(path=f"/{record.name.lstrip('/')}", is_dir=False, size=record.bytes)
            for name, record in self._files(path or "/")
            if is_included(name)
        ]
        if len(matches) <= _MOST_FOUND:
            return protocol.GlobResult(matches=matches)
        return protocol.GlobResult(matches=matches[:_MOST_FOUND], truncated=True, truncation_reason="budget")

    @_errors_as(protocol.WriteResult)
    def write(self, file_path: str, content: str) -> Any:
        if not file_path.strip("/") or file_path.endswith("/"):
            raise ToolRefusal(f"{file_path!r} is not the path of a file")
        record = self._find(file_path)
        self._change(update, {record.name if record else file_path.lstrip("/"): content})
        return protocol.WriteResult(path=file_path)

    @_errors_as(protocol.EditResult)
    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> Any:
        record = self._document(file_path)
        text = self._text.substring(record.start, record.stop)
        result = perform_string_replacement(text, old_string, new_string, replace_all)
        if isinstance(result, str):
            return protocol.EditResult(error=result)
        self._change(update, {record.name: result[0]})
        return protocol.EditResult(path=file_path, occurrences=result[1])

    @_errors_as(protocol.DeleteResult)
    def delete(self, file_path: str) -> Any:
        if not _folder(file_path):
            raise ToolRefusal("'/' is the whole text: delete its files by name")
        record = self._find(file_path)
        names = [*([record.name] if record else []), *(record.name for _, record in self._files(file_path))]
        if not names:
            raise ToolRefusal(f"File '{file_path}' not found")
        self._change(delete, names)
        return protocol.DeleteResult(path=file_path)

    def _change(self, work: Callable[..., object], what: object) -> None:
        """Change documents, and move to the version that holds the change."""
        if not self._writable:
            raise ToolRefusal("this text is read-only: DocumentsBackend(url, writable=True) lets the agent change it")
        work(self._url, what, store_options=self._store_options)
        self._text = self._text.refresh()

    def _find(self, path: str) -> Document | None:
        """The document of a path. Its name may begin with a slash or not."""
        documents = self._text.documents
        numbers = (documents.number_of(name) for name in (path.lstrip("/"), path))
        return next((documents.table.document(number) for number in numbers if number is not None), None)

    def _document(self, path: str) -> Document:
        record = self._find(path)
        if record is None:
            raise ToolRefusal(f"File '{path}' not found")
        return record

    def _files(self, path: str) -> Iterator[tuple[str, Document]]:
        """The documents in a folder and below it, with their names in it."""
        folder = _folder(path)
        for record in self._text.documents.records():
            name = record.name.lstrip("/")
            if name.startswith(folder):
                yield name.removeprefix(folder), record


def _folder(path: str) -> str:
    """The prefix of the names of documents in a folder: `src/` for `/src`, empty for `/`."""
    inner = path.strip("/")
    return f"{inner}/" if inner else ""
