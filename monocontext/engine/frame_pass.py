"""Read frames in order, and request later ones ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator

from monocontext.engine.fetch.fetcher import Fetcher
from monocontext.engine.fetch.scheduler import Fetch, Token
from monocontext.engine.frame import FrameText
from monocontext.engine.frame_table import frame_item
from monocontext.format.index import Frame

REFILL = 7 / 8
"""The share of the window at which it is refilled. Asking for each frame alone would make a request of each; waiting
until a quarter is gone lets a link of 600 MB/s run dry after one late answer (a pass over 10 GB, simulated: 18.7 s with
three quarters, 18.1 with this, for a third more requests)."""


class FramePass:
    """One pass over frames.

    The window is the memory of the frames that are requested ahead. It grows with the frames that the caller takes.
    """

    def __init__(
        self,
        fetcher: Fetcher,
        frames: Iterator[Frame],
        *,
        first_bytes: int,
        growth: int,
        eager: bool,
        needles: tuple[bytes, ...],
        on_text: Callable[[FrameText], None] | None,
        keep_decoded: Callable[[FrameText], None],
        on_end: Callable[[], None] | None,
    ):
        """`first_bytes`: the first window, which then is at least `growth` times the frames taken. `eager`: the caller
        takes all frames, in large slices. `needles`: the literals to look for in each frame that is decoded.

        `on_text` is called with each frame, `keep_decoded` with each frame that was decoded by slices, and `on_end`
        when the pass has ended or is abandoned.
        """
        self._fetcher = fetcher
        self._frames: Iterator[Frame] | None = frames
        self._token = Token()
        self._on_text, self._keep_decoded, self._on_end = on_text, keep_decoded, on_end
        self._window_bytes = first_bytes
        self._growth = growth
        self._eager = eager
        self._needles = needles
        self._ahead: deque[tuple[Frame, FrameText | Fetch]] = deque()
        self._ahead_bytes = self._taken_bytes = 0

    def __iter__(self) -> Iterator[FrameText]:
        """The frames, each used when it is given. An abandoned iterator drops requests that have not started."""
        with self._token:
            try:
                while (text := self._take()) is not None:
                    if self._on_text:
                        self._on_text(text)
                    if text.decoding_work:
                        self._keep_decoded(text)
                    with self._fetcher.lock:  # cached frames need no lock: on an event loop, other tasks may run here
                        pass
                    yield text
            finally:
                self._fetcher.release([result for _, result in self._ahead])
                if self._on_end:
                    self._on_end()

    def _take(self) -> FrameText | None:
        """The next frame, which counts as used; None at the end."""
        if self._ahead_bytes <= self._window_bytes * REFILL:
            self._refill()
        if not self._ahead:
            return None
        fetcher = self._fetcher
        frame, result = self._ahead[0]
        text: FrameText = fetcher.wait(frame.number, result, self._token) if isinstance(result, Fetch) else result
        if not text.is_used:
            fetcher.use(text)
        self._ahead.popleft()
        size_bytes = self._memory_bytes(frame)
        self._ahead_bytes -= size_bytes
        self._taken_bytes += size_bytes
        self._window_bytes = min(max(self._window_bytes, self._growth * self._taken_bytes), fetcher.window_bytes)
        return text

    def _refill(self) -> None:
        """Request frames until the window is full."""
        batch: list[Frame] = []
        while self._frames is not None and self._ahead_bytes < self._window_bytes:
            frame = next(self._frames, None)
            if frame is None:
                self._frames = None
            else:
                batch.append(frame)
                self._ahead_bytes += self._memory_bytes(frame)
        if batch:
            items = [frame_item(frame, self._needles) for frame in batch]
            self._ahead.extend(zip(batch, self._fetcher.want(items, self._token), strict=True))

    def _memory_bytes(self, frame: Frame) -> int:
        """The memory of a frame that is requested: its stored form and its text. For raw frames received in place these
        are one."""
        return frame.bytes if self._eager and frame.codec == "raw" else frame.bytes + frame.stored_bytes
