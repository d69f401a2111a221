"""Build search filters from frames, in bounded memory, and store them as objects.

Frames come in the order of the text. A column also covers the first `overlap_bytes` of folded text after its frame, so
that one column finds a needle that begins in the frame and ends after it. Columns are gathered in tiles of some
hundred frames, tiles are written to a temporary file, and at the end rows are read across all tiles and stored.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from monocontext.errors import DamagedData, ForeignObject, NotFound
from monocontext.format.filters.case_folding import TABLES, fold_bytes
from monocontext.format.filters.grams import HIGHEST, MAX_BITS, MIN_BITS, height, set_rows, shrink_rows
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.filters.suffixes import Signs
from monocontext.format.filters.words import set_word_rows
from monocontext.format.refs import FILTER_KIND, LONGEST_GRAM, FilterRef
from monocontext.records import dataclass, replace

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

GROUP_FRAMES = 1 << 16
"""Columns of one filter: 16 GiB of text, rows of 8 KiB."""
OVERLAP_BYTES = 4096
LEAST_FRAME_BYTES = 512
"""Smaller frames get no filter: it would be larger than the frames."""
LEAST_FRAMES = 9
"""A text of fewer frames gets no filter: two requests read all of it."""
FULL = 0.43
"""Share of a column's rows that may be set on average. Measured on kernel source, share of frames that pass without
holding a rare identifier: 9 % at 49 % full, 2.1 % at 31 %, 0.7 % at 18 %; each step doubles the space. Between logs,
40 % full with 2 ** 17 rows, and code, 48 % with 2 ** 15."""
MERGED_BYTES = 4 << 20
"""An append merges the last filter of a context with its own frames while both together are not larger than this."""
_TILE_FRAMES = 256
_ROWS_AT_ONCE_BYTES = 1 << 20
_IN_MEMORY_BYTES = 4 << 20


def overlap_for(frame_bytes: int) -> int:
    """Folded bytes after a frame that its column covers: 1.6 % of frames of 256 KiB."""
    return min(OVERLAP_BYTES, max(frame_bytes // 64, 64))


@dataclass(frozen=True, slots=True)
class Column:
    """The column of one frame in a filter."""

    rows: NDArray[np.uint8]
    """1 for each row that is set, at `MAX_BITS`."""
    folded_bytes: int
    """Folded length of the frame alone."""


def compute_column(frame: bytes, following: bytes, rows: NDArray[np.uint8] | None = None) -> Column:
    """The column of a frame (UTF-8), given the folded text after it. Runs in any thread or process.

    `rows`: zeros, to be used for it.
    """
    folded = fold_bytes(frame)
    return Column(set_column(folded, following, rows), len(folded))


def set_column(
    folded: bytes, following: bytes, rows: NDArray[np.uint8] | None = None, kind: str = FILTER_KIND
) -> NDArray[np.uint8]:
    """The column of a folded frame. Words count in it alone: counts of two texts do not join by OR, as grams do."""
    import numpy as np

    rows = np.zeros(HIGHEST, np.uint8) if rows is None else rows
    signs = Signs(folded, following)
    set_word_rows(rows[1 << MAX_BITS :], signs, len(folded))
    set_rows(rows, signs, kind=kind)
    return rows


def fold_head(frames: Iterable[bytes], size: int) -> bytes:
    """The first `size` folded bytes of the text that some frames hold; fewer at its end."""
    head = b""
    for frame in frames:
        near = _first_characters(frame, 2 * (size - len(head)) + 8)
        head += fold_bytes(near)
        if len(head) < size and len(near) < len(frame):
            head += fold_bytes(frame[len(near) :])
        if len(head) >= size:
            return head[:size]
    return head


def _first_characters(data: bytes, most: int) -> bytes:
    """The first `most` bytes of a text or fewer, cut between characters."""
    while 0 < most < len(data) and data[most] & 0xC0 == 0x80:
        most -= 1
    return data[:most]


class Covered(Protocol):
    """A text that filters are added to, such as a `Manifest`."""

    @property
    def frames(self) -> int: ...

    @property
    def filters(self) -> tuple[FilterRef, ...]: ...


class Columns:
    """The columns of the frames that one writer stores, in order. Feed frames, then `finish`, then `store`.

    The thread that feeds computes: threads of their own would take a third more of the processor, since numpy releases
    the interpreter a dozen times a frame, and twice the memory.
    """

    def __init__(self, overlap_bytes: int, least_frames: int):
        """`least_frames`: of fewer frames nothing is computed or stored."""
        self.overlap_bytes = overlap_bytes
        self.head = b""
        """The first folded bytes of the text, for the border to the text before it."""
        self.reach = overlap_bytes + LONGEST_GRAM[FILTER_KIND] - 1
        """Folded bytes after a frame that its column takes."""
        self.least_frames = least_frames
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._rows: NDArray[np.uint8] | None = None
        """Rows of the current frame, reused: fresh pages for each frame would cost as much as the grams."""
        self._groups: list[_Group] = []

    @property
    def frames(self) -> int:
        return sum(group.frames for group in self._groups)

    def feed(self, frame: bytes) -> None:
        """Add the next frame (UTF-8)."""
        if len(self.head) < self.reach:
            self.head += fold_head([frame], self.reach - len(self.head))
        self._waiting.append(frame)
        self._waiting_bytes += len(frame)
        if not self._groups and len(self._waiting) < self.least_frames:
            return
        while self._waiting_bytes - len(self._waiting[0]) >= self.reach:
            text_after = fold_head(list(self._waiting)[1:], self.reach)
            if len(text_after) < self.reach:
                return  # some marks fold to nothing: wait for more text
            self._compute(text_after)

    def finish(self) -> None:
        """Compute the columns of the frames that still wait: no frame follows."""
        if not self._groups and len(self._waiting) < self.least_frames:
            self._waiting.clear()
        while self._waiting:
            self._compute(fold_head(list(self._waiting)[1:], self.reach))
        for group in self._groups:
            group.flush()

    def _compute(self, text_after: bytes) -> None:
        import numpy as np

        frame = self._waiting.popleft()
        self._waiting_bytes -= len(frame)
        if self._rows is None:
            self._rows = np.empty(HIGHEST, np.uint8)
        self._rows.fill(0)
        self.add(compute_column(frame, text_after, self._rows))

    def add(self, computed: Column) -> None:
        """Add the column of the next frame. Its rows are then used up."""
        if not self._groups or self._groups[-1].frames == GROUP_FRAMES:
            if self._groups:
                self._groups[-1].flush()
            self._groups.append(_Group())
        self._groups[-1].add(computed)

    def store(
        self,
        put: Callable[[str, bytes], object],
        get: Callable[[str], bytes],
        base: Covered | None,
        last_frames: Callable[[], Iterator[bytes]],
    ) -> tuple[FilterRef, ...]:
        """Store filters for these frames as they follow the text of `base`, and return all filters of the new text.

        `last_frames` gives the frames of `base` from its end backwards: a needle may lie across the border. A short
        last filter of `base` is merged with the first new one (1 GET). 1 PUT for each 16 MiB.
        """
        earlier = list(base.filters) if base else []
        first = base.frames if base else 0
        border, border_frames = None, 0
        if first and self._groups:
            border, border_frames = _border_column(last_frames, self.head, self.reach)
        refs: list[FilterRef] = []
        for number, group in enumerate(self._groups):
            bytes_after = sum(later.folded_bytes for later in self._groups[number + 1 :])
            ref = FilterRef(
                kind=FILTER_KIND,
                fold=TABLES,
                first_frame=first,
                frames=group.frames,
                bits=group.bits,
                overlap_bytes=self.overlap_bytes,
                tail_frames=group.tail_frames(self.reach - bytes_after) if bytes_after < self.reach else 0,
                border_frames=border_frames,
                parts=(),
                seed=_fresh_seed(),
            )
            tail = earlier[-1] if earlier and not refs else None
            parts = _encode_parts(ref, group, border)
            if tail and border is not None and _can_merge(tail, ref):
                try:
                    ref, parts = _merge(tail, get, group, ref, border)
                    earlier.pop()
                except (DamagedData, NotFound):
                    pass  # a lost filter does not prevent a write: the new one has its own border
            refs.append(_put_parts(ref, parts, put))
            first += group.frames
            border, border_frames = None, 0  # the next group follows in the same stream: its columns overlap
        return (*earlier, *refs)


def _fresh_seed() -> int:
    """A random number that distinguishes the blocks of a new filter from those of all others, even of an equal text."""
    return int.from_bytes(os.urandom(4), "little")


def _put_parts(ref: FilterRef, parts: Iterable[bytes], put: Callable[[str, bytes], object]) -> FilterRef:
    """Store the objects of a filter, named by their content, and return its entry with their names."""
    names = []
    for part in parts:
        names.append(hashlib.sha256(part).hexdigest()[:32])
        named = replace(ref, parts=tuple(names))
        put(named.key(-1), part)
    return replace(ref, parts=tuple(names))


class _Group:
    """The columns of one filter, most of them in a temporary file: a tile after the other, each row by row."""

    def __init__(self) -> None:
        self.frames = 0
        self.bits = MIN_BITS
        """The columns so far need 2 ** bits rows."""
        self.top_bits = MAX_BITS
        """Tiles are stored with 2 ** top_bits rows."""
        self._grams: list[float] = []
        """Estimated number of different grams of each frame."""
        self._folded: deque[int] = deque(maxlen=1 << 13)
        self._tile: list[NDArray[np.uint8]] = []
        self._tile_frames = 0
        self._tiles: list[int] = []
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (lives as long as the group)
        # A commit that has to follow another writer's reads the rows again: the file lives as long as the group.
        weakref.finalize(self, self._file.close)

    def add(self, computed: Column) -> None:
        import numpy as np

        set_count = int(np.count_nonzero(computed.rows[: 1 << MAX_BITS]))
        self._grams.append(_estimate_grams(set_count))
        self._folded.append(computed.folded_bytes)
        place = self._tile_frames % 8
        if place == 0:
            self._tile.append(computed.rows.copy())
        else:
            bits = computed.rows.view(np.uint64)  # eight rows at once; a 1 stays in its byte
            bits <<= np.uint64(place)
            self._tile[-1] |= computed.rows
        self._tile_frames += 1
        self.frames += 1
        if self._tile_frames == _TILE_FRAMES:
            self.flush()

    def flush(self) -> None:
        """Write the tile to the file. The first tile sets the limit of stored rows: twice its own need."""
        import numpy as np

        self.bits = _bits_for(self._grams)
        if not self._tile:
            return
        if not self._tiles:
            self.top_bits = min(self.bits + 1, MAX_BITS)
        tile = shrink_rows(np.stack(self._tile), height(self.top_bits), axis=1)
        self._file.write(np.ascontiguousarray(tile.T).tobytes())
        self._tiles.append(len(tile))
        self._tile, self._tile_frames = [], 0
        self.bits = min(self.bits, self.top_bits)

    @property
    def folded_bytes(self) -> int:
        """Folded length of the group's last frames, enough of them to be more than any column reaches."""
        return sum(self._folded)

    def tail_frames(self, reach: int) -> int:
        """The number of last frames within `reach` folded bytes of the end: a needle may begin there and end after
        it."""
        total = 0
        for number, size in enumerate(reversed(self._folded), 1):
            total += size
            if total >= reach:
                return number
        return self.frames

    def rows(self, start: int, stop: int, bits: int) -> NDArray[np.uint8]:
        """Rows [start, stop) of `height(bits)`, packed eight columns a byte."""
        import numpy as np

        fold = 1 << (self.top_bits - bits)
        pieces, offset = [], 0
        for width in self._tiles:
            self._file.seek(offset + start * fold * width)
            data = self._file.read((stop - start) * fold * width)
            tile = np.frombuffer(data, np.uint8).reshape((stop - start) * fold, width)
            pieces.append(shrink_rows(tile, stop - start, axis=0))
            offset += width * height(self.top_bits)
        return np.concatenate(pieces, axis=1)


