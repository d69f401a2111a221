"""Read text from a root object: all frames of a small text, or the two ends of a larger one."""

from __future__ import annotations

from monocontext.engine.frame import FrameText
from monocontext.errors import DamagedData
from monocontext.format.index import ASCII, Frame, Page
from monocontext.format.inline import LARGEST_END_BYTES, read_end, text_in
from monocontext.format.manifest import ROOT_KEY, Manifest
from monocontext.format.refs import PageRef
from monocontext.records import replace
from monocontext.stores.protocol import Blob, CopyKeeper, RangeReader

MOST_END_CHARACTERS = LARGEST_END_BYTES
"""An end has no more characters."""


class TextInRoot:
    """A store that answers from the copies of frames in a root, and else asks the store below. Its answers are verified
    like any other; after damage, no copy is used any more. Safe for use by many threads."""

    def __init__(self, store: RangeReader, manifest: Manifest) -> None:
        self.store = store
        self._manifest = manifest
        self._stretches: dict[str, list[tuple[int, int, int]]] | None = None
        """By object, the stretches that the root has: start and stop in the object, and start in the copy."""

    def get_range(self, key: str, start: int, length: int, *, etag: str | None = None) -> Blob:
        """Read a range, like `RangeReader.get_range` (no request if the root has it)."""
        if (location := self._find(key, start, length)) is not None:
            offset, total_bytes = location
            try:
                data = text_in(self._manifest, offset, offset + length)
            except DamagedData:
                self._stretches = {}
            else:
                return Blob(data, "", total_bytes, local=True, in_root=True)
        return self.store.get_range(key, start, length, etag=etag)

    def _find(self, key: str, start: int, length: int) -> tuple[int, int] | None:
        """The start of the range in the copy, and the end of its stretch in the object; None if the root lacks it."""
        if self._stretches is None:
            self._stretches = self._locate()
        for first, last, offset in self._stretches.get(key, ()):
            if first <= start and start + length <= last:
                return offset + start - first, last
        return None

    def forget(self, key: str, start: int, length: int, *, etag: str | None = None) -> None:
        """Read no copy any more, because these bytes were damaged."""
        self._stretches = {}
        if isinstance(self.store, CopyKeeper):
            self.store.forget(key, start, length, etag=etag)

    def close(self) -> None:
        """Drop the copies."""
        self._stretches = {}
        self._manifest = replace(self._manifest, text="")

    def _locate(self) -> dict[str, list[tuple[int, int, int]]]:
        root, stretches, frames = self._manifest, dict[str, list[tuple[int, int, int]]](), 0
        assert root.last_page is not None  # by `Manifest.check`
        try:
            page = Page(root.last_page, root.pages[-1], None)
        except DamagedData:
            return {}  # reading the page raises the same error
        for run in page.runs:
            offset, stop = page.stored_starts[frames], page.stored_starts[frames + run.frames]
            stretches.setdefault(run.object, []).append((run.offset, run.offset + stop - offset, offset))
            frames += run.frames
        return stretches


class Ends:
    """The head and the tail of a text, as far as its root has them (no request)."""

    def __init__(self, manifest: Manifest) -> None:
        """Raises `DamagedData` for ends that do not fit this text."""
        head, tail = read_end(manifest.head), read_end(manifest.tail)
        last = manifest.pages[-1] if manifest.pages else PageRef("", 0, 0, 0, 0, 0, 0)
        first = Frame(0, ROOT_KEY, 0, *_counts(head, last), "raw", None, 0, 0, 0)
        counts = _counts(tail, last)
        before = last.characters - counts[2], last.bytes - counts[1], last.newlines - counts[3]
        end = Frame(last.frames - 1, ROOT_KEY, 0, *counts, "raw", None, *before)
        self._head = FrameText(first, head, is_used=True) if head else None
        self._tail = FrameText(end, tail, is_used=True) if tail else None
        self.head_stop = first.characters
        """The character after the head."""
        self.tail_start = end.start
        """The first character of the tail."""

    def within(self, start: int, stop: int) -> FrameText | None:
        """The head or tail that holds characters [start, stop), a non-empty range; None if neither does. It is not a
        frame of the text."""
        if stop <= self.head_stop:
            return self._head
        return self._tail if start >= self.tail_start else None

    def line_start(self, line: int) -> int | None:
        r"""The first character after `line` newlines, at least 1; None if it is neither in the head nor in the tail."""
        for end in (self._head, self._tail):
            if end and 0 <= (n := line - 1 - end.frame.start_newline) < end.frame.newlines:
                return end.frame.start + end.nth_newline(n) + 1
        return None

    def line_of(self, character: int) -> int | None:
        """The number of newlines before `character`; None if it is neither in the head nor in the tail."""
        for end in (self._head, self._tail):
            if end and end.frame.start <= character <= end.frame.stop:
                return end.frame.start_newline + end.data.count(b"\n", 0, end.to_byte(character - end.frame.start))
        return None


def _counts(data: bytes, text: PageRef) -> tuple[int, int, int, int, int, int]:
    """The counts of a `Frame` for a head or tail. Raises `DamagedData` if they exceed those of the whole text."""
    size, characters, newlines = len(data), len(data.decode()), data.count(b"\n")
    if size > text.bytes or characters > text.characters or newlines > text.newlines:
        raise DamagedData(f"{ROOT_KEY}: the head or tail has {characters} characters, the text only {text.characters}")
    return 0, size, characters, newlines, 0, ASCII if size == characters else 0
