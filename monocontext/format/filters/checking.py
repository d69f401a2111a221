"""Check filters against their text: no gram of a frame may be missing from its column.

Columns are computed again while the text is read, and compared with the stored ones, some hundred frames at a time.
Extra bits are no damage: where filters were joined, columns at the border have grams of both sides.
"""

from __future__ import annotations

import hashlib
import sys
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from monocontext.errors import MonocontextError
from monocontext.format.filters.byte_facts import ByteFacts
from monocontext.format.filters.case_folding import TABLES, fold_bytes
from monocontext.format.filters.frame_column import fold_head, set_column
from monocontext.format.filters.grams import HIGHEST, MAX_BITS, height, set_rows, shrink_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TILE_BYTES = 32
"""The width of a tile: the columns that are compared at once, eight a byte. 8 MiB of the highest filter."""
_IN_MEMORY_BYTES = 16 << 20
"""The columns that a check keeps in memory; more go to a temporary file."""


class Checker:
    """Checks the filters of a text. Feed it the frames in order, then `finish`; both yield problems, a line each."""

    def __init__(
        self, refs: tuple[FilterRef, ...], get: Callable[[str], bytes], first: int = 0, stop: int = sys.maxsize
    ):
        """`get` reads an object (1 GET each, when the first frame of its filter comes or is skipped).

        Only columns of frames [first, stop) are checked. Other frames are the text around these.
        """
        self._refs = deque(refs)
        self._first, self._stop = first, stop
        self.lacking: dict[str, list[int]] = {}
        """The frames whose columns lack a gram or a word, by the name of their filter."""
        self._get = get
        self._reach = max((ref.reach_bytes for ref in refs), default=0)
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._before = _TextBefore(self._reach)
        self._filter: _Filter | None = None

    def feed(self, number: int, frame: bytes) -> Iterator[str]:
        """Check the next frame (UTF-8). A number may be left out if the frame could not be read."""
        if not self._refs:
            return
        if self._waiting and self._waiting[-1][0] + 1 != number:  # the text around the gap is unknown
            while self.waits:
                yield from self._check_first()
            self._waiting.clear()
            self._waiting_bytes = 0
            self._before = _TextBefore(self._reach)
        self._waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        while self.waits and self._waiting_bytes - len(self._waiting[0][1]) >= self._reach:
            if len(self._text_after(None, self._reach)) < self._reach:
                return  # some marks fold to nothing: wait for more text
            yield from self._check_first()

    def finish(self) -> Iterator[str]:
        """Check the last frames, and the other filters that begin before `stop`: no frame follows.

        Frames whose columns lack a gram are in `lacking`, not among the problems.
        """
        while self.waits:
            yield from self._check_first()
        yield from self._advance(None)

    @property
    def waits(self) -> bool:
        """Whether a frame waits for the text that follows it."""
        return bool(self._waiting) and self._waiting[0][0] < self._stop

    def _text_after(self, stop: int | None, size: int) -> bytes:
        """The first `size` folded bytes after the first waiting frame, up to frame `stop` if it is given."""
        frames = [frame for number, frame in self._waiting if stop is None or number < stop]
        return fold_head(frames[1:], size)

    def _check_first(self) -> Iterator[str]:
        number, frame = self._waiting[0]
        yield from self._advance(number)
        folded = fold_bytes(frame)
        if self._filter and max(self._filter.ref.first_frame, self._first) <= number:
            ref = self._filter.ref
            reach = ref.reach_bytes
            within = self._text_after(ref.stop_frame, reach)
            if number == ref.first_frame and ref.border_frames:
                self._filter.check_border(self._before, (folded + within)[:reach], reach)
            self._filter.check(number, folded, self._text_after(self._coverage_end(number), reach))
        self._before.add(folded)
        self._waiting.popleft()
        self._waiting_bytes -= len(frame)

    def _coverage_end(self, number: int) -> int | None:
        """The frame at which the column of frame `number` stops covering the text; `None` if its reach is the limit.

        At the end of a filter, columns cover only the filter's text. If a border column covers a frame, the frame's own
        column need not cover the text after that border.
        """
        last = self._waiting[-1][0]
        for i, ref in enumerate(self._refs):
            if i == 0 and number >= ref.stop_frame - ref.tail_frames:
                return ref.stop_frame
            if ref.first_frame - ref.border_frames <= number < ref.first_frame:
                return ref.first_frame
            if ref.first_frame > last:
                return None
        return None

    def _advance(self, number: int | None) -> Iterator[str]:
        """Close the filters that end before a frame, and load the one that covers it; without a frame, close all."""
        while self._refs and (
            self._refs[0].first_frame < self._stop if number is None else self._refs[0].stop_frame <= number
        ):
            self._filter = self._filter or _Filter(self._refs[0], self._get)
            yield from self._filter.close()
            if self._filter.lacking:
                self.lacking[self._filter.name] = self._filter.lacking
            self._filter = None
            self._refs.popleft()
        if self._refs and self._filter is None and number is not None and self._refs[0].first_frame <= number:
            self._filter = _Filter(self._refs[0], self._get)


def describe_lacking(lacking: dict[str, list[int]]) -> Iterator[str]:
    """Yield a problem for each filter, given the frames whose columns lack a gram or a word."""
    for name, frames in lacking.items():
        yield f"{name}: lacks grams or words of {len(frames)} frames, the first of them frame {frames[0]}"


