"""Read the first and the last characters of a text from copies in its root object, without a request."""

from __future__ import annotations

from monocontext.engine.frame import FrameText
from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, Frame
from monocontext.format.inline import read_end
from monocontext.format.manifest import ROOT_KEY, Manifest


class TextEnds:
    """The head and the tail of a text, each as a `FrameText`; empty if the root has no copy of it."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises `DamagedData` for copies that cannot belong to this text."""
        self._head, self._tail = _end(manifest, is_tail=False), _end(manifest, is_tail=True)
        self.head_stop, self.tail_start = self._head.frame.stop, self._tail.frame.start
        """The first character after the head, and the first character of the tail."""

    def within(self, start: int, stop: int) -> FrameText | None:
        """The head or tail that holds characters [start, stop), also if `start` equals `stop`; None if neither does."""
        if stop <= self.head_stop:
            return self._head
        return self._tail if start >= self.tail_start else None

    def with_newline(self, newline: int) -> FrameText | None:
        """The head or tail that holds newline number `newline` of the text, from 0; None if neither does."""
        if newline < self._head.frame.newlines:
            return self._head
        return self._tail if newline >= self._tail.frame.start_newline else None


def _end(root: Manifest, *, is_tail: bool) -> FrameText:
    """The copy of the head or tail; empty if there is none. Raises `DamagedData` if it is larger than the text."""
    data = read_end(root.tail if is_tail else root.head)
    characters, newlines = len(data.decode()), data.count(b"\n")
    if len(data) > root.text_bytes or characters > root.characters or newlines > root.newlines:
        whole, found = (root.text_bytes, root.characters, root.newlines), (len(data), characters, newlines)
        raise DamagedData(f"{ROOT_KEY}: its head or tail has {found} bytes, characters, newlines; the text {whole}")
    frame = Frame(
        number=root.frames - 1 if is_tail else 0,
        object=ROOT_KEY, offset=0, stored_bytes=0, bytes=len(data), characters=characters, newlines=newlines,
        crc32c=0, flags=ASCII if len(data) == characters else 0, codec="raw", etag=None,
        start=root.characters - characters if is_tail else 0,
        start_byte=root.text_bytes - len(data) if is_tail else 0,
        start_newline=root.newlines - newlines if is_tail else 0,
    )  # fmt: skip
    return FrameText(frame, data, is_used=True)
