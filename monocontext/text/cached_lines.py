r"""Keep the lines of the frame last used, so that `lines[i]` in a loop takes a microsecond.

Invariant: `_block` has whole lines, each of which ends at a `\n` of one frame.
"""

from __future__ import annotations

from functools import cached_property
from itertools import accumulate

from monocontext.engine.frame import FrameText
from monocontext.records import NamedTuple
from monocontext.text.source import Span, StoredSource


class _FrameLines(NamedTuple):
    """Consecutive lines that end in one frame."""

    frame: int
    first: int
    """The number of the first line in the span, from 0."""
    lines: list[str]
    starts: list[int]
    """The character of the source at which each line begins, then the end of the last one; empty without a read log."""


_NOTHING = _FrameLines(-1, 0, [], [])


class CachedLines:
    """The lines of one span by number. Safe for use by many threads: each sets `_block` in one step."""

    def __init__(self, span: Span):
        self._span = span
        self._block = _NOTHING
        self._last_frame = -1

    def get(self, line: int) -> str | None:
        r"""A line without its `\n`; None where it is not in memory and the caller must read it (at most 1 GET, for an
        index page).

        A frame in memory is split into lines at the second request for one of them. Later requests take 1 us.
        """
        source = self._span.source
        log = source.reader.log if isinstance(source, StoredSource) else None
        block = self._block
        i = line - block.first
        if not 0 <= i < len(block.lines) or (log and not block.starts):
            found = self._load(line, log is not None)
            if not isinstance(found, _FrameLines):
                return found
            block = found
            i = line - block.first
            if not 0 <= i < len(block.lines):
                return None
        if log:
            log.add(block.starts[i], block.starts[i + 1])
            self._span.log_received(block.starts[i] - self._span.start, block.starts[i + 1] - self._span.start)
        return block.lines[i]

    @property
    def block(self) -> tuple[int, list[str]]:
        """The number of the first line in memory, and the lines. No lines with a read log, which must see each read."""
        return (0, []) if self._block.starts else self._block[1:3]

    @cached_property
    def _lines_before(self) -> int:
        return self._span.lines_before

    def _load(self, line: int, is_logged: bool) -> _FrameLines | str | None:
        """All lines that end in the same frame as this line, or this line alone; None if it is not in memory."""
        span, source, block = self._span, self._span.source, self._block
        if line < 0 or not isinstance(source, StoredSource):
            return None
        newline = line + self._lines_before
        text = source.reader.cached_newline(newline)
        if text is None:
            return None
        frame = text.frame
        last, self._last_frame = self._last_frame, frame.number
        if frame.number == block.frame and (block.starts or not is_logged):
            return block
        if frame.number == last:
            self._block = block = self._split(text, is_logged)
            return block
        if newline == frame.start_newline or is_logged or frame.start < span.start or frame.stop > span.stop:
            return None
        return text.between_newlines(newline - frame.start_newline)

    def _split(self, text: FrameText, is_logged: bool) -> _FrameLines:
        span, frame = self._span, text.frame
        low, high = max(frame.start, span.start), min(frame.stop, span.stop)
        lines = text.slice(low - frame.start, high - frame.start).split("\n")
        lines.pop()  # it ends after this frame, or at the end of the text without a newline
        number = frame.start_newline + text.newlines_before(text.to_byte(low - frame.start)) - self._lines_before
        if low > span.start and lines:  # the first may begin before this frame
            low += len(lines.pop(0)) + 1
            number += 1
        starts = accumulate((len(line) + 1 for line in lines), initial=low) if is_logged else ()
        return _FrameLines(frame.number, number, lines, list(starts))
