"""`TextBuffer`: reads a text forward in windows of any size, each character once."""

from __future__ import annotations

from typing import Any

from monocontext.engine.candidates import Candidates
from monocontext.format.filters.query import Literal
from monocontext.text.source import Span
from monocontext.text.windows import Window


class TextBuffer:
    """Characters [start, stop) of a text, as windows that move forward. It keeps the characters of the last window,
    which a wider or later one may need again. Offsets are those of the span."""

    def __init__(
        self,
        span: Span,
        start: int,
        stop: int,
        *,
        eager: bool = False,
        frames: Candidates | None = None,
        literal: Literal | None = None,
        searches: bool = False,
    ):
        """`frames`: read these ahead, and others only when a window needs them. `literal`: the argument of `skip`.
        `searches`: the text is searched for one match, rather than read to the end."""
        self._span = span
        self._stop = stop
        needles = (literal.text,) if literal else () if searches else None
        self._pieces = span.windows(start, stop, eager=eager, only=frames, needles=needles)
        """The text, in pieces of about a frame."""
        self._piece: Window | None = None
        """The last of the pieces that were read. The buffer does not go beyond it."""
        self._piece_text = ""
        """Its text, decoded when it is needed."""
        self._buffer = ""
        self._start = start
        """The character at which the buffer begins."""

    def window(self, start: int, size: int) -> str:
        """`size` characters from `start`, fewer at the end of the text. `start` must not decrease from call to call."""
        offset = start - self._start
        if offset + size <= len(self._buffer):
            return self._buffer[offset : offset + size]
        parts = [self._buffer[offset:]]
        at = start + len(parts[0])
        end = min(start + size, self._stop)
        while at < end and (part := self._read(at, end)):
            parts.append(part)
            at += len(part)
        self._buffer, self._start = "".join(parts), start
        return self._buffer

    def stretch(self, start: int, least: int, most: int) -> tuple[int, str]:
        """A window, and the character at which it begins: `start` or before.

        It has at least `least` characters from `start` on, fewer at the end of the text. If one piece has these, the
        window is that whole piece, without a copy. Where pieces are short, it has `most` characters.
        """
        if start + least > self._start + len(self._buffer):
            shift, piece = self._span.start, self._advance(start)
            if piece is None or piece.stop - piece.start < 2 * least:
                return start, self.window(start, most)
            if piece.start - shift > start or not start + least <= piece.stop - shift <= self._stop:
                return start, self.window(start, least)
            self._piece_text = self._piece_text or piece.text
            self._buffer, self._start = self._piece_text, piece.start - shift
        return self._start, self._buffer

    def skip(self, at: int, literal: Literal) -> int:
        """The character at or after `at` at which the next match that contains the literal may begin.

        The text before it is not decoded: a search of its bytes takes a third of the time.
        """
        needle, shift = literal.text, self._span.start
        end = self._start + len(self._buffer)
        if self._buffer.find(needle, max(at + literal.earliest - self._start, 0)) >= 0:
            return at
        if self._piece is None:
            self._next_piece()
        piece = self._piece
        if piece is not None and piece.start - shift > end:
            return at  # the text from the buffer to this piece is not read yet, and the literal may begin there
        first = 0 if piece is None else max(piece.start - shift - self._start, 0)
        if piece is not None and piece.stop - shift == end:  # the buffer has all of it, which was searched above
            first, piece = len(self._buffer), next(self._pieces, None)
        carry: Any = self._buffer[max(first - len(needle) + 1, 0) : first]
        found: int | None = None
        while piece is not None:
            found, carry = piece.earliest(needle, carry, at + literal.earliest + shift)
            if found is not None:
                break
            piece = next(self._pieces, None)
        if piece is not self._piece:
            self._piece, self._piece_text = piece, ""
        return self._stop if found is None else max(at, found - shift - literal.latest)

    def assume_character(self, start: int, character: str) -> None:
        """Assume this character at `start`, just before the next window, instead of reading it."""
        self._buffer, self._start = character, start

    def _read(self, at: int, end: int) -> str:
        """Some characters from `at` on, not beyond `end`; empty at the end of the text."""
        piece = self._advance(at)
        if piece is None:
            return "" if at >= self._stop else self._span.read(at, min(self._stop, end))
        start = piece.start - self._span.start
        if start > at:  # a match reaches into a frame that the pieces leave out
            return self._span.read(at, min(start, end))
        self._piece_text = self._piece_text or piece.text
        return self._piece_text[at - start : end - start]

    def _advance(self, at: int) -> Window | None:
        """The first piece that ends after this character."""
        while self._piece is None or self._piece.stop - self._span.start <= at:
            self._next_piece()
            if self._piece is None:
                return None
        return self._piece

    def _next_piece(self) -> None:
        self._piece, self._piece_text = next(self._pieces, None), ""
