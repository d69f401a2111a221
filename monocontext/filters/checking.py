"""Whether filters hold what their text does: no gram of a frame may be missing from its column.

Columns are computed anew while frames go by, and compared with those that are stored, some hundred frames at a time.
Bits too many are no damage: where two filters were joined, the frames at the border hold grams of both sides.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from monocontext.errors import MonocontextError
from monocontext.filters.building import folded_head
from monocontext.filters.fold import TABLES, fold_bytes
from monocontext.filters.grams import GRAM_BYTES, MAX_BITS, lowered, set_rows
from monocontext.filters.layout import Layout
from monocontext.manifest import FilterRef

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TILE_BYTES = 32
"""Columns that are compared at once, eight a byte: 8 MiB of the highest filter."""
_IN_MEMORY_BYTES = 16 << 20


class Checker:
    """Checks the filters of a text. Feed it the frames in order, then `finish`; both give problems, a line each."""

    def __init__(self, refs: tuple[FilterRef, ...], get: Callable[[str], bytes]):
        """`get` gives an object (1 GET each, when the first frame of its filter comes or is passed over)."""
        self._refs = deque(refs)
        self._get = get
        self._reach = max((ref.overlap_bytes for ref in refs), default=0) + GRAM_BYTES - 1
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._waiting_bytes = 0
        self._passed = _Passed(self._reach)
        self._filter: _Filter | None = None

    def feed(self, number: int, frame: bytes) -> Iterator[str]:
        """The next frame (UTF-8). Numbers may be left out, where a frame could not be read."""
        if not self._refs:
            return
        if self._waiting and self._waiting[-1][0] + 1 != number:
            while self._waiting:
                yield from self._check_first()
            self._passed = _Passed(self._reach)
        self._waiting.append((number, frame))
        self._waiting_bytes += len(frame)
        while self._waiting_bytes - len(self._waiting[0][1]) >= self._reach:
            if len(self._following(None, self._reach)) < self._reach:
                return  # marks that fold to nothing: wait for more
            yield from self._check_first()

    def finish(self) -> Iterator[str]:
        """No frame follows."""
        while self._waiting:
            yield from self._check_first()
        yield from self._advance(None)

    def _following(self, stop: int | None, size: int) -> bytes:
        """The first folded bytes behind the first frame that waits, up to frame `stop`."""
        frames = [frame for number, frame in self._waiting if stop is None or number < stop]
        return folded_head(frames[1:], size)

    def _check_first(self) -> Iterator[str]:
        number, frame = self._waiting[0]
        yield from self._advance(number)
        folded = fold_bytes(frame)
        if self._filter and self._filter.ref.first_frame <= number:
            ref = self._filter.ref
            reach = ref.overlap_bytes + GRAM_BYTES - 1
            within = self._following(ref.stop_frame, reach)
            if number == ref.first_frame and ref.border_frames:
                self._filter.check_border(self._passed, (folded + within)[:reach], reach)
            self._filter.check(number, folded + self._following(self._covered_until(number), reach))
        self._passed.add(folded)
        self._waiting.popleft()
        self._waiting_bytes -= len(frame)

    def _covered_until(self, number: int) -> int | None:
        """The frame up to which a frame's column covers the text; None: as far as it reaches.

        At the end of a filter columns know of its own text alone, and where a border stands for a frame, the column
        need not know what lies behind that border.
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
        """Let the filter that may cover a frame be the one at hand; None: be done with all."""
        while self._refs and (number is None or self._refs[0].stop_frame <= number):
            self._filter = self._filter or _Filter(self._refs[0], self._get)
            yield from self._filter.close()
            self._filter = None
            self._refs.popleft()
        if self._refs and self._filter is None and number is not None and self._refs[0].first_frame <= number:
            self._filter = _Filter(self._refs[0], self._get)


