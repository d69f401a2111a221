"""Answer the requests of the page of `monocontext view`. No answer needs the whole text, or is longer than 110 KB."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from monocontext.adapters.text_bytes import reader_of
from monocontext.errors import MonocontextError, ToolRefusal
from monocontext.format.documents import Document
from monocontext.format.filters.layout import FilterLayout
from monocontext.globs import Globs
from monocontext.page.assembly import load_page
from monocontext.page.serving import InvalidRequest, PageServer, Parameters
from monocontext.stores.protocol import Store
from monocontext.text.documents.by_name import UnknownDocument
from monocontext.text.monocontext import Monocontext
from monocontext.text.search import ranked
from monocontext.text_tools import search_process
from monocontext.text_tools.functions import check_query
from monocontext.text_tools.replies import NOT_A_PATTERN, fit_error
from monocontext.view.changes import document_changes
from monocontext.writing.upkeep.versions import list_versions

_SCRIPTS = ("reader", "rows", "page")
PIECE_CHARACTERS = 8_000  # the most characters of text in one answer, each up to 12 bytes in JSON
PIECE_LINES = 300  # the most lines of text in one answer
_LEAD_LINES = 8  # the most lines that are shown before the target of a jump
_LEAD_CHARACTERS = 2_000  # and the most characters
_NAME_CHARACTERS = 300  # the most characters of the name of a document or a source
_METADATA_CHARACTERS = 500  # the most characters of the metadata of a document in the text
_LISTED_METADATA_CHARACTERS = 100  # the most characters of the metadata of a document in the list of documents
_PASSAGE_CHARACTERS = 500  # the most characters of a passage in an answer of `search`
_MOST_SOURCES = 10  # sources in one answer
DOCUMENTS_PER_ANSWER = 100  # documents in one answer
MOST_VERSIONS = 300  # versions in the history
_SEARCH_SECONDS = 10.0  # a search stops after this time, and can be continued
MOST_HITS = 100  # lines in an answer of `grep`
_MOST_PASSAGES = 20  # passages in an answer of `search`

_LINE = re.compile(r"[^\n]*\n|[^\n]+")  # a line with its newline, or the rest of a text that does not end in one


class ContextFeed:
    """Answers requests about one open text, with a method for each path. Safe for use by many threads."""

    def __init__(self, text: Monocontext) -> None:
        self._text = text
        self._reader = reader_of(text)

    def state(self, _: Parameters) -> dict[str, Any]:
        """Facts about the text (no GET)."""
        text, root = self._text, self._reader.manifest
        filters = None if root.filter_directories else sum(FilterLayout(ref).size_bytes for ref in root.filters)
        return {
            "url": text.url,
            "version": text.generation,
            "created": root.created,
            "characters": len(text),
            "lines": len(text.lines),
            "bytes": root.text_bytes,
            "stored_bytes": root.stored_bytes,
            "pieces": root.frames,
            "piece_bytes": root.frame_bytes,
            "filter_bytes": filters,
            "documents": text.documents.count,
            "sources": [source[:_NAME_CHARACTERS] for source in root.sources[:_MOST_SOURCES]],
        }

    def documents(self, request: Parameters) -> dict[str, Any]:
        """Documents from number `first` on whose names match or contain `glob` (1 GET for each 4,096 examined).

        Stops after `DOCUMENTS_PER_ANSWER` or `_SEARCH_SECONDS`; then `next` is the `first` of the next request.
        """
        documents, glob = self._text.documents, request.text("glob")
        try:
            globs = Globs([glob]) if set(glob) & set("*?[{!") else None
        except ValueError as error:
            raise InvalidRequest(fit_error(str(error))) from None
        rows: list[dict[str, Any]] = []
        number, deadline = request.number_or_none("first") or 0, time.monotonic() + _SEARCH_SECONDS
        while number < documents.count and len(rows) < DOCUMENTS_PER_ANSWER and time.monotonic() < deadline:
            document = documents.table.document(number)
            if globs.select(document.name) if globs else glob in document.name:
                rows.append({
                    "number": number,
                    "name": document.name[:_NAME_CHARACTERS],
                    "characters": len(document),
                    "lines": document.newlines,
                    "metadata": self._metadata(document)[:_LISTED_METADATA_CHARACTERS],
                })  # fmt: skip
            number += 1
        return {"rows": rows, "next": number if number < documents.count else None, "count": documents.count}

    def _metadata(self, document: Document) -> str:
        """The metadata of a document in one line, with the time of its file as a date."""
        values = dict(self._text.documents.metadata_of(document.number))
        file = values.get("file")
        if isinstance(file, dict) and isinstance(file.get("modified_ns"), int):
            modified = datetime.fromtimestamp(file["modified_ns"] / 1e9, UTC)
            values["file"] = f"modified {modified:%Y-%m-%d %H:%M} UTC"
        parts = (f"{key}: {value if isinstance(value, str) else json.dumps(value)}" for key, value in values.items())
        return ", ".join(parts)[:_METADATA_CHARACTERS]

    def text(self, request: Parameters) -> dict[str, Any]:
        """A piece of the text, with lines numbered within their documents (the GETs of a slice, and at most 4 more).

        The piece is around character `at`, around line `line` of the text or of `document`, at the beginning of
        document `number` or `document`, or next to the character `after` or `before`. In the answer, `mark` is the
        requested character.
        """
        after, before = request.number_or_none("after"), request.number_or_none("before")
        size = len(self._text)
        if after is not None:
            return self._piece_from(min(after, size))
        if before is not None:
            return self._piece_before(min(before, size))
        start, mark = self._target(request)
        return self._piece_from(start, mark)

    def _target(self, request: Parameters) -> tuple[int, int]:
        """The first character of the piece to show, and the requested character, at most 8 lines after it."""
        document, line, offset = self._document(request), request.number_or_none("line"), request.number_or_none("at")
        if document is not None and line is None:
            return document.start, document.start
        size, span = len(self._text), self._text.span
        if offset is None:
            offset = self._line_start(document, 1 if line is None else line)
        elif offset >= max(size, 1):
            raise InvalidRequest(f"character {offset:,} is after the end of the text, which has {size:,} characters")
        number = span.source.line_of(offset)
        first = span.line_start(max(0, number - _LEAD_LINES))
        start = first if offset - first <= _LEAD_CHARACTERS else max(span.line_start(number), offset - _LEAD_CHARACTERS)
        return start, offset

    def _line_start(self, document: Document | None, line: int) -> int:
        """The first character of a line; lines count from 1 in the document, or for None in the text."""
        if line == 0:
            raise InvalidRequest("line must be at least 1, not 0")
        text, first_line = self._text, 0 if document is None else document.first_line
        number = line - 1 + first_line
        offset = text.span.line_start(number) if number < len(text.lines) else len(text)
        if offset >= max(len(text) if document is None else document.stop, 1):
            name = "the text" if document is None else document.name[:_NAME_CHARACTERS]
            raise InvalidRequest(f"{name} has no line {line:,}")
        return offset

    def _document(self, request: Parameters) -> Document | None:
        """The document that a request names by `number` or `document`; None if it names none."""
        name, number, documents = request.text("document"), request.number_or_none("number"), self._text.documents
        if number is not None:
            if number >= documents.count:
                raise InvalidRequest(f"no document {number:,}: the text has {documents.count:,}, numbered from 0")
            return documents.table.document(number)
        if not name:
            return None
        try:
            return documents.record(name)
        except UnknownDocument as error:
            raise InvalidRequest(fit_error(str(error))) from None

    def _piece_from(self, start: int, mark: int | None = None) -> dict[str, Any]:
        """The piece of whole lines that begins at character `start`; a line that is longer than a piece is cut."""
        size = len(self._text)
        stop = min(size, start + PIECE_CHARACTERS)
        lines = _LINE.findall(self._text.substring(start, stop))
        shown = lines[:PIECE_LINES]
        if stop < size and len(shown) == len(lines) > 1 and not shown[-1].endswith("\n"):
            shown.pop()
        return self._piece(start, shown, mark)

    def _piece_before(self, stop: int) -> dict[str, Any]:
        """The piece of whole lines that ends before character `stop`; a line that is longer than a piece is cut."""
        start = max(0, stop - PIECE_CHARACTERS)
        lines = _LINE.findall(self._text.substring(start, stop))
        shown = lines[-PIECE_LINES:]
        if start > 0 and len(shown) == len(lines) > 1:
            shown.pop(0)
        return self._piece(stop - sum(map(len, shown)), shown, None)

    def _piece(self, start: int, lines: list[str], mark: int | None) -> dict[str, Any]:
        stop, rows = start + sum(map(len, lines)), list(self._rows(start, lines))
        return {"start": start, "stop": stop, "characters": len(self._text), "mark": mark, "rows": rows}

    def _rows(self, start: int, lines: list[str]) -> Iterator[dict[str, Any]]:
        """Yield a row for each line. The first row of a document describes it; `line` is None between documents."""
        if not lines:
            return
        table = self._text.documents.table
        [number] = table.first_ending_after([start])  # of the document that holds the line, or of the next one
        offset, described = start, -1  # the number of the last document that a row describes
        for line_number, line in enumerate(lines, self._text.span.source.line_of(start) + 1):
            while number < table.count and table.document(number).stop <= offset:
                number += 1
            document = table.document(number) if number < table.count else None
            if document is not None and document.start > offset:  # the line is before it
                document = None
            row: dict[str, Any] = {"at": offset, "line": line_number, "text": line.removesuffix("\n")}
            if table.count:
                row["line"] = None if document is None else line_number - document.first_line
            if document is not None and number != described:
                described = number
                row["document"] = {
                    "number": number,
                    "name": document.name[:_NAME_CHARACTERS],
                    "characters": len(document),
                    "metadata": self._metadata(document),
                }
            yield row
            offset += len(line)

    def grep(self, request: Parameters) -> dict[str, Any]:
        """Lines that match `pattern`, from character `start` on (GETs: those of `Monocontext.grep`).

        Stops after `MOST_HITS` lines, 20,000 bytes or `_SEARCH_SECONDS`; `next` is then the next `start`.
        A regular expression runs in a separate process, which is killed if it takes too long.
        """
        pattern, fixed = request.text("pattern"), bool(request.text("fixed"))
        size = len(self._text)
        start = min(request.number_or_none("start") or 0, size)
        try:
            check_query(pattern, MOST_HITS)
            if start >= size:
                return {"hits": [], "next": None, "characters": size}
            result = search_process.search(
                self._text, pattern=pattern, ignore_case=bool(request.text("ignore_case")), fixed=fixed,
                max_hits=MOST_HITS, start=start, stop=size, seconds=_SEARCH_SECONDS,
            ).data  # fmt: skip
        except ToolRefusal as error:
            raise InvalidRequest(fit_error(str(error))) from None
        except NOT_A_PATTERN as error:
            raise InvalidRequest(f"not a regular expression: {fit_error(str(error))}") from None
        hits = [{"document": hit.document, "line": hit.line, "at": hit.offset, "text": hit.text} for hit in result.hits]
        return {"hits": hits, "next": result.next.start if result.next else None, "characters": size}

    def search(self, request: Parameters) -> dict[str, Any]:
        """The passages that match `words` best, at most `_MOST_PASSAGES` (GETs: those of `Monocontext.search`).

        Stops after `_SEARCH_SECONDS` or `bytes` of text; then `next` is the `bytes` of a longer search.
        """
        words, most_bytes = request.text("words"), request.number_or_none("bytes") or ranked.MOST_BYTES
        try:
            check_query(words, _MOST_PASSAGES)
            passages = ranked.search(
                self._text.span, words, _MOST_PASSAGES, max_bytes=most_bytes, max_seconds=_SEARCH_SECONDS,
                documents=self._text._own_documents, between=False,
            )  # fmt: skip
        except (ToolRefusal, ValueError) as error:
            raise InvalidRequest(fit_error(str(error))) from None
        hits = [
            {"document": item.document, "line": item.document_line or item.line, "at": item.start, "stop": item.stop,
             "score": round(item.score, 1), "text": item.text[:_PASSAGE_CHARACTERS]}
            for item in passages
        ]  # fmt: skip
        return {"hits": hits, "next": 4 * most_bytes if passages.note else None, "note": passages.note}

    def history(self, _: Parameters) -> dict[str, Any]:
        """The newest `MOST_VERSIONS` versions, with size and growth (1 LIST for each thousand, 1 GET for each).

        `grown` is None if the version before is not among them, as when `gc` has removed it.
        """
        roots = list_versions(self._store, newest=MOST_VERSIONS)
        rows: list[dict[str, Any]] = []
        characters, documents = (0, 0) if roots[0].generation == 1 else (None, 0)
        for root in roots:
            count = root.documents.documents if root.documents else 0
            rows.append({
                "version": root.generation,
                "created": root.created,
                "characters": root.characters,
                "documents": count,
                "grown": None if characters is None else [root.characters - characters, count - documents],
                "before": rows[-1]["version"] if rows else None,
            })  # fmt: skip
            characters, documents = root.characters, count
        return {"rows": rows[::-1], "open": self._text.generation}

    def change(self, request: Parameters) -> dict[str, Any]:
        """The documents that changed from version `before` to `version` (2 GETs, and those of `document_changes`)."""
        with (
            Monocontext.open(self._store, generation=request.number("before")) as old,
            Monocontext.open(self._store, generation=request.number("version")) as new,
        ):
            return document_changes(old, new)

    @property
    def _store(self) -> Store:
        assert self._text._opened is not None
        return self._text._opened.store


class ContextServer(PageServer):
    """Serves the page at `/`, and a path of data for each method of `ContextFeed`, such as `/documents`."""

    def __init__(self, text: Monocontext, host: str = "127.0.0.1", port: int = 0) -> None:
        """`text` must be a whole text, and stay open. Raises OSError if the address is not available."""
        feed = ContextFeed(text)
        answers = (feed.state, feed.documents, feed.text, feed.grep, feed.search, feed.history, feed.change)
        super().__init__(
            load_page("monocontext.view", _SCRIPTS), {f"/{answer.__name__}": answer for answer in answers}, host, port,
            failures=(MonocontextError, OSError),
        )  # fmt: skip
