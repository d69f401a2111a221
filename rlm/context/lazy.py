"""The lazy texts of a run: which values are lazy, and what code read of them, and at what cost.

A context, or the value of a custom tool, is plain data, a lazy text, or a dict or list with lazy texts in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from monocontext.text.lazy_kinds import LazyContext, LazyMapping, LazyText

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats
    from monocontext.text.monocontext import Monocontext

_MOST_DEPTH = 10
"""Lazy texts are looked for in dicts and lists that are nested no deeper."""


def is_lazy(value: object) -> bool:
    """Whether a value is a stored text, or a list or dict of documents, that is read where code looks."""
    return isinstance(value, LazyContext)


def is_text(value: object) -> bool:
    """Whether a value is a `str` or stands in for one."""
    return isinstance(value, (str, LazyText))


def lazy_parts(value: object, depth: int = 0) -> Iterator[LazyContext]:
    """The lazy texts in a value: the value itself, or those in its dicts and lists."""
    if isinstance(value, LazyContext):
        yield value
    elif isinstance(value, (dict, list, tuple)) and depth < _MOST_DEPTH:
        for item in value.values() if isinstance(value, dict) else value:
            yield from lazy_parts(item, depth + 1)


def lazy_text(context: object) -> Any:
    """The text in whose characters the sources of an answer count: the context itself, or the text of its documents.
    None if there is neither."""
    if is_text(context):
        return context
    return context.text if isinstance(context, (LazyMapping, LazyContext)) else None  # type: ignore[union-attr]


def thinking(parts: Iterable[LazyContext]) -> AbstractContextManager[object]:
    """A context manager to enter while a run waits for a model: the time in which these texts read ahead."""
    stack = ExitStack()
    for part in parts:
        stack.enter_context(part.thinking())
    return stack


def hint(context: object) -> Callable[[str], object]:
    """The function to call with each piece of a reply; it does nothing for a context that is no lazy text."""
    return cast("Monocontext", context).hint if is_lazy(context) and is_text(context) else lambda delta: None


def outline(context: object) -> str:
    """The outline of a lazy text; empty for any other context."""
    return str(cast("Monocontext", context).outline()) if is_lazy(context) and is_text(context) else ""


# -- the cost of reading -----------------------------------------------------------------------------------------------

Cost = dict[str, float]
Ranges = list[list[int]]


@dataclass(frozen=True, slots=True)
class ReadMark:
    """A moment of a run, from which reads are counted."""

    cost: Cost | None
    ahead: Cost | None
    read: int
    handed: int


@dataclass(frozen=True, slots=True)
class Reads:
    """What happened since a mark. All is None for a context without lazy texts."""

    cost: Cost | None
    """The cost: `gets`, `bytes`, `hits`, `ms` (milliseconds waited)."""
    ahead: Cost | None
    """The part that was read ahead: `gets`, `bytes`."""
    ranges: Ranges | None
    """The characters that were read, half-open; None for a context of several texts."""
    handed: Ranges | None
    """The characters that code received: slices, lines of hits, matches, passages; None for several texts."""


class ReadMeter:
    """Measures what is read of the lazy texts of a run."""

    def __init__(self, context: object, parts: Iterable[LazyContext] = ()) -> None:
        """`parts`: lazy texts besides the context, such as custom tools."""
        self.parts = list({id(part): part for part in (*lazy_parts(context), *parts)}.values())
        """All lazy texts, each once."""
        self._context = context if isinstance(context, LazyContext) else None

    def mark(self) -> ReadMark:
        """Begin to count here (no GET). The first mark starts the logs of reads."""
        read, handed = (self._context.reads_since()[0], self._context.handed_since()[0]) if self._context else (0, 0)
        return ReadMark(self.cost(), self._ahead(), read, handed)

    def since(self, mark: ReadMark) -> Reads:
        """The reads since a mark (no GET)."""
        cost, ahead = cost_between(mark.cost, self.cost()), cost_between(mark.ahead, self._ahead())
        if self._context is None:
            return Reads(cost, ahead, None, None)
        _, read = self._context.reads_since(mark.read)
        _, handed = self._context.handed_since(mark.handed)
        return Reads(cost, ahead, [list(pair) for pair in read], [list(pair) for pair in handed])

    def cost(self) -> Cost | None:
        """The cost of reading so far."""
        if not self.parts:
            return None
        stats = self._stats()
        waited = round(1000 * sum(each.wait_seconds for each in stats), 3)
        return {
            "gets": sum(each.gets for each in stats), "bytes": sum(each.bytes_fetched for each in stats),
            "hits": sum(each.hits for each in stats), "ms": waited,
        }  # fmt: skip

    def _stats(self) -> list[Stats]:
        """The counts of all texts; views of one text share theirs."""
        return list({id(stats): stats for stats in (part.stats for part in self.parts)}.values())

    def _ahead(self) -> Cost | None:
        if not self.parts:
            return None
        ahead = [stats.prefetch for stats in self._stats()]
        return {"gets": sum(each.gets for each in ahead), "bytes": sum(each.bytes_fetched for each in ahead)}


def cost_between(before: Cost | None, after: Cost | None) -> Cost | None:
    """`after` minus `before`, rounded to 3 places; None if one is unknown."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}


# -- places in a text --------------------------------------------------------------------------------------------------

_WEB = re.compile(r"https?://[^\s<>\"]+")
"""A URL that can be a link."""


def line_of(text: str | Monocontext, character: int) -> int:
    """The number of the line with a character, from 1."""
    return text.count("\n", 0, character) + 1 if isinstance(text, str) else len(text.view(0, character + 1).lines)


def document_at(text: str | Monocontext, character: int) -> tuple[str, int] | None:
    """The name of the document with a character, and the position where it starts; None without documents."""
    document = None if (documents := _documents(text)) is None else documents.at(character)
    return None if document is None else (str(document.name), int(document.start))


def document_url(text: str | Monocontext, character: int) -> str | None:
    """The web address of the document with a character, from its metadata (`url`) or its name; None if it has none."""
    if (documents := _documents(text)) is None or (document := documents.at(character)) is None:
        return None
    url = documents.metadata_of(document.number).get("url", document.name)
    return url if isinstance(url, str) and _WEB.fullmatch(url) else None


def document_edges(text: str | Monocontext, start: int, stop: int) -> Iterable[int]:
    """The characters in [start, stop) where documents begin and end."""
    return () if (documents := _documents(text)) is None else documents.edges(start, stop)


def _documents(text: str | Monocontext) -> Any:
    """The documents of a text; None for a `str`, and for a text that is a part of another or derived from one."""
    try:
        return None if isinstance(text, str) else text.documents
    except ValueError:
        return None
