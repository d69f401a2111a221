"""Give the documents of a text to a deep agent as files, for its `ls`, `read_file`, `grep` and `glob`.

    agent = deepagents.create_deep_agent(model, backend=DocumentsBackend("s3://bucket/code"))

The document `src/a.py` is the file `/src/a.py`. Only what the agent reads is fetched.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

from deepagents.backends import protocol
from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob

from monocontext.errors import ContextTooLarge
from monocontext.format.documents import Document
from monocontext.text.monocontext import Monocontext

_MOST_MATCHES = 1000  # lines of a `grep`, or files of a `glob`: more would not fit into a prompt
_GREP_SECONDS = 15.0  # after this time, a `grep` returns its matches so far at the next one
_MOST_CHARACTERS = 1 << 20  # in the result of a `read`; the agent's own limit is far lower
_READ_ONLY = "Error: this text is read-only; CompositeBackend gives an agent other places to write to"


class DocumentsBackend(protocol.BackendProtocol):  # type: ignore[misc]
    """The documents of the context at `url` as read-only files. Safe for use by many threads.

    Results have an `error` for what the agent can correct. `ls` and `glob` cost 1 GET per 4,096 documents, `read` and
    `grep` those of the text. `options`: as for `Monocontext.open`. Raises `ValueError` for a text without documents."""

    def __init__(self, url: str, **options: Any) -> None:
        self._text: Monocontext = Monocontext.open(url, **{"materialize_limit": _MOST_CHARACTERS} | options)
        if len(self._text) and not self._text.documents.count:
            self._text.close()
            raise ValueError(f"{url} has no documents, so no files: read it with monocontext.tools")

    def ls(self, path: str) -> Any:
        entries: dict[str, protocol.FileInfo] = {}
        for name, record in self._files(path):
            first, slash, _ = name.partition("/")
            location = f"/{_folder(path)}{first}{slash}"
            entries[location] = protocol.FileInfo(path=location, is_dir=bool(slash), size=0 if slash else record.bytes)
        if not entries and _folder(path):
            return protocol.LsResult(error=f"Error: no folder {path!r}")
        return protocol.LsResult(entries=[entries[location] for location in sorted(entries)])

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> Any:
        if (record := self._find(file_path)) is None:
            return protocol.ReadResult(error=f"Error: File '{file_path}' not found")
        document = self._text.view(record.start, record.stop)
        total = len(document.lines)
        first = min(max(0, offset), total)
        last = min(first + max(0, limit), total)
        try:
            content = document.substring(document.span.line_start(first), document.span.line_start(last))
        except ContextTooLarge:
            return protocol.ReadResult(error=f"Error: more than {_MOST_CHARACTERS:,} characters: ask for fewer lines")
        data, following = protocol.FileData(content=content, encoding="utf-8"), last if last < total else None
        if first == last:
            return protocol.ReadResult(file_data=data, no_lines_requested=limit <= 0)
        return protocol.ReadResult(None, data, total, start_line=first + 1, end_line=last, next_offset=following)

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> Any:
        record = self._find(path) if path else None
        folder = "" if record else _folder(path or "/")
        if folder and not any(self._files(folder)):
            return protocol.GrepResult(error=f"Error: no file or folder {path!r}")
        start, stop = (record.start, record.stop) if record else (0, len(self._text))
        most_matches = _MOST_MATCHES if max_count is None else max_count
        matches, deadline = list[protocol.GrepMatch](), time.monotonic() + _GREP_SECONDS
        try:
            is_included = compile_grep_include_glob(glob) if glob else lambda name: True
            for hit in self._text.grep(pattern, fixed=True, start=start, stop=stop):
                name = (hit.document or "").lstrip("/")
                is_wanted = hit.document and name.startswith(folder) and is_included(name.removeprefix(folder))
                if time.monotonic() > deadline or (is_wanted and len(matches) == most_matches):
                    return protocol.GrepResult(matches=matches, truncated=True)
                if is_wanted:
                    matches.append(protocol.GrepMatch(path=f"/{name}", line=hit.document_line or 1, text=hit.line))
        except (InvalidGlobPatternError, ContextTooLarge) as error:
            return protocol.GrepResult(error=f"Error: {error}")
        return protocol.GrepResult(matches=matches)

    def glob(self, pattern: str, path: str | None = None) -> Any:
        try:
            is_included = compile_grep_include_glob(pattern)
        except InvalidGlobPatternError as error:
            return protocol.GlobResult(error=f"Error: {error}")
        records = (record for name, record in self._files(path or "/") if is_included(name))
        files = ((f"/{record.name.lstrip('/')}", record.bytes) for record in islice(records, _MOST_MATCHES))
        matches = [protocol.FileInfo(path=name, is_dir=False, size=size) for name, size in files]
        more = {} if next(records, None) is None else {"truncated": True, "truncation_reason": "budget"}
        return protocol.GlobResult(matches=matches, **more)

    def write(self, file_path: str, content: str) -> Any:
        return protocol.WriteResult(error=_READ_ONLY)

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> Any:
        return protocol.EditResult(error=_READ_ONLY)

    def _find(self, path: str) -> Document | None:
        """The document at a path, with or without a slash at the beginning of its name; None if there is none."""
        documents = self._text.documents
        return next((documents.record(name) for name in (path.lstrip("/"), path) if name in documents), None)

    def _files(self, path: str) -> Iterator[tuple[str, Document]]:
        """Yield the documents below a folder, each with its path relative to the folder."""
        folder = _folder(path)
        names = ((record.name.lstrip("/"), record) for record in self._text.documents.records())
        return ((name.removeprefix(folder), record) for name, record in names if name.startswith(folder))


def _folder(path: str) -> str:
    """What the names of documents in a folder begin with: `src/` for `/src`, nothing for `/`."""
    return f"{path.strip('/')}/".lstrip("/")
