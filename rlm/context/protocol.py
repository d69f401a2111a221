"""The optional methods of a context, found by duck typing.

A context may offer any of these. A `str`, a list or a dict offers none, and works as well:

    thinking()          context manager, entered while a run waits for a model, root or sub-call: time to read ahead;
                        nests, and may be entered by several threads at once
    hint(delta)         takes the reply as it streams, so that what its code will read can be fetched before it runs
    repl_namespace()    gives `.names`, a dict of names for the namespace, and `.transform(tree) -> tree`, a pass over
                        each cell's `ast.Module`; optional `.ran(namespace)` is called with the names after a cell;
                        optional `.host(values)` is called with the objects of the namespace that are the run's own
    repl_tools()        gives functions by name, for the model to call as it does custom tools; they run in this process
    serve()             gives what answers for the context to a worker that must not hold its keys: `.answer(request)`,
                        bytes to bytes, which may wait and be called by many threads; `.ready(request)`, whether an
                        answer takes no waiting; `.bad_request`, the exception type that both raise for a request that
                        no honest worker sends; `.entry`, a string "module:function" that the worker imports: the
                        function is given a way to ask, bytes to bytes, and gives the worker's context; optional
                        `.modules`, names of modules that the worker imports for it; `.close()`
    describe()          of a list or mapping whose items lie elsewhere: a dict for the model with `kind` ("lazy list" or
                        "lazy dict"), `sentence` ("a list of 1,000 documents, ...") and `access`, how it is best read
    stats               `.gets`, `.bytes_fetched`, `.hits`, `.wait_seconds`: what reading has cost so far; and
                        `.prefetch.gets`, `.prefetch.bytes_fetched`: what was read ahead, part of those
    reads_since(mark)   gives `(mark, ranges)`: the half-open character ranges `(start, stop)` that were read since an
                        earlier `mark`, and the mark for the next question; `reads_since(None)` gives the mark alone,
                        with no ranges. For the map of what was read; adjacent and repeated ranges may be merged
    handed_since(mark)  the same of the pieces that code was given: slices, lines of hits, matches, passages; not what
                        a search looked at on its way or a pass went through. For the sources of an answer
    outline()           gives what prints as an overview of a few dozen lines, for the opening message
    view(start, stop)   gives a part with `.lines`, whose length is known without reading: for the lines of sources
    documents           `.at(character)` gives the document there, with its `.name` and `.start`, or None; raises
                        ValueError where the text is a part of a context
    text                of a list or mapping of documents: all of them as one text, for sources
    generation          the number of the text's generation, for sources
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
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
    """The context's `serve()`, or None."""
    make = getattr(context, "serve", None)
    return make() if callable(make) else None


def thinking(context: object) -> AbstractContextManager[object]:
    """The context's `thinking()`, or nothing."""
    enter = getattr(context, "thinking", None)
    return enter() if callable(enter) else nullcontext()


def hint(context: object) -> Callable[[str], object]:
    """The context's `hint`, or a function that does nothing."""
    feed = getattr(context, "hint", None)
    return feed if callable(feed) else lambda delta: None


def namespace_kit(context: object) -> NamespaceKit | None:
    """The context's `repl_namespace()`, or None."""
    make = getattr(context, "repl_namespace", None)
    return make() if callable(make) else None


def passes_for_str(value: object) -> bool:
    """Whether code in a cell takes this for a `str`: it has its methods, and a namespace kit that makes it pass."""
    return callable(getattr(type(value), "encode", None)) and callable(getattr(type(value), "repl_namespace", None))


def whole_text(context: object) -> Any:
    """The text of a context, or the text that its documents are parts of; None if it has none."""
    for text in (context, getattr(context, "text", None)):
        if isinstance(text, str) or passes_for_str(text):
            return text
    return None


def repl_tools(context: object) -> Mapping[str, Callable[..., object]]:
    """The functions that the context offers, by name."""
    give = getattr(context, "repl_tools", None)
    return give() if callable(give) else {}


def outline(context: object) -> str:
    """The context's `outline()` as text, or nothing."""
    make = getattr(context, "outline", None)
    return str(make()) if callable(make) else ""


def reading_cost(context: object) -> dict[str, float] | None:
    """The cost of reading so far: `gets`, `bytes`, `hits`, `ms` waited; None where the context does not count."""
    stats = getattr(context, "stats", None)
    fields = {"gets": "gets", "bytes": "bytes_fetched", "hits": "hits", "ms": "wait_seconds"}
    values = {ours: getattr(stats, theirs, None) for ours, theirs in fields.items()}
    found = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    if "ms" in found:
        found["ms"] = round(1000 * found["ms"], 3)
    return found or None


def read_ahead_cost(context: object) -> dict[str, float] | None:
    """The cost of reading ahead so far: `gets`, `bytes`; None where the context does not count."""
    ahead = getattr(getattr(context, "stats", None), "prefetch", None)
    values = {"gets": getattr(ahead, "gets", None), "bytes": getattr(ahead, "bytes_fetched", None)}
    return {name: value for name, value in values.items() if isinstance(value, (int, float))} or None


def reads_since(context: object, mark: object = None) -> tuple[object, list[list[int]] | None]:
    """A mark, and the character ranges read since the given one; None for the ranges if the context has no log."""
    return _since(context, "reads_since", mark)


def handed_since(context: object, mark: object = None) -> tuple[object, list[list[int]] | None]:
    """A mark, and the pieces that code received since the given one; None for the pieces if the context has no log."""
    return _since(context, "handed_since", mark)


def _since(context: object, method: str, mark: object) -> tuple[object, list[list[int]] | None]:
    ask = getattr(context, method, None)
    if not callable(ask):
        return None, None
    mark, ranges = ask(mark)
    return mark, [[int(start), int(stop)] for start, stop in ranges]


def line_of(context: Any, character: int) -> int | None:
    """The line of a character, from 1; None if a lazy text does not know it."""
    if isinstance(context, str):
        return context.count("\n", 0, character) + 1
    view = getattr(context, "view", None)
    return len(view(0, character + 1).lines) if callable(view) else None


_WEB = re.compile(r"https?://[^\s<>\"]+")
"""An address that can be a link."""


def document_at(context: object, character: int) -> tuple[str, int] | None:
    """The name and first character of the document with a character; None if the context has no documents."""
    _, found = _find_document(context, character)
    return None if found is None else (str(found.name), int(found.start))


def document_url(context: object, character: int) -> str | None:
    """The address on the web of that document: the `url` of its metadata, or a name that is one; None for others."""
    documents, found = _find_document(context, character)
    metadata = getattr(documents, "metadata_of", None)
    if found is None or not callable(metadata):
        return None
    url = metadata(found.number).get("url", found.name)
    return url if isinstance(url, str) and _WEB.fullmatch(url) else None


def _find_document(context: object, character: int) -> tuple[Any, Any]:
    try:
        documents: Any = getattr(context, "documents", None)
    except ValueError:  # of a part of a context
        return None, None
    at = getattr(documents, "at", None)
    return documents, at(character) if callable(at) else None


def generation(context: object) -> int | None:
    """The generation of a text in storage; None for any other."""
    number = getattr(context, "generation", None)
    return number if isinstance(number, int) else None


def cost_between(before: dict[str, float] | None, after: dict[str, float] | None) -> dict[str, float] | None:
    """The difference of two costs; None if either is not known."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}
