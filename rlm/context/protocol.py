"""Optional methods of a context, and functions that call them if it has them (duck typing).

A `str`, a list or a dict has none of them, and works as well. A context may have any of these:

    thinking()          a context manager that is entered while a run waits for a model: the time to read ahead. It
                        nests, and several threads may enter it at once
    hint(delta)         is called with each piece of a reply as it streams, so that the context can fetch what the
                        code in it will read
    repl_namespace()    returns an object with `.names`, a dict of names for the namespace, and
                        `.transform(tree) -> tree`, a pass over each cell's `ast.Module`. Optional:
                        `.ran(namespace)` is called with the names after each cell
    repl_tools()        returns functions by name, which the model can call as custom tools; they run in this process
    serve()             returns a server that reads the context for a worker, which has no keys:
                        `.answer(request)`, bytes to bytes, may wait, and many threads may call it;
                        `.ready(request)` tells whether it can answer at once;
                        `.bad_request`: the exception type that both raise for a request that no honest worker sends;
                        `.entry` is "module:function": a worker imports the function and calls it with a function
                        that sends requests, bytes to bytes; it returns the worker's context;
                        optional `.modules` are names of modules that a worker imports for it; `.close()`
    describe()          for a lazy list or mapping: returns a dict for the model with `kind` ("lazy list" or
                        "lazy dict"), `sentence` ("a list of 1,000 documents, ...") and `access`, how to read it
    stats               `.gets`, `.bytes_fetched`, `.hits`, `.wait_seconds`: the cost of reading so far; and
                        `.prefetch.gets`, `.prefetch.bytes_fetched`: the part of it that was read ahead
    reads_since(mark)   returns `(mark, ranges)`: a new mark, and the half-open character ranges `(start, stop)` that
                        were read since an earlier one; None as `mark` gives no ranges. Adjacent and repeated ranges
                        may be merged
    handed_since(mark)  the same for the pieces that code received: slices, lines of hits, matches, passages, but
                        not text that a search or a pass only looked at. They are the sources of an answer
    outline()           returns an object whose str is an overview of a few dozen lines, for the opening message
    view(start, stop)   returns the part `[start, stop)` with `.lines`, whose `len` reads next to no text: for line
                        numbers of sources
    documents           `.at(character)` returns the document there, with its `.name` and `.start`, or None. The
                        attribute raises ValueError for a part of a context
    text                of a list or mapping of documents: one text of all of them, for sources
    generation          the number of the text's generation, for sources
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class NamespaceKit(Protocol):
    """The result of `repl_namespace()`."""

    @property
    def names(self) -> Mapping[str, Any]: ...

    def transform(self, tree: ast.Module) -> ast.Module: ...


class ContextServer(Protocol):
    """The result of `serve()`."""

    @property
    def entry(self) -> str: ...

    @property
    def bad_request(self) -> type[Exception]: ...

    def answer(self, request: bytes) -> bytes: ...

    def ready(self, request: bytes) -> bool: ...

    def close(self) -> None: ...


def make_server(context: object) -> ContextServer | None:
    """The context's server for workers, or None."""
    make = _method(context, "serve")
    return make() if make else None


def thinking(context: object) -> AbstractContextManager[object]:
    """The context's `thinking()`, or a context manager that does nothing."""
    enter = _method(context, "thinking")
    return enter() if enter else nullcontext()


def hint(context: object) -> Callable[[str], object]:
    """The function to call with each piece of a reply; without a `hint` it does nothing."""
    return _method(context, "hint") or (lambda delta: None)


def namespace_kit(context: object) -> NamespaceKit | None:
    """The context's `repl_namespace()`, or None."""
    make = _method(context, "repl_namespace")
    return make() if make else None


def passes_for_str(value: object) -> bool:
    """Whether a value can stand in for a `str` in cells: its type has `encode` and `repl_namespace`."""
    return callable(getattr(type(value), "encode", None)) and callable(getattr(type(value), "repl_namespace", None))


def whole_text(context: object) -> Any:
    """The context itself if it is a text, or the text of its documents; None if there is neither."""
    for text in (context, getattr(context, "text", None)):
        if isinstance(text, str) or passes_for_str(text):
            return text
    return None


def repl_tools(context: object) -> Mapping[str, Callable[..., object]]:
    """The functions that the context offers, by name."""
    make = _method(context, "repl_tools")
    return make() if make else {}


