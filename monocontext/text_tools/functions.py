"""The tools over one text. Models see their docstrings and annotations, in MCP and in agent frameworks.

Frameworks read annotations as objects, so this module does not import `annotations`. Most of them parse descriptions of
parameters from sections named `Args`.
"""

import inspect
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from functools import partial
from typing import Any, Unpack

from monocontext.engine.open import OpenOptions
from monocontext.errors import InvalidParameters, NotAContext, NotFound, ToolRefusal
from monocontext.globs import Globs
from monocontext.memory.memory import Memory
from monocontext.options import validate_options
from monocontext.stores.protocol import Store
from monocontext.text.documents.by_name import Documents, UnknownDocument
from monocontext.text.monocontext import Monocontext
from monocontext.text.search import ranked
from monocontext.text_tools import search_process
from monocontext.text_tools.arguments import check_arguments
from monocontext.text_tools.keep import KEPT, KeepTool
from monocontext.text_tools.outputs import Info, Listed, Matches, Slice, Text, ToolReply
from monocontext.text_tools.replies import (
    NOT_A_PATTERN,
    SEARCH_SECONDS,
    fit_error,
    list_reply,
    passages_reply,
    slice_reply,
)
from monocontext.text_tools.shell import Shell, folder_of

TextOrLocation = Monocontext | str | os.PathLike[str] | Store  # an open text, or what `Monocontext.open` takes

_HEAD_CHARACTERS = 500  # the length, in characters, of the head and the tail that `describe` shows
_MOST_QUERY_CHARACTERS = 10_000
"""The longest query. Parsing a longer pattern could take longer than a search may."""
_MOST_HITS = 1000  # the most hits of one `grep`
MOST_PASSAGES = 10  # the most passages of one `search`


class TextTools:
    """The tools over one text: its public methods. They raise `ToolRefusal` for arguments that a model can correct."""

    def __init__(self, text: Monocontext | Callable[[], Monocontext], name: str = "") -> None:
        """`text`: the text, or a function that returns its newest state. `name`: for `describe`, by default the URL."""
        self._text_or_function = text
        self._name = name

    @property
    def _text(self) -> Monocontext:
        text = self._text_or_function
        return text if isinstance(text, Monocontext) else text()

    def describe(self) -> ToolReply[Info]:
        """Describe the text: its size in characters, lines and documents, and how it begins and ends."""
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
        return ToolReply(json.dumps(asdict(facts), ensure_ascii=False, indent=1), facts)

    def read(
        self, start: int = 0, stop: int | None = None, unit: str = "characters", document: str = ""
    ) -> ToolReply[Slice]:
        """Read characters start to stop of the text, as a slice in Python: stop is not included, and negative numbers
        count from the end.

        A reply has at most 20,000 bytes: a longer part is cut, and its last line gives the range to continue with.

        Args:
            start: The first character of the part, or the first line, counted from 0.
            stop: The character or line after the part; null reads to the end.
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
    ) -> ToolReply[Matches]:
        """Find the lines of the text that match, as grep does, each as `document:line number:character:line`.

        Line numbers are those of the document, from 1; characters are those of the whole text, for reading on. In a
        text without documents, each is `character:line number:line`. Header lines between documents are not searched.

        Texts of many GB are fine. A search that finds too much or takes too long says where to continue.

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
        return search_process.search(
            self._text,
            pattern=pattern, ignore_case=ignore_case, fixed=fixed, max_hits=max_hits, start=first, stop=last,
        )  # fmt: skip

    def search(self, words: str, max_hits: int = 10) -> ToolReply[Matches]:
        """Find the passages of the text that match the words best, best first. Words match in other forms too.

        Use it where the exact wording is unknown; use grep where it is known.

        Args:
            words: Words in any order; "a phrase" in quotes must occur, -word must not, doc:src/* limits documents.
            max_hits: The most passages, up to 10.
        """
        check_query(words, max_hits)
        return search_words(self._text, words, max_hits)

    def list_documents(self, glob: str = "", after: str = "") -> ToolReply[Listed]:
        """List the documents of the text, one per line: the name, then its characters in the text. A list that is cut
        says how to get the rest.

        Args:
            glob: Only names that match it, such as *.{ts,tsx} or src/**; as in ripgrep -g.
            after: The name of a document; only those that follow it.
        """
        documents = self._documents()
        number = documents.number_of(after) if after else -1
        if number is None:
            raise ToolRefusal(f"after={after!r} is not the name of a document")
        try:
            select = Globs([glob] if glob else []).select
        except ValueError as error:
            raise ToolRefusal(str(error)) from None
        end = time.monotonic() + SEARCH_SECONDS
        records = (documents.table.document(index) for index in range(number + 1, documents.count))
        rows = (
            (record.name, f"{record.name}  characters {record.start} to {record.stop}" if select(record.name) else None)
            for record in records
        )
        return list_reply(
            rows,
            nothing=f"[no document matches {glob!r}]" if glob else "[no documents]",
            is_late=lambda: time.monotonic() >= end,
        )

    def outline(self) -> ToolReply[Text]:
        """Outline the text: headings, definitions, turns or log lines from its head, its tail and places between."""
        outlined = str(self._text.outline())
        return ToolReply(outlined, Text(outlined))

    def _documents(self) -> Documents[Monocontext]:
        documents = self._text._own_documents
        if documents is None:
            raise ToolRefusal("this text is not divided into documents")
        return documents


