r"""Address a text by line: `lines[i]`, `lines[a:b]`, iteration. Items and slices keep their line ends."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, Protocol, SupportsIndex, cast, overload

from monocontext.errors import ContextTooLarge
from monocontext.text.source import Span


class LineReader(Protocol):
    """A source of lines: a text (`TextLines`), or a context that DeepRecurse wrote."""

    @property
    def lines(self) -> int: ...

    def read(self, start: int, stop: int) -> str:
        """Lines [start, stop) joined."""
        ...

    def iterate(self, start: int, stop: int, *, reverse: bool = False) -> Iterator[str]:
        """Lines [start, stop) one by one."""
        ...

    @property
    def limit(self) -> int:
        """The most characters that are returned as one `str`."""
        ...

    @property
    def owner(self) -> Any:
        """The context to which the lines belong, with `stats`, `close()`, `url` and `refresh()`."""
        ...


class LineView(Sequence[str]):
    r"""The lines of a text. `len` counts lines; `lines[a:b]` is the text of lines a to b, a `str` up to the limit.

    A line ends with `\n`, which is part of it; the last line may have none. An item or slice costs up to 2 GETs for
    index pages, plus the GETs of `context[a:b]`.
    """

    __slots__ = ("_reader",)

    def __init__(self, reader: LineReader):
        self._reader = reader

    def __len__(self) -> int:
        return self._reader.lines

    @overload
    def __getitem__(self, key: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, key: slice) -> str: ...
    def __getitem__(self, key: SupportsIndex | slice) -> str:
        size = len(self)
        if isinstance(key, slice):
            start, stop, step = key.indices(size)
            if step == 1:
                return self._reader.read(start, stop) if stop > start else ""
            chosen = range(start, stop, step)
            if not chosen:
                return ""
            low, high = min(chosen[0], chosen[-1]), max(chosen[0], chosen[-1]) + 1
            return "".join(_lines_with_step(self._reader, low, high, chosen))
        if not hasattr(key, "__index__"):
            raise TypeError(f"line numbers must be integers or slices, not {type(key).__name__}")
        index = key.__index__()
        if not -size <= index < size:
            raise IndexError(f"line {index} is out of range: the text has {size:,} lines")
        return self._reader.read(index % size, index % size + 1)

    def __iter__(self) -> Iterator[str]:
        return self._reader.iterate(0, len(self))

    def __reversed__(self) -> Iterator[str]:
        return self._reader.iterate(0, len(self), reverse=True)

    def __repr__(self) -> str:
        return f"<Lines: {len(self):,} lines of {self.url or 'a text'}; lines[i] and lines[a:b] are text>"

    url = property(attrgetter("_reader.owner.url"))
    stats = property(attrgetter("_reader.owner.stats"))

    def refresh(self) -> LineView:
        """Move to the newest generation and return this view (GETs: as `Monocontext.refresh`)."""
        self._reader.owner.refresh()
        return self

    def close(self) -> None:
        self._reader.owner.close()

    def __enter__(self) -> LineView:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class TextLines:
    r"""The lines of a text, located by the counts of `\n` in its index."""

    def __init__(self, owner: Any, limit: int):
        """`owner` is the text, a `Monocontext`."""
        self.owner = owner
        self.limit = limit

    @property
    def lines(self) -> int:
        span: Span = self.owner.span
        newlines = span.newlines
        if span.is_whole and span.source.final_newline is not None:
            has_open_line = len(span) > 0 and not span.source.final_newline
        else:
            has_open_line = span.line_start(newlines) < len(span)
        return newlines + has_open_line

    def read(self, start: int, stop: int) -> str:
        span: Span = self.owner.span
        return cast(str, self.owner[span.line_start(start) : span.line_start(stop)])

    def iterate(self, start: int, stop: int, *, reverse: bool = False) -> Iterator[str]:
        span: Span = self.owner.span
        texts = span.texts(span.line_start(start), span.line_start(stop), reverse=reverse)
        return _lines_backward(texts) if reverse else _lines_forward(texts)


def _lines_with_step(reader: LineReader, low: int, high: int, chosen: range) -> Iterator[str]:
    """The lines of the range `chosen`, in its order, all in [low, high). Raises `ContextTooLarge` above the limit."""
    reverse, step = chosen.step < 0, min(abs(chosen.step), sys.maxsize)
    size = 0
    for line in islice(reader.iterate(low, high, reverse=reverse), 0, None, step):
        size += len(line)
        if size > reader.limit:
            raise ContextTooLarge(
                f"lines with step {chosen.step} would make more than the limit of {reader.limit:,} characters "
                f"(materialize_limit): iterate over .lines, or take lines[a:b] first"
            )
        yield line


def _lines_forward(texts: Iterable[str]) -> Iterator[str]:
    rest: list[str] = []  # the pieces of a line that is not yet complete
    for text in texts:
        *lines, last = text.split("\n")
        for line in lines:
            if rest:
                line = "".join([*rest, line])
                rest = []
            yield line + "\n"
        if last:
            rest.append(last)
    if rest:
        yield "".join(rest)


def _lines_backward(texts: Iterable[str]) -> Iterator[str]:
    rest = ""  # the beginning of a line that is not yet complete
    for text in texts:
        *lines, last = (text + rest).split("\n")
        if not lines:
            rest = last
            continue
        if last:
            yield last
        for line in reversed(lines[1:]):
            yield line + "\n"
        rest = lines[0] + "\n"
    if rest:
        yield rest