def outline(context: object) -> str:
    """The context's outline as text; empty if it has none."""
    make = _method(context, "outline")
    return str(make()) if make else ""


def _method(context: object, name: str) -> Callable[..., Any] | None:
    method = getattr(context, name, None)
    return method if callable(method) else None


def reading_cost(context: object) -> dict[str, float] | None:
    """The cost of reading so far: `gets`, `bytes`, `hits`, `ms` (milliseconds waited).

    None if the context does not count.
    """
    stats = getattr(context, "stats", None)
    cost = _numbers(stats, {"gets": "gets", "bytes": "bytes_fetched", "hits": "hits", "ms": "wait_seconds"})
    if "ms" in cost:
        cost["ms"] = round(1000 * cost["ms"], 3)
    return cost or None


def read_ahead_cost(context: object) -> dict[str, float] | None:
    """The cost of reading ahead so far: `gets`, `bytes`; None if the context does not count."""
    ahead = getattr(getattr(context, "stats", None), "prefetch", None)
    return _numbers(ahead, {"gets": "gets", "bytes": "bytes_fetched"}) or None


def _numbers(stats: object, attributes: Mapping[str, str]) -> dict[str, float]:
    """The attributes that are numbers, by the keys of `attributes`."""
    values = {key: getattr(stats, attribute, None) for key, attribute in attributes.items()}
    return {key: value for key, value in values.items() if isinstance(value, (int, float))}


def reads_since(context: object, mark: object = None) -> tuple[object, list[list[int]] | None]:
    """A new mark, and the character ranges that were read since `mark`.

    None instead of ranges if the context keeps no log.
    """
    return _since(context, "reads_since", mark)


def handed_since(context: object, mark: object = None) -> tuple[object, list[list[int]] | None]:
    """A new mark, and the ranges that code received since `mark`.

    None instead of ranges if the context keeps no log.
    """
    return _since(context, "handed_since", mark)


def _since(context: object, method: str, mark: object) -> tuple[object, list[list[int]] | None]:
    ask = _method(context, method)
    if ask is None:
        return None, None
    mark, ranges = ask(mark)
    return mark, [[int(start), int(stop)] for start, stop in ranges]


def line_of(context: Any, character: int) -> int | None:
    """The number of the line with a character, from 1; None if the context does not know it."""
    if isinstance(context, str):
        return context.count("\n", 0, character) + 1
    view = _method(context, "view")
    return len(view(0, character + 1).lines) if view else None


_WEB = re.compile(r"https?://[^\s<>\"]+")
"""A URL that can be a link."""


def document_at(context: object, character: int) -> tuple[str, int] | None:
    """The name of the document with a character, and the position where it starts; None without documents."""
    _, found = _find_document(context, character)
    return None if found is None else (str(found.name), int(found.start))


def document_url(context: object, character: int) -> str | None:
    """The web address of the document with a character, from its metadata (`url`) or its name; None if it has none."""
    documents, found = _find_document(context, character)
    metadata = getattr(documents, "metadata_of", None)
    if found is None or not callable(metadata):
        return None
    url = metadata(found.number).get("url", found.name)
    return url if isinstance(url, str) and _WEB.fullmatch(url) else None


def _find_document(context: object, character: int) -> tuple[Any, Any]:
    """The documents of a context and the one at a character; None for what it lacks."""
    try:
        documents: Any = getattr(context, "documents", None)
    except ValueError:  # the context is a part of another
        return None, None
    at = getattr(documents, "at", None)
    return documents, at(character) if callable(at) else None


def document_edges(context: object, start: int, stop: int) -> Iterable[int]:
    """The characters in [start, stop) where documents begin and end."""
    try:
        documents: Any = getattr(context, "documents", None)
    except ValueError:  # the context is a part of another
        return ()
    edges = getattr(documents, "edges", None)
    return edges(start, stop) if callable(edges) else ()


def generation(context: object) -> int | None:
    """The number of the generation of a stored text; None for any other context."""
    number = getattr(context, "generation", None)
    return number if isinstance(number, int) else None


def cost_between(before: dict[str, float] | None, after: dict[str, float] | None) -> dict[str, float] | None:
    """`after` minus `before`, rounded to 3 places; None if one is unknown."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}
