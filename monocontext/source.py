"""What a text stands on: ranges, windows and lines. A stored text is one source; derived texts are others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from monocontext import search
from monocontext.candidates import Candidates
from monocontext.frametext import FrameText
from monocontext.needs import Literal, Need
from monocontext.search import Window


class Source(Protocol):
    """A sequence of characters that can be read anywhere. All offsets are characters, ranges lie within the text."""

    @property
    def characters(self) -> int: ...

    @property
    def final_newline(self) -> bool | None:
        """Whether the text ends in a newline, where that is known without reading."""
        ...

    def read(self, start: int, stop: int) -> str:
        """Characters [start, stop) as one `str`."""
        ...

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        """Characters [start, stop) in windows, in order or from the end backwards.

        `eager`: all will be taken. `only`: windows may leave out what is none of these `candidates`.
        """
        ...

    def candidates(self, need: Need | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        """Where matches of what has this need may begin that begin in [start, stop); None: anywhere."""
        ...

    def line_start(self, line: int) -> int:
        r"""First character after `line` newlines; the length of the text when it has fewer."""
        ...

    def line_of(self, character: int) -> int:
        r"""Number of `\n` before a character (or before the end)."""
        ...


OPEN = 1 << 62
"""The end of a span that reaches to the end of its source, wherever that is: a derived text may not know its length."""


@dataclass(frozen=True, slots=True)
class Span:
    """Characters [start, stop) of a source: what a text or a lazy list stands on. Its own offsets begin at 0."""

    source: Source
    start: int
    stop: int

    def __len__(self) -> int:
        return (self.source.characters if self.stop == OPEN else self.stop) - self.start

    @property
    def length_is_known(self) -> bool:
        """Whether `len` is free."""
        return self.stop != OPEN

    def read(self, start: int, stop: int) -> str:
        return self.source.read(self.start + start, self.start + stop)

    def windows(
        self,
        start: int = 0,
        stop: int | None = None,
        *,
        reverse: bool = False,
        eager: bool = False,
        only: Candidates | None = None,
    ) -> Iterator[Window]:
        """Windows of [start, stop), in the source's offsets."""
        size = len(self) if stop is None and reverse else stop
        end = self.stop if size is None else self.start + size
        return self.source.windows(self.start + start, end, reverse=reverse, eager=eager, only=only)

    def candidates(
        self, need: Need | None, start: int = 0, stop: int | None = None, within_line: bool = False
    ) -> Candidates | None:
        """Where matches that begin in [start, stop) may begin, in the source's offsets; None: anywhere."""
        end = self.stop if stop is None else self.start + stop
        return self.source.candidates(need, self.start + start, end, within_line)

    # -- a needle that is not empty, in [start, stop); offsets are the span's --------------------------------------

    def find(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """Its first occurrence, or -1; reads candidates up to it."""
        windows, only = self._where(needle, start, stop)
        return self._told(search.find(windows, needle), only)

    def rfind(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """Its last occurrence, or -1; reads candidates from the end down to it."""
        windows, only = self._where(needle, start, stop, reverse=True)
        return self._told(search.rfind(windows, needle), only)

    def count(self, needle: str, start: int = 0, stop: int | None = None) -> int:
        """Its occurrences that do not overlap; reads all candidates."""
        windows, only = self._where(needle, start, stop, eager=True)
        if only is None:
            return search.count(windows, needle)
        return sum(self._told(at, only) >= 0 for at in search.occurrences(windows, needle))

    def occurrences(self, needle: str, start: int = 0, stop: int | None = None) -> Iterator[int]:
        """Where they begin, left to right, not overlapping; reads as far as it is iterated."""
        windows, only = self._where(needle, start, stop)
        return (self._told(at, only) for at in search.occurrences(windows, needle))

    def occurrences_from_right(self, needle: str) -> Iterator[int]:
        """The same for the whole span, right to left."""
        windows, only = self._where(needle, 0, None, reverse=True)
        return (self._told(at, only) for at in search.occurrences_from_right(windows, needle))

    def _where(
        self, needle: str, start: int, stop: int | None, *, reverse: bool = False, eager: bool = False
    ) -> tuple[Iterator[Window], Candidates | None]:
        only = self.candidates(Literal(needle), start, stop)
        windows = self.windows(start, stop, reverse=reverse, eager=eager, only=only)
        if only is None:
            return windows, None
        return search.bridged(windows, needle, self.source.read, only.stop, reverse), only

    def _told(self, at: int, only: Candidates | None) -> int:
        if at < 0:
            return at
        if only is not None:
            only.found(at)
        elif isinstance(self.source, Stored):
            self.source.found(at)
        return at - self.start

    def texts(self, start: int = 0, stop: int | None = None, *, reverse: bool = False) -> Iterator[str]:
        """The same as `str`."""
        return (window.text for window in self.windows(start, stop, reverse=reverse))

    def between(self, start: int, stop: int) -> Span:
        """A part, in this span's offsets."""
        return Span(self.source, self.start + start, self.start + stop)

    @property
    def to_its_end(self) -> bool:
        """Whether the span ends where its source does."""
        return self.stop in (OPEN, self.source.characters)

    @property
    def newlines(self) -> int:
        return self.source.line_of(self.start + len(self)) - self.lines_before

    @property
    def lines_before(self) -> int:
        return self.source.line_of(self.start) if self.start else 0

    def line_start(self, line: int) -> int:
        r"""First character after `line` newlines; the length when there are fewer."""
        if line <= 0:
            return 0
        return min(self.source.line_start(self.lines_before + line) - self.start, len(self))


class FrameReader(Protocol):
    """The narrow side of a reader that a text needs: in process it is the engine, elsewhere a channel to one."""

    @property
    def characters(self) -> int: ...

    @property
    def final_newline(self) -> bool | None: ...

    def read(self, start: int, stop: int) -> str: ...

    def within(self, start: int, stop: int) -> FrameText | None: ...

    def peek(self, character: int) -> FrameText | None: ...

    def frames(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[FrameText]: ...

    def candidates(
        self, sought: Need | None, start: int, stop: int, within_line: bool = False
    ) -> Candidates | None: ...

    def line_start(self, line: int) -> int: ...

    def line_of(self, character: int) -> int: ...

    def all_have(self, flag: int, start: int, stop: int) -> bool: ...

    def lacking(self, flag: int, start: int, stop: int) -> Candidates | None: ...


class Stored:
    """The text behind a reader."""

    __slots__ = ("reader",)

    def __init__(self, reader: FrameReader):
        self.reader = reader

    @property
    def characters(self) -> int:
        return self.reader.characters

    @property
    def final_newline(self) -> bool | None:
        return self.reader.final_newline

    def read(self, start: int, stop: int) -> str:
        return self.reader.read(start, stop)

    def find_at_hand(self, needle: str, start: int, stop: int) -> int:
        """The first occurrence in [start, stop) if it lies in the frame of `start` and that is in memory, else -1.

        A loop of `find(x, at + 1)` takes microseconds a hit this way, where opening a stream takes a hundred.
        """
        text = self.reader.peek(start) if start < stop else None
        if text is None:
            return -1
        at = text.data.find(needle.encode("utf-8", "surrogatepass"), text.to_byte(start - text.frame.start))
        found = text.frame.start + text.to_character(at) if at >= 0 else stop
        return found if found + len(needle) <= stop else -1

    def windows(
        self, start: int, stop: int, *, reverse: bool = False, eager: bool = False, only: Candidates | None = None
    ) -> Iterator[Window]:
        for text in self.reader.frames(start, stop, reverse=reverse, eager=eager, only=only):
            if only is not None:
                only.looked_at()
            yield Window.of_frame(text, start, stop)

    def candidates(self, need: Need | None, start: int, stop: int, within_line: bool = False) -> Candidates | None:
        return self.reader.candidates(need, start, stop, within_line)

    def found(self, character: int) -> None:
        """A search without candidates found something here."""
        told = getattr(self.reader, "found", None)  # a channel to a reader elsewhere need not tell it
        if told is not None:
            told(character)

    def line_start(self, line: int) -> int:
        return self.reader.line_start(line)

    def line_of(self, character: int) -> int:
        return self.reader.line_of(character)

    def all_have(self, flag: int, start: int, stop: int) -> bool:
        """Whether every frame of a range has a flag of `index` (1 GET for each index page)."""
        return self.reader.all_have(flag, start, stop)

    def lacking(self, flag: int, start: int, stop: int) -> Candidates | None:
        """The frames of a range that do not have it, unless they are many (1 GET for each index page)."""
        return self.reader.lacking(flag, start, stop)
