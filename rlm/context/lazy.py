"""Find the lazy texts of a run, let them read ahead while the run waits, and measure what code reads of them.

A lazy text is a `Monocontext`, or its documents as a lazy list or dict. Contexts and custom tools may be lazy texts, or
dicts and lists with lazy texts in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from monocontext.text.lazy_kinds import LazyContext, LazyText
from rlm.context.text_parts import TextPart, text_parts

if TYPE_CHECKING:
    from monocontext.engine.stats import Stats


Cost = dict[str, float]  # of reading: `gets` and `bytes`; for all reads also `hits` of the cache and `ms` waited
Ranges = list[list[int]]  # half-open ranges [start, stop) of characters


def is_lazy(value: object) -> bool:
    """Whether a value is a text in storage, or its documents as a list or dict, read only where code looks."""
    return isinstance(value, LazyContext)


def is_text(value: object) -> bool:
    """Whether a value is a `str`, or a lazy text that stands in for one."""
    return isinstance(value, (str, LazyText))


def lazy_texts(value: object) -> Iterator[LazyContext]:
    """Yield the lazy texts in a value, in order: the value itself, or those in its dicts, lists and tuples."""
    remaining, seen = [value], set[int]()
    while remaining:
        item = remaining.pop()
        if isinstance(item, LazyContext):
            yield item
        elif isinstance(item, (dict, list, tuple)) and id(item) not in seen:  # a list may hold itself
            seen.add(id(item))
            remaining += reversed([*(item.values() if isinstance(item, dict) else item)])


@contextmanager
def thinking(texts: Iterable[LazyContext]) -> Iterator[None]:
    """Let texts read ahead inside the block, while a run waits for a model."""
    with ExitStack() as stack:
        for text in texts:
            stack.enter_context(text.thinking())
        yield


@dataclass(slots=True)
class Reads:
    """What was read inside a block of `ReadMeter.measure`. Each field is None for a context without lazy texts."""

    cost: Cost | None = None  # of all reads
    ahead: Cost | None = None  # of the part that was read ahead
    ranges: Ranges | None = None  # what was read, also by searches; None for a context of several texts
    handed: Ranges | None = None  # what code received, such as slices and matches, as offsets of `text_parts`


class ReadMeter:
    """Measures what is read of the lazy texts of a run."""

    def __init__(self, context: object, tool_texts: Iterable[LazyContext] = ()) -> None:
        """`tool_texts`: the lazy texts of custom tools."""
        self.texts = list({id(text): text for text in (*lazy_texts(context), *tool_texts)}.values())
        """All lazy texts, each once."""
        self._context: LazyContext | None = None
        self._logged_parts: list[TextPart] = []  # the parts of the context whose characters are recorded
        if isinstance(context, LazyContext):
            self._context, self._logged_parts = context, [TextPart(None, context, 0)]
        elif self.texts:
            self._logged_parts = [part for part in text_parts(context) if isinstance(part.text, LazyContext)]

    @contextmanager
    def measure(self) -> Iterator[Reads]:
        """Measure what is read inside the block (no GET). Yields an object whose fields are set at the block's end."""
        reads = Reads()
        if not self.texts:
            yield reads
            return
        cost_before, ahead_before = self.cost(), self._cost_ahead()
        read_mark = self._context.reads_since()[0] if self._context is not None else None
        handed_marks = [part.text.handed_since()[0] for part in self._logged_parts]
        yield reads
        reads.cost = cost_between(cost_before, self.cost())
        reads.ahead = cost_between(ahead_before, self._cost_ahead())
        if self._context is not None:
            reads.ranges = [list(pair) for pair in self._context.reads_since(read_mark)[1]]
        if self._logged_parts:
            reads.handed = [
                [part.start + start, part.start + stop]
                for part, mark in zip(self._logged_parts, handed_marks, strict=True)
                for start, stop in part.text.handed_since(mark)[1]
            ]

    def cost(self) -> Cost | None:
        """The cost of all reads since the texts were opened; None without lazy texts."""
        if not self.texts:
            return None
        stats = self._stats()
        waited_ms = round(1000 * sum(counts.wait_seconds for counts in stats), 3)
        return {
            "gets": sum(counts.gets for counts in stats), "bytes": sum(counts.bytes_fetched for counts in stats),
            "hits": sum(counts.hits for counts in stats), "ms": waited_ms,
        }  # fmt: skip

    def _stats(self) -> list[Stats]:
        """The counts of all texts. Views of one text share theirs, which are listed once."""
        return list({id(stats): stats for stats in (text.stats for text in self.texts)}.values())

    def _cost_ahead(self) -> Cost:
        ahead = [stats.prefetch for stats in self._stats()]
        return {"gets": sum(counts.gets for counts in ahead), "bytes": sum(counts.bytes_fetched for counts in ahead)}


def cost_between(before: Cost | None, after: Cost | None) -> Cost | None:
    """`after` minus `before`, rounded to 3 decimal places; None if either is None."""
    if before is None or after is None:
        return None
    return {name: round(value - before.get(name, 0), 3) for name, value in after.items()}