def _estimate_grams(set_count: int) -> float:
    """The most likely number of different grams that set `set_count` rows of 2 ** MAX_BITS."""
    import math

    rows = 1 << MAX_BITS
    return -rows * math.log1p(-min(set_count, rows - 1) / rows)


def _bits_for(grams: Sequence[float]) -> int:
    """The least height at which columns with this many distinct grams are at most `FULL` on average."""
    import numpy as np

    counts = np.asarray(grams)
    for bits in range(MIN_BITS, MAX_BITS):
        if float(np.mean(-np.expm1(-counts / (1 << bits)))) <= FULL:
            return bits
    return MAX_BITS


def _border_column(
    last_frames: Callable[[], Iterator[bytes]], head: bytes, reach: int
) -> tuple[NDArray[np.uint8] | None, int]:
    """The column of the text across the beginning of new text, and the number of frames before it that the column
    covers.

    None where the earlier text may not be read: its last frames may then hold anything.
    """
    before, number = b"", 0
    try:
        for number, frame in enumerate(last_frames(), 1):  # noqa: B007  (used after the loop)
            before = fold_bytes(frame) + before
            if len(before) >= reach:
                break
    except ForeignObject:
        return None, 0
    import numpy as np

    column = np.zeros(HIGHEST, np.uint8)
    set_rows(column, Signs(before[-reach:], head))
    return column, number


