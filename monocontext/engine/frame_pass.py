"""Read frames in order, and request later ones ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from monocontext.engine.fetch.fetcher import Fetcher
from monocontext.engine.fetch.requests import FetchItem, Request
from monocontext.engine.frame import FrameText
from monocontext.engine.frame_table import frame_item
from monocontext.format.index import Frame

REFILL = 7 / 8
"""The share of the window at which it is refilled. Asking for each frame alone would make a request of each; waiting
until a quarter is gone lets a link of 600 MB/s run dry after one late answer (a pass over 10 GB, simulated: 18.7 s with
three quarters, 18.1 with this, for a third more requests)."""


def read_frames(
    fetcher: Fetcher,
    frames: Iterator[Frame],
    *,
    first_bytes: int,
    growth: int,
    eager: bool,
) -> Iterator[FrameText]:
    """The texts of frames, in order.

    The window is the memory of the frames that are requested ahead. It begins with `first_bytes`, and then is at least
    `growth` times the frames that the caller has taken. `eager`: the caller takes all frames, in large slices.
    An abandoned iterator drops the requests that
    have not started, since nothing else refers to them.
    """
    window_bytes, ahead_bytes, taken_bytes = min(first_bytes, fetcher.window_bytes), 0, 0
    ahead: deque[tuple[int, FetchItem, FrameText | Request]] = deque()

    def memory_bytes(frame: Frame) -> int:
        """The memory of a requested frame: its stored form and its text. Raw frames are received in place."""
        return frame.bytes if eager and frame.codec == "raw" else frame.bytes + frame.stored_bytes

    try:
        has_more = True
        while has_more or ahead:
            if has_more and ahead_bytes <= window_bytes * REFILL:
                batch: list[Frame] = []
                while ahead_bytes < window_bytes:
                    frame = next(frames, None)
                    if frame is None:
                        has_more = False
                        break
                    batch.append(frame)
                    ahead_bytes += memory_bytes(frame)
                items = [frame_item(frame) for frame in batch]
                sizes = map(memory_bytes, batch)
                ahead.extend(zip(sizes, items, fetcher.want(items) if items else (), strict=True))
                continue
            size_bytes, item, result = ahead.popleft()
            if isinstance(result, FrameText):
                text = result
            elif result.is_done and result.error is None:
                text = result.values[item.key]
            else:
                text = fetcher.wait(item, result)
            ahead_bytes -= size_bytes
            taken_bytes += size_bytes
            window_bytes = min(max(window_bytes, growth * taken_bytes), fetcher.window_bytes)
            del result
            yield text
    finally:
        ahead.clear()
