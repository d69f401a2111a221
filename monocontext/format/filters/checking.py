"""Check filters against their text: no gram of a frame may be missing from its column. Extra bits are no damage."""

from __future__ import annotations

import hashlib
import sys
import tempfile
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from monocontext.errors import MonocontextError
from monocontext.format.filters.case_folding import TABLES
from monocontext.format.filters.frame_column import compute_column, fold_head
from monocontext.format.filters.grams import MAX_BITS, shrink_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TILE_BYTES = 32
"""The width of a tile: the columns that are in memory at once, eight a byte. 8 MiB of the highest filter."""
_IN_MEMORY_BYTES = 16 << 20
"""The columns of a filter that a check keeps in memory; more go to a temporary file."""


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
        self._reach = max((ref.reach_bytes for ref in refs), default=0)
        self._open: dict[int, _StoredFilter] = {}
        self._done: set[int] = set()
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self.lacking: dict[str, list[int]] = {}
        """The frames whose columns lack a gram or a word, by the name of their filter."""

    def feed(self, number: int, frame: bytes) -> Iterator[str]:
        """Check the next frame (UTF-8). A number may be left out if the frame could not be read."""
        if not self._refs:
            return
        if self._waiting and self._waiting[-1][0] + 1 != number:  # the text after the gap does not follow these frames
            while self._waiting:
                yield from self._check_first(self._text_after())
        self._waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        while self._waiting_bytes - len(self._waiting[0][1]) >= self._reach:
            text_after = self._text_after()
            if len(text_after) < self._reach:
                return  # some marks fold to nothing: wait for more text
            yield from self._check_first(text_after)

    def finish(self) -> Iterator[str]:
        """Check the last frames, and the objects of filters that begin before `stop`: no frame follows.

        Frames whose columns lack a gram are in `lacking`, not among the problems.
        """
        while self._waiting:
            yield from self._check_first(self._text_after())
        for number, ref in enumerate(self._refs):
            if self._first <= ref.first_frame < self._stop:
                yield from self._filter(number).problems
        for opened in self._open.values():
            opened.close()

    @property
    def waits(self) -> bool:
        """Whether a frame waits for the text that follows it."""
        return bool(self._waiting) and self._waiting[0][0] < self._stop

    def _text_after(self) -> bytes:
        return fold_head([frame for _, frame in self._waiting][1:], self._reach)

    def _check_first(self, text_after: bytes) -> Iterator[str]:
        number, frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        offset = bisect_right(self._runs, (number, sys.maxsize, 0, 0)) - 1
        if offset < 0 or not self._first <= number < self._stop:
            return
        first, column, frames, which = self._runs[offset]
        if number >= first + frames:
            return
        stored = self._filter(which)
        ref = self._refs[which]
        if not stored.holds(column + number - first, compute_column(frame, text_after[: ref.reach_bytes])):
            self.lacking.setdefault(stored.name, []).append(number)
        for other in [n for n in self._open if self._refs[n].stop_frame <= number + 1]:
            yield from self._open[other].problems
            self._open.pop(other).close()
            self._done.add(other)

    def _filter(self, number: int) -> _StoredFilter:
        if number in self._done:
            return _StoredFilter(self._refs[number], None)
        if number not in self._open:
            self._open[number] = _StoredFilter(self._refs[number], self._get)
        return self._open[number]


def describe_lacking(lacking: dict[str, list[int]]) -> Iterator[str]:
    """Yield a problem for each filter, given the frames whose columns lack a gram or a word."""
    for name, frames in lacking.items():
        yield f"{name}: lacks grams or words of {len(frames)} frames, the first of them frame {frames[0]}"


class _StoredFilter:
    """One stored filter, whose columns are kept in a temporary file, tile by tile."""

    def __init__(self, ref: FilterRef, get: Callable[[str], bytes] | None):
        """Without `get`, it was checked before and has no problems left."""
        self.ref = ref
        self.name = f"filter of frames {ref.first_frame} to {ref.stop_frame} ({ref.keys[0]})"
        self.problems: list[str] = []
        self._layout = FilterLayout(ref)
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (closed in `close`)
        self._tile: tuple[int, NDArray[np.uint8]] | None = None
        if get is not None:
            self._load(get)
        # Columns cannot be computed here with other folding tables, or for filters that are higher than ours.
        self._comparable = not self.problems and ref.fold == TABLES and ref.bits <= MAX_BITS

    def _load(self, get: Callable[[str], bytes]) -> None:
        ref, layout = self.ref, self._layout
        if len(ref.parts) != layout.parts:
            self.problems.append(f"{self.name}: expected {layout.parts} objects, found {len(ref.parts)}")
            return
        for part, (key, (first_row, _)) in enumerate(zip(ref.keys, layout.row_ranges(), strict=True)):
            try:
                data = get(key)
                if (name := hashlib.sha256(data).hexdigest()[:32]) != ref.parts[part]:
                    self.problems.append(f"{key}: content differs from the name: found what would be {name}")
                rows = layout.decode(part, data)
            except MonocontextError as error:
                self.problems.append(str(error))
                continue
            for tile, width in self._tiles():
                self._file.seek(tile * _TILE_BYTES * layout.rows + first_row * width)
                self._file.write(rows[:, tile * _TILE_BYTES :][:, :width].tobytes())

    def _tiles(self) -> Iterator[tuple[int, int]]:
        """The number and the width in bytes of each tile."""
        width = self._layout.row_bytes
        return ((start // _TILE_BYTES, min(width - start, _TILE_BYTES)) for start in range(0, width, _TILE_BYTES))

    def holds(self, column: int, computed: NDArray[np.uint8]) -> bool:
        """Whether a stored column has all rows of a computed one."""
        if not self._comparable:
            return True
        import numpy as np

        number, position = divmod(column, 8 * _TILE_BYTES)
        if self._tile is None or self._tile[0] != number:
            rows, width = self._layout.rows, dict(self._tiles())[number]
            self._file.seek(number * _TILE_BYTES * rows)
            self._tile = number, np.frombuffer(self._file.read(rows * width), np.uint8).reshape(rows, width)
        stored = self._tile[1][:, position // 8] >> position % 8
        return not (shrink_rows(computed, self._layout.rows, 0) & ~stored & 1).any()

    def close(self) -> None:
        self._file.close()