def _encode_parts(ref: FilterRef, group: _Group, border: NDArray[np.uint8] | None) -> Iterator[bytes]:
    """The objects of a new filter, in order."""
    import numpy as np

    layout = FilterLayout(ref)
    folded = None if border is None else shrink_rows(border, layout.rows, axis=0)

    def encode_rows(start: int, stop: int) -> bytes:
        rows = group.rows(start, stop, ref.bits)
        if folded is not None:
            at = ref.frames // 8
            if at == rows.shape[1]:
                rows = np.concatenate([rows, np.zeros((len(rows), 1), np.uint8)], axis=1)
            rows[:, at] |= folded[start:stop] << np.uint8(ref.frames % 8)
        return layout.encode(rows, start)

    for first, last in layout.row_ranges():
        step = max(_ROWS_AT_ONCE_BYTES // layout.row_bytes, layout.rows_per_block)
        step -= step % layout.rows_per_block
        yield b"".join(encode_rows(start, min(start + step, last)) for start in range(first, last, step))


def _can_merge(tail: FilterRef, ref: FilterRef) -> bool:
    """Whether the last filter of a text and a new one are small, of the same kind and neighbours."""
    same = (tail.kind, tail.fold, tail.overlap_bytes) == (ref.kind, ref.fold, ref.overlap_bytes)
    similar = abs(tail.bits - ref.bits) <= 1 and ref.border_frames <= tail.frames
    near = same and similar and tail.stop_frame == ref.first_frame and tail.columns is None
    return near and FilterLayout(tail).size_bytes + FilterLayout(ref).size_bytes <= MERGED_BYTES


def _merge(
    tail: FilterRef, get: Callable[[str], bytes], group: _Group, ref: FilterRef, border: NDArray[np.uint8]
) -> tuple[FilterRef, Iterator[bytes]]:
    """One filter over the frames of two consecutive ones."""
    import numpy as np

    bits = min(tail.bits, ref.bits)
    old = _unpack(tail, get, bits)
    new = np.unpackbits(group.rows(0, height(bits), bits), axis=1, count=ref.frames, bitorder="little")
    # The text across the border between the two goes into the columns of the frames that the border covers.
    across = shrink_rows(border, height(bits), axis=0)
    frames = old[:, : tail.frames]
    frames[:, tail.frames - ref.border_frames :] |= across[:, None]
    joined = np.concatenate([frames, new, old[:, tail.frames :]], axis=1)
    merged = replace(
        ref,
        first_frame=tail.first_frame,
        frames=tail.frames + ref.frames,
        bits=bits,
        tail_frames=ref.tail_frames if ref.tail_frames < ref.frames else ref.frames + ref.border_frames,
        border_frames=tail.border_frames,
        seed=_fresh_seed(),
    )
    layout = FilterLayout(merged)
    packed = np.packbits(joined, axis=1, bitorder="little")
    return merged, (layout.encode(packed[first:last], first) for first, last in layout.row_ranges())


def can_join(before: FilterRef, ref: FilterRef) -> bool:
    """Whether two stored filters may become one: they follow each other, with a border column between them."""
    same = (before.fold, before.overlap_bytes, before.stop_frame) == (ref.fold, ref.overlap_bytes, ref.first_frame)
    similar = before.kind == ref.kind == FILTER_KIND and abs(before.bits - ref.bits) < 2
    similar = similar and before.columns is ref.columns is None
    return same and similar and 0 < ref.border_frames <= before.frames


def join(refs: Sequence[FilterRef], get: Callable[[str], bytes], put: Callable[[str, bytes], object]) -> FilterRef:
    """Store one filter over the frames of several that follow each other (1 GET and 1 PUT a part), all in memory."""
    import numpy as np

    bits, last = min(ref.bits for ref in refs), refs[-1]
    packed = []
    for ref in refs:
        layout = FilterLayout(ref)
        rows = np.concatenate([layout.decode(part, get(key)) for part, key in enumerate(ref.keys)])
        packed.append(shrink_rows(rows, height(bits), axis=0))
    joined = replace(
        refs[0],
        frames=last.stop_frame - refs[0].first_frame,
        bits=bits,
        tail_frames=last.tail_frames if last.tail_frames < last.frames else last.frames + last.border_frames,
        seed=_fresh_seed(),
    )
    layout = FilterLayout(joined)

    def encode(start: int, stop: int) -> bytes:
        columns: list[NDArray[np.uint8]] = []
        for ref, rows in zip(refs, packed, strict=True):
            count = FilterLayout(ref).columns
            unpacked = np.unpackbits(rows[start:stop], axis=1, count=count, bitorder="little")
            if columns:  # the text across the border goes into the columns of the frames that the border covers
                columns[-1][:, -ref.border_frames :] |= unpacked[:, ref.frames :]
            else:
                border = unpacked[:, ref.frames :]
            columns.append(unpacked[:, : ref.frames])
        return layout.encode(np.packbits(np.concatenate([*columns, border], axis=1), axis=1, bitorder="little"), start)

    def parts() -> Iterator[bytes]:
        step = max(_ROWS_AT_ONCE_BYTES // joined.frames, layout.rows_per_block)
        step -= step % layout.rows_per_block
        for first, stop in layout.row_ranges():
            yield b"".join(encode(start, min(start + step, stop)) for start in range(first, stop, step))

    return _put_parts(joined, parts(), put)


def _unpack(ref: FilterRef, get: Callable[[str], bytes], bits: int) -> NDArray[np.uint8]:
    """A whole stored filter (1 GET a part), one byte a bit, shape (height(bits), columns)."""
    import numpy as np

    layout = FilterLayout(ref)
    rows = np.concatenate([layout.decode(part, get(key)) for part, key in enumerate(ref.keys)])
    unpacked = np.unpackbits(rows, axis=1, count=layout.columns, bitorder="little")
    return shrink_rows(unpacked, height(bits), axis=0)