@validate_options(OpenOptions)
def tools(
    context: TextOrLocation | Mapping[str, TextOrLocation],
    *,
    shell: bool = False,
    keep: str | os.PathLike[str] | None = None,
    prefix: str = "",
    **options: Unpack[OpenOptions],
) -> list[Callable[..., str]]:
    """The tools of an agent over one text: `describe`, `read`, `grep`, `search`, `list_documents`, `outline`.

    They are plain functions with types and docstrings, which agent frameworks accept as they are. Each returns at most
    20,000 bytes of text; a cut reply ends with a line that says how to continue. An error that a model can correct,
    such as an invalid pattern, is a reply of one line that begins with `error:`. Other errors, such as a failure of the
    store, are raised. The functions are safe for use by many threads.

    - `context`: an open text, or what `Monocontext.open` takes (1 GET; it stays open as long as the functions exist);
      with `shell`, also several of these by name
    - `shell`: return one function instead, `bash(command)`: a sandboxed shell whose files are the documents, in one
      folder for each text. It needs the extra `shell`, and starts one process
    - `keep`: the URL of a memory (`Memory.open`). Adds `keep(text, name, ttl_seconds)`, which makes a document of an
      output that is too large for a prompt, and `kept_read` and `kept_grep`, or with `shell` the folder `/kept`
    - `prefix`: what the names of the functions begin with, if an agent has several texts: `"logs_"` gives `logs_grep`
    - `options`: those of `Monocontext.open`

    GETs are those of the text's methods with these names. A regular expression runs in a separate process, which is
    ended after 30 seconds. Raises `TypeError` for unknown options, and for options with an open text.
    """
    kept = KeepTool(Memory.open(keep)) if keep is not None else None
    methods: list[Callable[..., ToolReply[Any]]]
    if shell:
        methods = [_shell(context if isinstance(context, Mapping) else {"": context}, kept, options).bash]
    elif isinstance(context, Mapping):
        raise TypeError("several texts need shell=True: the other functions take one text")
    else:
        text = TextTools(_open(context, options))
        methods = [text.describe, text.read, text.grep, text.search, text.list_documents, text.outline]
    functions = [_as_function(method, prefix + method.__name__) for method in methods]
    if kept:
        functions.append(_as_function(kept.keep, f"{prefix}keep"))
    if kept and not shell:
        kept_tools = TextTools(kept.text)
        functions.append(_as_function(kept_tools.read, f"{prefix}kept_read"))
        functions.append(_as_function(kept_tools.grep, f"{prefix}kept_grep"))
    return functions


def _shell(contexts: Mapping[str, TextOrLocation], kept: KeepTool | None, options: OpenOptions) -> Shell:
    """A shell over texts and kept texts. The folder of a text is named after its key or, if that is empty, its URL."""
    texts: dict[str, Callable[[], Monocontext]] = {}
    for name, context in contexts.items():
        text = _open(context, options)
        texts[folder_of(name or text.url, texts)] = partial(_open, text, {})
    if kept:
        texts[KEPT] = kept.text
    return Shell(texts)


def _open(context: TextOrLocation, options: OpenOptions) -> Monocontext:
    if isinstance(context, Monocontext):
        if options:
            raise TypeError(f"an open text takes no options: leave out {', '.join(options)}")
        return context
    opened: Monocontext = Monocontext.open(context, **options)
    return opened


def check_query(query: str, max_hits: int) -> None:
    """Raise `ToolRefusal` if the query is too long, or `max_hits` is out of range."""
    if not 0 < max_hits <= _MOST_HITS:
        raise ToolRefusal(f"max_hits must be 1 to {_MOST_HITS}, not {max_hits}")
    if len(query) > _MOST_QUERY_CHARACTERS:
        raise ToolRefusal(f"the query must have at most {_MOST_QUERY_CHARACTERS:,} characters, not {len(query):,}")


def search_words(text: Monocontext, words: str, most: int, *, per_document: bool = False) -> ToolReply[Matches]:
    """The reply with the best passages, at most `MOST_PASSAGES`; with `per_document`, at most one of each document."""
    try:
        return passages_reply(
            ranked.search(
                text.span, words, min(most, MOST_PASSAGES), max_seconds=SEARCH_SECONDS, documents=text._own_documents,
                per_document=per_document, between=False,
            )
        )  # fmt: skip
    except ValueError as error:
        raise ToolRefusal(str(error)) from None


def _as_function(method: Callable[..., ToolReply[Any]], name: str) -> Callable[..., str]:
    """Turn a tool into a plain function. An error that the caller can correct is returned as `error: MESSAGE`."""
    signature = inspect.signature(method).replace(return_annotation=str)

    def tool(*arguments: Any, **named_arguments: Any) -> str:
        named = dict(signature.bind_partial(*arguments).arguments)
        try:
            return str(method(**check_arguments(name, method, named | named_arguments)))
        except (ToolRefusal, InvalidParameters, NotAContext, NotFound, *NOT_A_PATTERN) as error:
            return f"error: {fit_error(str(error))}"

    tool.__name__ = tool.__qualname__ = name
    tool.__doc__ = inspect.getdoc(method)
    annotations = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    tool.__annotations__ = annotations | {"return": str}
    tool.__signature__ = signature  # type: ignore[attr-defined]
    return tool


def _character_range(text: Monocontext, start: int, stop: int | None, unit: str) -> tuple[int, int]:
    """Convert a range in characters or lines to characters [first, last)."""
    if unit in ("characters", "chars"):  # models use both words
        first, last, _ = slice(start, stop).indices(len(text))
        return first, last
    if unit != "lines":
        raise ToolRefusal(f'unit must be "characters" or "lines", not {unit!r}')
    first, last, _ = slice(start, stop).indices(len(text.lines))
    return text.span.line_start(first), text.span.line_start(max(first, last))