class _TextBefore:
    """The last folded bytes of the text before the current frame."""

    def __init__(self, reach: int):
        self._reach = reach
        self.folded = b""
        self._sizes: deque[int] = deque()
        """The folded lengths of the last frames, as few as have `reach` bytes in total."""

    def add(self, folded: bytes) -> None:
        self.folded = (self.folded + folded)[-self._reach :]
        self._sizes.append(len(folded))
        while len(self._sizes) > 1 and sum(self._sizes) - self._sizes[0] >= self._reach:
            self._sizes.popleft()

    def frames(self, reach: int) -> int:
        """The number of last frames with the last `reach` folded bytes, or of all frames if they have fewer."""
        total = 0
        for number, size in enumerate(reversed(self._sizes), 1):
            total += size
            if total >= reach:
                return number
        return len(self._sizes)


class _Filter:
    """One stored filter. Its rows become tiles of columns in a temporary file, and are compared with the text."""

    def __init__(self, ref: FilterRef, get: Callable[[str], bytes]):
        self.ref = ref
        self._layout = FilterLayout(ref)
        self._problems: list[str] = []
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (closed in `close`)
        self._load(get)
        # Columns cannot be computed here with other folding tables, or for filters that are higher than ours.
        self._comparable = not self._problems and ref.fold == TABLES and ref.bits <= MAX_BITS
        self._tile = 0
        self._computed: list[NDArray[np.uint8] | None] = [None] * _TILE_BYTES
        self._frames: dict[int, int] = {}
        """The frame number of each computed column of the tile."""
        self.lacking: list[int] = []
        """Frames whose columns lack a gram or a word."""

    def _load(self, get: Callable[[str], bytes]) -> None:
        ref, layout = self.ref, self._layout
        if len(ref.parts) != layout.parts:
            self._problems.append(f"{self.name}: expected {layout.parts} objects, found {len(ref.parts)}")
            return
        for part, (key, (first_row, _)) in enumerate(zip(ref.keys, layout.row_ranges(), strict=True)):
            try:
                data = get(key)
                found = hashlib.sha256(data).hexdigest()[:32]
                if found != ref.parts[part]:
                    self._problems.append(f"{key}: content differs from the name: found what would be {found}")
                rows = layout.decode(part, data)
            except MonocontextError as error:
                self._problems.append(str(error))
                continue
            for tile, width in self._tiles():
                self._file.seek(tile * _TILE_BYTES * layout.rows + first_row * width)
                self._file.write(rows[:, tile * _TILE_BYTES :][:, :width].tobytes())

    def _tiles(self) -> Iterator[tuple[int, int]]:
        """The number and the width in bytes of each tile."""
        width = self._layout.row_bytes
        return ((start // _TILE_BYTES, min(width - start, _TILE_BYTES)) for start in range(0, width, _TILE_BYTES))

    @property
    def name(self) -> str:
        return f"filter of frames {self.ref.first_frame} to {self.ref.stop_frame} ({self.ref.keys[0]})"

    def check(self, number: int, folded: bytes, following: bytes) -> None:
        """Check the column of a frame, given the folded text that follows it. Frames come in the order of the text."""
        if not self._comparable:
            return
        import numpy as np

        column = self._layout.column(number - self.ref.first_frame)
        if column is None:
            return
        tile, place = divmod(column, 8 * _TILE_BYTES)
        if tile != self._tile:
            self._compare()
            self._tile = tile
        self._frames[place] = number
        bit = self._shrink(set_column(folded, following, kind=self.ref.kind)) << np.uint8(place % 8)
        others = self._computed[place // 8]
        self._computed[place // 8] = bit if others is None else others | bit

    def check_border(self, before: _TextBefore, head: bytes, reach: int) -> None:
        """Check the border column: the text across the beginning of the filter's text."""
        if self.ref.border_frames < before.frames(reach):
            self._problems.append(
                f"{self.name}: expected a border of {before.frames(reach)} frames, found {self.ref.border_frames}"
            )
        if self._comparable:
            import numpy as np

            tile, place = divmod(self._layout.border_column, 8 * _TILE_BYTES)
            stored = self._read_tile(tile)[:, place // 8] >> place % 8 & 1
            column = np.zeros(HIGHEST, np.uint8)
            set_rows(column, ByteFacts(before.folded[-reach:], head), self.ref.kind)
            expected = self._shrink(column)
            if (expected & ~stored).any():
                self._problems.append(f"{self.name}: its border column lacks grams of the text")

    def _shrink(self, column: NDArray[np.uint8]) -> NDArray[np.uint8]:
        return shrink_rows(column[: height(MAX_BITS, self.ref.has_words)], self._layout.rows, 0)

    def close(self) -> list[str]:
        """Compare the last tile and return the problems other than `lacking`."""
        if self._comparable:
            self._compare()
        self._file.close()
        return self._problems

    def _read_tile(self, tile: int) -> NDArray[np.uint8]:
        import numpy as np

        rows = self._layout.rows
        width = dict(self._tiles())[tile]
        self._file.seek(tile * _TILE_BYTES * rows)
        return np.frombuffer(self._file.read(rows * width), np.uint8).reshape(rows, width)

    def _compare(self) -> None:
        """Compare the computed tile with the stored one."""
        stored = self._read_tile(self._tile)
        for place, computed in enumerate(self._computed):
            if computed is not None:
                missing = computed & ~stored[:, place]
                self.lacking += [self._frames[8 * place + bit] for bit in range(8) if (missing & (1 << bit)).any()]
        self._computed = [None] * _TILE_BYTES
        self._frames.clear()
