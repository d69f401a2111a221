"""Find the lazy texts of a run, let them read ahead while it waits, and measure what code reads of them.

A context, or the value of a custom tool, is plain data, a lazy text, or a dict or list with lazy texts in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from monocontext.text.lazy_kinds import LazyContext, LazyText
from rlm.context.text_parts import text_parts

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats

_MOST_DEPTH = 10  # lazy texts are looked for in dicts and lists that are nested no deeper


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


def thinking(parts: Iterable[LazyContext]) -> AbstractContextManager[object]:
    """A context manager to enter while a run waits for a model: the time in which these texts read ahead."""
    stack = ExitStack()
    for part in parts:
        stack.enter_context(part.thinking())
    return stack


Cost = dict[str, float]
Ranges = list[list[int]]


@dataclass(slots=True)
class Reads:
    """What was read while `ReadMeter.measure` was entered. Each field is None for a context without lazy texts."""

    cost: Cost | None = None  # the cost: `gets`, `bytes`, `hits`, `ms` (milliseconds waited)
    ahead: Cost | None = None  # the part that was read ahead: `gets`, `bytes`
    ranges: Ranges | None = None  # the characters that were read, half-open; None for a context of several texts
    handed: Ranges | None = None
    """The characters that code received: slices, lines of hits, matches, passages; of several texts in a dict, they
    count in `text_parts`."""


class ReadMeter:
    """Measures what is read of the lazy texts of a run."""

    def __init__(self, context: object, parts: Iterable[LazyContext] = ()) -> None:
        """`parts`: lazy texts besides the context, such as custom tools."""
        self.parts = list({id(part): part for part in (*lazy_parts(context), *parts)}.values())  # all, each once
        self._context = context if isinstance(context, LazyContext) else None
        self._logs: list[tuple[int, Any]] = [
            (part.start, part.text)
            for part in (text_parts(context) if self.parts else ())
            if isinstance(part.text, LazyContext)
        ]
        """The texts whose characters are told, with the offsets of their first ones."""
        if self._context is not None:
            self._logs = [(0, context)]

    @contextmanager
    def measure(self) -> Iterator[Reads]:
        """Yield the reads until the context ends, when they are filled in (no GET)."""
        reads = Reads()
        if not self.parts:
            yield reads
            return
        cost, ahead = self.cost(), self._ahead()
        read = self._context.reads_since()[0] if self._context is not None else 0
        handed = [text.handed_since()[0] for _, text in self._logs]
        yield reads
        reads.cost, reads.ahead = cost_between(cost, self.cost()), cost_between(ahead, self._ahead())
        if self._context is not None:
            reads.ranges = [list(pair) for pair in self._context.reads_since(read)[1]]
        if self._logs:
            reads.handed = [
                [offset + start, offset + stop]
                for (offset, text), since in zip(self._logs, handed, strict=True)
                for start, stop in text.handed_since(since)[1]
            ]

    def cost(self) -> Cost | None:
        """The cost of reading so far."""
        if not self.parts:
            return None
        stats = self._stats()
        waited = round(1000 * sum(stat.wait_seconds for stat in stats), 3)
        return {
            "gets": sum(stat.gets for stat in stats), "bytes": sum(stat.bytes_fetched for stat in stats),
            "hits": sum(stat.hits for stat in stats), "ms": waited,
        }  # fmt: skip

    def _stats(self) -> list[Stats]:
        """The counts of all texts; views of one text share theirs."""
        return list({id(stats): stats for stats in (part.stats for part in self.parts)}.values())

    def _ahead(self) -> Cost:
        ahead = [stats.prefetch for stats in self._stats()]
        return {"gets": sum(item.gets for item in ahead), "bytes": sum(item.bytes_fetched for item in ahead)}


def cost_between(before: Cost | None, after: Cost | None) -> Cost | None:
    """`after` minus `before`, rounded to 3 places; None if one is unknown."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}
