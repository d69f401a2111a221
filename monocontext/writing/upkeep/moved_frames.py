"""Store frames of a text again as they are, in other segments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from monocontext.format.index import Frame
from monocontext.writing.pages import record_of, single_runs
from monocontext.writing.segments import SegmentLayout, Segments
from monocontext.writing.splice import Stretch
from monocontext.writing.stored_text import StoredText

_AT_ONCE_BYTES = 8 << 20
"""The longest range of frames in one GET."""


def moved_frames(text: StoredText, wanted: Callable[[Frame], bool]) -> list[Stretch]:
    """Store the wanted frames of a text in new segments, and return them as stretches with the same text.

    Costs 1 GET for some 8 MiB of neighbouring frames and 1 PUT for 16 MiB.
    """
    segments = Segments(text.store, SegmentLayout(text.root.frame_bytes, codec=text.root.codec))
    stretches: list[Stretch] = []
    for group in _groups(text, wanted):
        start = group[0].offset
        size = group[-1].offset + group[-1].stored_bytes - start
        data = text.store.get_range(group[0].object, start, size).data
        for frame in group:
            stored = data[frame.offset - start : frame.offset - start + frame.stored_bytes]
            segments.add(bytes(stored), record_of(frame), frame.codec)
        first, stop = group[0].number, group[-1].number + 1
        stretches.append(Stretch(first, stop, [], [record_of(frame) for frame in group], keeps_text=True))
    segments.finish()
    runs = iter(single_runs(segments.runs, segments.records))
    for stretch in stretches:
        stretch.runs += islice(runs, len(stretch.records))
    return stretches


def _groups(text: StoredText, wanted: Callable[[Frame], bool]) -> Iterator[list[Frame]]:
    """Yield the wanted frames as groups that are adjacent in the text and in their object, of about 8 MiB at most."""
    group: list[Frame] = []
    size = 0
    for frame in text.frames(0, text.root.frames):
        if not wanted(frame):
            continue
        last = group[-1] if group else None
        follows = last is not None and (last.number + 1, last.object, last.offset + last.stored_bytes) == (
            frame.number,
            frame.object,
            frame.offset,
        )
        if group and (not follows or size >= _AT_ONCE_BYTES):
            yield group
            group, size = [], 0
        group.append(frame)
        size += frame.stored_bytes
    if group:
        yield group
