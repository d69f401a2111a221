"""Check filters against their text: the column of a frame must have all its grams. Extra bits are not damage."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

from monocontext.format.filters.building import FollowedFrame, TextAfter
from monocontext.format.filters.columns import StoredRows
from monocontext.format.refs import FilterRef


class Checker:
    """Checks the filters of a text. Feed it the frames in order, then `finish`; both yield problems, one line each."""

    def __init__(self, refs: tuple[FilterRef, ...], get: Callable[[str], bytes]):
        """`get` reads an object by its key: that of each filter once, at the first frame of the filter (1 GET each)."""
        self._refs, self._get = refs, get
        self._runs = sorted((run, number) for number, ref in enumerate(refs) for run in ref.runs)
        """The runs of all filters in the order of the text, each with the number of its filter."""
        self._next_number = 0  # of the frame that follows the last one
        self._frames = TextAfter(max((ref.reach_bytes for ref in refs), default=0))
        self._loaded: dict[int, StoredRows] = {}  # by the number of the filter, until its last frame was checked
        self._finished: set[int] = set()  # the numbers of the filters whose last frame was checked
        self._incomplete: dict[int, list[int]] = {}
        """The frames whose columns lack a gram or a word, by the number of their filter."""

    def feed(self, number: int, frame: bytes) -> Iterator[str]:
        """Check frame `number` (UTF-8). Numbers rise; frames that cannot be read are left out."""
        if not self._refs:
            return
        if number != self._next_number:  # the text after the gap does not follow the frames before it
            yield from self._check(self._frames.end())
        self._next_number = number + 1
        yield from self._check(self._frames.add(number, frame))

    def finish(self) -> Iterator[str]:
        """Check the last frames, which no frame follows, and the objects of filters that no frame needed."""
        yield from self._check(self._frames.end())
        for number in range(len(self._refs)):
            if number not in self._finished:
                yield from self._load(number)
        for number, frames in self._incomplete.items():
            ref = self._refs[number]
            location = f"filter of frames {ref.first_frame} to {ref.stop_frame} ({ref.keys[0]})"
            yield f"{location}: lacks grams or words of {len(frames)} frames, the first of them frame {frames[0]}"

    def _check(self, frames: Iterable[FollowedFrame]) -> Iterator[str]:
        for frame in frames:
            index = bisect_right(self._runs, frame.number, key=lambda entry: entry[0].first_frame) - 1
            if index < 0 or frame.number >= self._runs[index][0].stop_frame:
                continue  # in no filter
            run, filter_number = self._runs[index]
            yield from self._load(filter_number)
            column = run.first_column + frame.number - run.first_frame
            if not self._loaded[filter_number].holds(column, frame.text, frame.text_after):
                self._incomplete.setdefault(filter_number, []).append(frame.number)
            for finished in [n for n in self._loaded if self._refs[n].stop_frame <= frame.number + 1]:
                del self._loaded[finished]
                self._finished.add(finished)

    def _load(self, number: int) -> Iterator[str]:
        """Read a filter if it is not loaded. Yields its problems."""
        if number not in self._loaded:
            self._loaded[number] = StoredRows(self._refs[number], self._get, checks_blocks=True)
            yield from map(str, self._loaded[number].errors)