class _Passed:
    """What lies right before the frame at hand."""

    def __init__(self, reach: int):
        self._reach = reach
        self.folded = b""
        self._sizes: deque[int] = deque()
        """Folded lengths of the last frames: as few as reach so far."""

    def add(self, folded: bytes) -> None:
        self.folded = (self.folded + folded)[-self._reach :]
        self._sizes.append(len(folded))
        while len(self._sizes) > 1 and sum(self._sizes) - self._sizes[0] >= self._reach:
            self._sizes.popleft()

    def frames(self, reach: int) -> int:
        """How many frames back so many folded bytes reach; all that are known where these are fewer."""
        total = 0
        for number, size in enumerate(reversed(self._sizes), 1):
            total += size
            if total >= reach:
                return number
        return len(self._sizes)


class _Filter:
    """One stored filter, turned from rows into tiles of columns in a temporary file, against what it should hold."""

    def __init__(self, ref: FilterRef, get: Callable[[str], bytes]):
        self.ref = ref
        self._layout = Layout(ref)
        self._problems: list[str] = []
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (closed in `close`)
        self._load(get)
        # With other tables of foldings, or higher than we build them, columns cannot be computed here.
        self._comparable = not self._problems and ref.fold == TABLES and ref.bits <= MAX_BITS
        self._tile = 0
        self._computed: list[NDArray[np.uint8] | None] = [None] * _TILE_BYTES
        self._lacking: list[int] = []
        """Frames whose columns lack a gram."""

    def _load(self, get: Callable[[str], bytes]) -> None:
        ref, layout = self.ref, self._layout
        if len(ref.parts) != layout.parts:
            self._problems.append(f"{self._name}: expected {layout.parts} objects, found {len(ref.parts)}")
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
        """Each tile with its width in bytes."""
        width = self._layout.row_bytes
        return ((start // _TILE_BYTES, min(width - start, _TILE_BYTES)) for start in range(0, width, _TILE_BYTES))

    @property
    def _name(self) -> str:
        return f"filter of frames {self.ref.first_frame} to {self.ref.stop_frame} ({self.ref.keys[0]})"

    def check(self, number: int, folded: bytes) -> None:
        """A frame with what its column covers behind it; in the order of the text."""
        if not self._comparable:
            return
        import numpy as np

        tile, place = divmod(number - self.ref.first_frame, 8 * _TILE_BYTES)
        if tile != self._tile:
            self._compare()
            self._tile = tile
        bit = lowered(set_rows(folded), self.ref.bits, axis=0) << np.uint8(place % 8)
        others = self._computed[place // 8]
        self._computed[place // 8] = bit if others is None else others | bit

    def check_border(self, before: _Passed, head: bytes, reach: int) -> None:
        """What lies across the beginning of the filter's text."""
        if self.ref.border_frames < before.frames(reach):
            self._problems.append(
                f"{self._name}: its border stands for {self.ref.border_frames} frames, expected {before.frames(reach)}"
            )
        if self._comparable:
            place = self.ref.frames % (8 * _TILE_BYTES)
            stored = self._stored(self.ref.frames // (8 * _TILE_BYTES))[:, place // 8] >> place % 8 & 1
            expected = lowered(set_rows(before.folded[-reach:] + head), self.ref.bits, axis=0)
            if (expected & ~stored).any():
                self._problems.append(f"{self._name}: its border lacks grams of the text")

    def close(self) -> list[str]:
        """The problems found."""
        if self._comparable:
            self._compare()
        self._file.close()
        if self._lacking:
            self._problems.append(
                f"{self._name}: lacks grams of {len(self._lacking)} frames, the first of them frame {self._lacking[0]}"
            )
        return self._problems

    def _stored(self, tile: int) -> NDArray[np.uint8]:
        import numpy as np

        rows = self._layout.rows
        width = dict(self._tiles())[tile]
        self._file.seek(tile * _TILE_BYTES * rows)
        return np.frombuffer(self._file.read(rows * width), np.uint8).reshape(rows, width)

    def _compare(self) -> None:
        """The tile that was computed with the one that is stored."""
        stored = self._stored(self._tile)
        for place, computed in enumerate(self._computed):
            if computed is not None:
                missing = computed & ~stored[:, place]
                first = self.ref.first_frame + 8 * (self._tile * _TILE_BYTES + place)
                self._lacking += [first + bit for bit in range(8) if (missing & (1 << bit)).any()]
        self._computed = [None] * _TILE_BYTES
