"""Define the tools over one text. Their docstrings and annotations are what models see, in MCP and in each framework.

Annotations are real objects here, not strings: frameworks read them from the functions. The sections named `Args` have
the form that most frameworks take parameter descriptions from.
"""

import inspect
import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from fnmatch import fnmatchcase
from typing import Any, Unpack

from monocontext.engine.open import OpenOptions
from monocontext.errors import InvalidParameters, NotFound, ToolRefusal
from monocontext.options import validate_options
from monocontext.stores.protocol import Store
from monocontext.text.documents.by_name import Documents, UnknownDocument
from monocontext.text.monocontext import Monocontext
from monocontext.text.search import ranked
from monocontext.text_tools import search_process
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.outputs import DocumentList, Info, Matches, Outlined, Reply, Slice
from monocontext.text_tools.replies import (
    NOT_A_PATTERN,
    SEARCH_SECONDS,
    documents_reply,
    fit_error,
    passages_reply,
    search_reply,
    slice_reply,
)

_HEAD_CHARACTERS = 500
"""Shown of the head and of the tail by `describe`."""
_MOST_PATTERN = 10_000
"""Characters of a pattern. To take a longer one apart would hold the caller beyond the time of a search."""
_MOST_HITS = 1000
MOST_PASSAGES = 10


class TextTools:
    """The tools over one text. Methods without an underscore are the tools; each raises `ToolRefusal` for arguments
    that a caller can mend. `name` is how `describe` calls the text."""

    def __init__(self, text: Monocontext, name: str = "") -> None:
        self._text = text
        self._name = name

    def describe(self) -> Reply[Info]:
        """Describe the text: its size in characters, lines and documents, how it begins and ends."""
        text = self._text
        size = len(text)
        documents = text._own_documents
        facts = Info(
            context=self._name or text.url,
            url=text.url,
            generation=text.generation,
            characters=size,
            lines=len(text.lines),
            documents=documents.count if documents is not None else 0,
            head=str(text[:_HEAD_CHARACTERS]),
            tail=str(text[max(_HEAD_CHARACTERS, size - _HEAD_CHARACTERS) :]) if size > _HEAD_CHARACTERS else "",
        )
        return Reply(json.dumps(asdict(facts), ensure_ascii=False, indent=1), facts)

    def read(
        self, start: int = 0, stop: int | None = None, unit: str = "characters", document: str = ""
    ) -> Reply[Slice]:
        """Read a part of the text: characters [start, stop), negative ones count from the end, as in Python.

        At most about 20,000 bytes at once: a longer part is cut, and its last line states the range to go on with.

        Args:
            start: The first character of the part, or the first line, counted from 0.
            stop: The character or line behind the part; null reads to the end.
            unit: "characters", or "lines" to give start and stop in lines.
            document: The name of a document, to count start and stop from its beginning.
        """
        try:
            text = self._documents()[document] if document else self._text
        except UnknownDocument as error:
            raise ToolRefusal(str(error)) from None
        return slice_reply(text, *_character_range(text, start, stop, unit))

    def grep(
        self,
        pattern: str,
        ignore_case: bool = False,
        fixed: bool = False,
        max_hits: int = 50,
        start: int = 0,
        stop: int | None = None,
    ) -> Reply[Matches]:
        """Find the lines of the text that match, as grep does, each as `document:line number:character:line`.

        Line numbers are those of the document, from 1; characters are those of the whole text, for reading on. A text
        that holds no documents gives `character:line number:line`. Header lines between documents are not searched.

        Texts of many GB are fine. A search that finds too much or takes too long says from where to go on.

        Args:
            pattern: A Python regular expression; with fixed, literal text. At most 10,000 characters.
            ignore_case: Letters match in either case.
            fixed: The pattern is literal text.
            max_hits: The most lines, up to 1000.
            start: Only lines that begin at this character of the text or later.
            stop: Only lines that begin before this character; null searches to the end.
        """
        check_query(pattern, max_hits)
        first, last = _character_range(self._text, start, stop, "characters")
        search = search_process.search if search_process.may_backtrack(pattern, fixed=fixed) else search_reply
        return search(
            self._text,
            pattern=pattern, ignore_case=ignore_case, fixed=fixed, max_hits=max_hits, start=first, stop=last,
        )  # fmt: skip

    def search(self, words: str, max_hits: int = 10) -> Reply[Matches]:
        """Find the passages of the text that speak most of some words, best first. Words match in other forms too.

        Use it where the exact wording is unknown; use grep where it is known.

        Args:
            words: Words in any order; "a phrase" in quotes must occur, -word must not, doc:src/* limits documents.
            max_hits: The most passages, up to 10.
        """
        check_query(words, max_hits)
        return search_words(self._text, words, max_hits)

    def list_documents(self, glob: str = "", after: str = "") -> Reply[DocumentList]:
        """List the documents of the text, one a line: name, then characters of the text. Long lists say how to go on.

        Args:
            glob: Only names that match it, such as src/*.py; * matches slashes too.
            after: The name of a document; only those behind it.
        """
        documents = self._documents()
        number = documents.number_of(after) if after else -1
        if number is None:
            raise ToolRefusal(f"after={after!r} is the name of no document")
        end = time.monotonic() + SEARCH_SECONDS
        records = (documents.table.document(each) for each in range(number + 1, documents.count))
        return documents_reply(
            ((each, not glob or fnmatchcase(each.name, glob)) for each in records),
            nothing=f"[no document matches {glob!r}]" if glob else "[no documents]",
            is_late=lambda: time.monotonic() >= end,
        )

    def outline(self) -> Reply[Outlined]:
        """Outline the text: headings, definitions, turns or log lines out of its head, its tail and places between."""
        outlined = str(self._text.outline())
        return Reply(outlined, Outlined(outlined))

    def _documents(self) -> Documents[Monocontext]:
        documents = self._text._own_documents
        if documents is None:
            raise ToolRefusal("this text is not divided into documents")
        return documents


