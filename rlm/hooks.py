"""What crosses between a run and its context object, found by duck typing.

A context may offer any of these; a `str`, a list or a dict offers none, and nothing is lost:

    thinking()          context manager, held while a model is being waited for, root or sub-call: time to read ahead;
                        nests, and may be entered by several threads at once
    hint(delta)         is fed the reply as it streams, so that what its code will read can be fetched before it runs
    repl_namespace()    gives `.names`, a dict of names for the namespace, and `.transform(tree) -> tree`, a pass over
                        each cell's `ast.Module`; if it has `.ran(namespace)`, that is told what names hold after a cell
    repl_tools()        gives functions by name, for the model to call as it does custom tools; they run in this process
    serve()             gives what answers for the context to a worker that must not hold its keys: `.answer(request)`,
                        bytes to bytes, which may wait, be called by many threads, and raises ValueError for what no
                        honest worker asks; `.ready(request)`, whether an answer takes no waiting; `.entry`, a string
                        "module:function" that the worker imports: the function is given a way to ask, bytes to bytes,
                        and gives the worker's context; `.close()`
    stats               `.gets`, `.bytes_fetched`, `.hits`, `.wait_seconds`: what reading has cost so far; and
                        `.prefetch.gets`, `.prefetch.bytes_fetched`: what was read ahead, part of those
    reads_since(mark)   gives `(mark, ranges)`: the half-open character ranges `(start, stop)` that were read since an
                        earlier `mark`, and the mark for the next question; `reads_since(None)` gives the mark alone,
                        with no ranges. For the map of what was read; adjacent and repeated ranges may be merged
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol


class NamespaceKit(Protocol):
    """What `repl_namespace()` gives."""

    @property
    def names(self) -> Mapping[str, Any]: ...

    def transform(self, tree: ast.Module) -> ast.Module: ...


class ContextServer(Protocol):
    """What `serve()` gives."""

    @property
    def entry(self) -> str: ...

    def answer(self, request: bytes) -> bytes: ...

    def ready(self, request: bytes) -> bool: ...

    def close(self) -> None: ...


def server(context: object) -> ContextServer | None:
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
    """Whether code in a cell takes this for a `str`: it has the methods of one, and a kit that makes it pass."""
    return callable(getattr(type(value), "encode", None)) and callable(getattr(type(value), "repl_namespace", None))


def repl_tools(context: object) -> Mapping[str, Callable[..., object]]:
    """The functions that the context brings along, by name."""
    give = getattr(context, "repl_tools", None)
    return give() if callable(give) else {}


def reading(context: object) -> dict[str, float] | None:
    """What reading has cost so far: `gets`, `bytes`, `hits`, `ms` waited; None where the context does not count."""
    stats = getattr(context, "stats", None)
    fields = {"gets": "gets", "bytes": "bytes_fetched", "hits": "hits", "ms": "wait_seconds"}
    values = {ours: getattr(stats, theirs, None) for ours, theirs in fields.items()}
    found = {name: value for name, value in values.items() if isinstance(value, (int, float))}
    if "ms" in found:
        found["ms"] = round(1000 * found["ms"], 3)
    return found or None


def read_ahead(context: object) -> dict[str, float] | None:
    """What was read before anybody asked for it, so far: `gets`, `bytes`; None where the context does not count."""
    ahead = getattr(getattr(context, "stats", None), "prefetch", None)
    values = {"gets": getattr(ahead, "gets", None), "bytes": getattr(ahead, "bytes_fetched", None)}
    return {name: value for name, value in values.items() if isinstance(value, (int, float))} or None


def reads_since(context: object, mark: object = None) -> tuple[object, list[list[int]] | None]:
    """A mark, and the character ranges read since the one given; None for them where the context does not say."""
    ask = getattr(context, "reads_since", None)
    if not callable(ask):
        return None, None
    mark, ranges = ask(mark)
    return mark, [[int(start), int(stop)] for start, stop in ranges]


def spent(before: dict[str, float] | None, after: dict[str, float] | None) -> dict[str, float] | None:
    """The difference of two readings."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}
