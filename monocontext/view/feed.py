"""Answer the requests of the page of `monocontext view`. No answer needs the whole text, or is longer than 110 KB."""

from __future__ import annotations

import time
from typing import Any

from monocontext.adapters.text_bytes import reader_of
from monocontext.errors import MonocontextError, ToolRefusal
from monocontext.format.documents import Document
from monocontext.format.filters.layout import FilterLayout
from monocontext.globs import Globs
from monocontext.page.assembly import load_page
from monocontext.page.serving import InvalidRequest, PageServer, Parameters
from monocontext.text.documents.by_name import UnknownDocument
from monocontext.text.monocontext import Monocontext
from monocontext.text.search import ranked
from monocontext.text_tools import search_process
from monocontext.text_tools.functions import check_query
from monocontext.text_tools.replies import NOT_A_PATTERN, fit_error
from monocontext.view.changes import document_changes
from monocontext.view.pieces import NAME_CHARACTERS, Pieces, metadata_line
from monocontext.writing.upkeep.versions import list_versions

_SCRIPTS = ("reader", "rows", "page")
_LISTED_METADATA_CHARACTERS = 100  # the most characters of metadata in the list of documents
_PASSAGE_CHARACTERS = 500  # the most characters of a passage in an answer of `search`
_MOST_SOURCES = 10  # the most sources in an answer of `state`
DOCUMENTS_PER_ANSWER = 100  # the most documents in an answer of `documents`
MOST_VERSIONS = 300  # the most versions in an answer of `history`
_SEARCH_SECONDS = 10.0  # a search stops after this time, and can be continued
MOST_HITS = 100  # the most lines in an answer of `grep`
_MOST_PASSAGES = 20  # the most passages in an answer of `search`


class ContextFeed:
    """Answers requests about one open text, with a method for each path. Safe for use by many threads."""

    def __init__(self, text: Monocontext) -> None:
        assert text._opened is not None  # it is a text that `Monocontext.open` made
        self._text = text
        self._store = text._opened.store
        self._pieces = Pieces(text)

    def state(self, _: Parameters) -> dict[str, Any]:
        """Facts about the text (no GET)."""
        text, root = self._text, reader_of(self._text).manifest
        filters = None if root.filter_directories else sum(FilterLayout(ref).size_bytes for ref in root.filters)
        return {
            "url": text.url, "version": text.generation, "created": root.created, "characters": len(text),
            "lines": len(text.lines), "bytes": root.text_bytes, "stored_bytes": root.stored_bytes,
            "pieces": root.frames, "piece_bytes": root.frame_bytes, "filter_bytes": filters,
            "documents": text.documents.count,
            "sources": [source[:NAME_CHARACTERS] for source in root.sources[:_MOST_SOURCES]],
        }  # fmt: skip

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
            if glob in document.name or (globs and globs.select(document.name)):
                metadata = metadata_line(self._text, document)[:_LISTED_METADATA_CHARACTERS]
                rows.append({
                    "number": number, "name": document.name[:NAME_CHARACTERS], "characters": len(document),
                    "lines": document.newlines, "metadata": metadata,
                })  # fmt: skip
            number += 1
        return {"rows": rows, "next": number if number < documents.count else None, "count": documents.count}

    def text(self, request: Parameters) -> dict[str, Any]:
        """A piece of the text, with lines numbered within their documents (the GETs of a slice, and at most 4 more).

        The piece is around character `at`, around line `line` of the text or of `document`, at the beginning of
        document `number` or `document`, or next to the character `after` or `before`. In the answer, `mark` is the
        requested character.
        """
        after, before, size = request.number_or_none("after"), request.number_or_none("before"), len(self._text)
        if after is not None:
            return self._pieces.starting_at(min(after, size))
        if before is not None:
            return self._pieces.ending_at(min(before, size))
        document, line = self._document(request), request.number_or_none("line")
        if document is not None and line is None:
            return self._pieces.starting_at(document.start, mark=document.start)
        character = request.number_or_none("at")
        if character is None:
            character = self._line_start(document, 1 if line is None else line)
        elif character >= max(size, 1):
            raise InvalidRequest(f"character {character:,} is after the end of the text, which has {size:,} characters")
        return self._pieces.around(character)

    def _line_start(self, document: Document | None, line: int) -> int:
        """The first character of a line; lines count from 1 in the document or, if that is None, in the text."""
        if line == 0:
            raise InvalidRequest("line must be at least 1, not 0")
        text, first_line = self._text, 0 if document is None else document.first_line
        number = line - 1 + first_line
        offset = text.span.line_start(number) if number < len(text.lines) else len(text)
        if offset >= max(len(text) if document is None else document.stop, 1):
            name = "the text" if document is None else document.name[:NAME_CHARACTERS]
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
        """The newest `MOST_VERSIONS` versions, with size and growth (1 LIST per 1,000 versions, 1 GET per listed one).

        `grown` counts from the version `before`, and in version 1 from an empty text. In any other version it is None
        if `gc` has removed all earlier ones.
        """
        roots = list_versions(self._store, newest=MOST_VERSIONS + 1)  # the oldest is only compared with
        rows: list[dict[str, Any]] = []
        for root in roots:
            count = root.documents.documents if root.documents else 0
            previous: dict[str, Any] = rows[-1] if rows else {"version": None, "characters": 0, "documents": 0}
            growth = [root.characters - previous["characters"], count - previous["documents"]]
            rows.append({
                "version": root.generation, "created": root.created, "characters": root.characters, "documents": count,
                "grown": growth if rows or root.generation == 1 else None, "before": previous["version"],
            })  # fmt: skip
        return {"rows": rows[-MOST_VERSIONS:][::-1], "open": self._text.generation}

    def change(self, request: Parameters) -> dict[str, Any]:
        """The documents that changed from version `before` to `version` (2 GETs, and those of `document_changes`)."""
        with (
            Monocontext.open(self._store, generation=request.number("before")) as old,
            Monocontext.open(self._store, generation=request.number("version")) as new,
        ):
            return document_changes(old, new)


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