@validate_options(OpenOptions)
def tools(
    context: Monocontext | str | os.PathLike[str] | Store, *, prefix: str = "", **options: Unpack[OpenOptions]
) -> list[Callable[..., str]]:
    """The tools of an agent over one text: `describe`, `read`, `grep`, `search`, `list_documents`, `outline`.

    They are plain functions with types and docstrings, which agent frameworks take as they are. Each returns at most
    20,000 bytes of text; a cut answer ends in a line that says how to go on. What a model can mend, such as an invalid
    pattern, is an answer of one line that begins with `error:`; what it cannot, such as a store that is away, is
    raised. The functions are safe for use by many threads.

    - `context`: an open text, or what `Monocontext.open` takes (1 GET; it stays open while the functions live)
    - `prefix`: of the names of the functions, for an agent with several texts: `"logs_"` gives `logs_grep`
    - `options`: of `Monocontext.open`

    GETs: those of the text's methods of like names. A regular expression is searched for in a process of its own,
    which is ended after 30 seconds. Raises `TypeError` for options with an open text
    and for unknown ones.
    """
    if isinstance(context, Monocontext) and options:
        raise TypeError(f"an open text takes no options: {', '.join(options)}")
    text = context if isinstance(context, Monocontext) else Monocontext.open(context, **options)
    own = TextTools(text)
    works: tuple[Callable[..., Reply[Any]], ...] = (
        own.describe, own.read, own.grep, own.search, own.list_documents, own.outline,
    )  # fmt: skip
    return [_as_function(work, prefix + work.__name__) for work in works]


def check_query(query: str, max_hits: int) -> None:
    """Raise `ToolRefusal` for arguments that no search takes."""
    if not 0 < max_hits <= _MOST_HITS:
        raise ToolRefusal(f"max_hits is 1 to {_MOST_HITS}, not {max_hits}")
    if len(query) > _MOST_PATTERN:
        raise ToolRefusal(f"a pattern has at most {_MOST_PATTERN:,} characters, this one has {len(query):,}")


def search_words(text: Monocontext, words: str, most: int, *, per_document: bool = False) -> Reply[Matches]:
    """The best passages, at most `MOST_PASSAGES`; with `per_document` the best of each document."""
    try:
        return passages_reply(
            ranked.search(
                text.span, words, min(most, MOST_PASSAGES), None, SEARCH_SECONDS, documents=text._own_documents,
                per_document=per_document, between=False,
            )
        )  # fmt: skip
    except ValueError as error:
        raise ToolRefusal(str(error)) from None


def _as_function(work: Callable[..., Reply[Any]], name: str) -> Callable[..., str]:
    """A tool as a separate function that returns a plain `str`."""
    signature = inspect.signature(work).replace(return_annotation=str)

    def tool(*arguments: Any, **given: Any) -> str:
        named = dict(signature.bind_partial(*arguments).arguments)
        try:
            return str(work(**check_arguments(name, work, named | given)))
        except (ToolRefusal, InvalidParameters, NotFound, *NOT_A_PATTERN) as error:
            return f"error: {fit_error(str(error))}"

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = inspect.getdoc(work)
    tool.__annotations__ = {each.name: each.annotation for each in signature.parameters.values()} | {"return": str}
    tool.__signature__ = signature  # type: ignore[attr-defined]
    return tool


def _character_range(text: Monocontext, start: int, stop: int | None, unit: str) -> tuple[int, int]:
    """Characters [first, last) of a range in characters or lines."""
    if unit in ("characters", "chars"):
        first, last, _ = slice(start, stop).indices(len(text))
        return first, last
    if unit != "lines":
        raise ToolRefusal(f'unit is "characters" or "lines", not {unit!r}')
    first, last, _ = slice(start, stop).indices(len(text.lines))
    return text.span.line_start(first), text.span.line_start(max(first, last))
