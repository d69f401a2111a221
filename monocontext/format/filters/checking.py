"""Check filters against their text: no gram of a frame may be missing from its column. Extra bits are no damage."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from monocontext.format.filters.building import TextAfter
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    from monocontext.format.filters.columns import StoredRows


class Checker:
    """Checks the filters of a text. Feed it the frames in order, then `finish`; both yield problems, a line each."""

    def __init__(
        self, refs: tuple[FilterRef, ...], get: Callable[[str], bytes], first: int = 0, stop: int = sys.maxsize
    ):
        """`get` reads an object (1 GET each, when the first frame of its filter comes).

        Only columns of frames [first, stop) are checked. Other frames are the text around these.
        """
        self._refs, self._get = refs, get
        self._first, self._stop = first, stop
        self._runs = sorted((*run, number) for number, ref in enumerate(refs) for run in ref.runs)
        self._frames = TextAfter(max((ref.reach_bytes for ref in refs), default=0))
        self._open: dict[int, StoredRows] = {}
        self._done: set[int] = set()
        self.lacking: dict[str, list[int]] = {}
        """The frames whose columns lack a gram or a word, by the name of their filter."""

    def feed(self, number: int, frame: bytes) -> Iterator[str]:
        """Check the next frame (UTF-8). A number may be left out if the frame could not be read."""
        if not self._refs:
            return
        waiting = self._frames.waiting
        if waiting and waiting[-1][0] + 1 != number:  # the text after the gap does not follow these frames
            yield from self._check(self._frames.end())
        yield from self._check(self._frames.add(number, frame))

    def finish(self) -> Iterator[str]:
        """Check the last frames, and the objects of filters that begin before `stop`: no frame follows. Frames whose
        columns lack a gram are in `lacking`, not among the problems."""
        yield from self._check(self._frames.end())
        for number, ref in enumerate(self._refs):
            if self._first <= ref.first_frame < self._stop and number not in self._done:
                yield from self._load(number)

    @property
    def waits(self) -> bool:
        """Whether a frame waits for the text that follows it."""
        return bool(self._frames.waiting) and self._frames.waiting[0][0] < self._stop

    def _check(self, frames: Iterable[tuple[int, bytes, bytes]]) -> Iterator[str]:
        for number, frame, text_after in frames:
            offset = bisect_right(self._runs, (number, sys.maxsize, 0, 0)) - 1
            if offset < 0 or not self._first <= number < self._stop:
                continue
            first, column, count, which = self._runs[offset]
            if number >= first + count:
                continue
            yield from self._load(which)
            stored, ref = self._open[which], self._refs[which]
            if not stored.holds(column + number - first, frame, text_after):
                name = f"filter of frames {ref.first_frame} to {ref.stop_frame} ({ref.keys[0]})"
                self.lacking.setdefault(name, []).append(number)
            for other in [n for n in self._open if self._refs[n].stop_frame <= number + 1]:
                del self._open[other]
                self._done.add(other)

    def _load(self, number: int) -> Iterator[str]:
        """Read a filter if it is not open. Yields its problems, if it begins among the frames to check."""
        if number not in self._open:
            from monocontext.format.filters.columns import StoredRows  # imports numpy

            self._open[number] = StoredRows(self._refs[number], self._get)
            if self._first <= self._refs[number].first_frame < self._stop:
                yield from map(str, self._open[number].errors)


def describe_lacking(lacking: dict[str, list[int]]) -> Iterator[str]:
    """Yield a problem for each filter, given the frames whose columns lack a gram or a word."""
    for name, frames in lacking.items():
        yield f"{name}: lacks grams or words of {len(frames)} frames, the first of them frame {frames[0]}"
