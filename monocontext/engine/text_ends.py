"""Read the first and the last characters of a text from copies in its root object, without a request."""

from __future__ import annotations

from monocontext.engine.frame import FrameText
from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, Frame
from monocontext.format.inline import read_end
from monocontext.format.manifest import ROOT_KEY, Manifest


class TextEnds:
    """The head and the tail of a text, as far as its root has copies of them. Offsets are characters of the text."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises `DamagedData` for copies that cannot belong to this text."""
        head, tail = read_end(manifest.head), read_end(manifest.tail)
        self._head = _frame_text(head, manifest, is_tail=False) if head else None
        self._tail = _frame_text(tail, manifest, is_tail=True) if tail else None
        self.head_stop = self._head.frame.stop if self._head else 0
        """The character after the head."""
        self.tail_start = self._tail.frame.start if self._tail else manifest.characters
        """The first character of the tail."""

    def within(self, start: int, stop: int) -> FrameText | None:
        """The head or tail that holds characters [start, stop), a non-empty range; None if neither does.

        Its record is made up: no stored frame has these bounds.
        """
        if stop <= self.head_stop:
            return self._head
        return self._tail if start >= self.tail_start else None

    def line_start(self, line: int) -> int | None:
        r"""The first character after `line` newlines, at least 1; None if it is neither in the head nor in the tail."""
        for end in (self._head, self._tail):
            if end is None:
                continue
            newline = line - 1 - end.frame.start_newline
            if 0 <= newline < end.frame.newlines:
                return end.frame.start + end.nth_newline(newline) + 1
        return None

    def line_of(self, character: int) -> int | None:
        """The number of newlines before `character`; None if it is neither in the head nor in the tail."""
        for end in (self._head, self._tail):
            if end is not None and end.frame.start <= character <= end.frame.stop:
                stop_byte = end.to_byte(character - end.frame.start)
                return end.frame.start_newline + end.data.count(b"\n", 0, stop_byte)
        return None


def _frame_text(data: bytes, root: Manifest, *, is_tail: bool) -> FrameText:
    """The copy of an end as the text of a made-up frame. Raises `DamagedData` if it is larger than the whole text."""
    characters, newlines = len(data.decode()), data.count(b"\n")
    if len(data) > root.text_bytes or characters > root.characters or newlines > root.newlines:
        raise DamagedData(f"{ROOT_KEY}: the head or tail has {characters} characters, the text only {root.characters}")
    frame = Frame(
        number=root.frames - 1 if is_tail else 0,
        object=ROOT_KEY, offset=0, stored_bytes=0, bytes=len(data), characters=characters, newlines=newlines,
        crc32c=0, flags=ASCII if len(data) == characters else 0, codec="raw", etag=None,
        start=root.characters - characters if is_tail else 0,
        start_byte=root.text_bytes - len(data) if is_tail else 0,
        start_newline=root.newlines - newlines if is_tail else 0,
    )  # fmt: skip
    return FrameText(frame, data, is_used=True)
