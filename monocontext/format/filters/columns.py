"""Compute the columns of frames, and collect those of a new filter in a temporary file, in bounded memory.

A column has a byte for each of the `HIGHEST` rows: 1 if the text of the frame sets the row. This module needs numpy, so
only what builds or checks filters imports it.
"""

from __future__ import annotations

import hashlib
import math
import tempfile
import weakref
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from monocontext.errors import DamagedData, MonocontextError
from monocontext.format.filters import grams as hashing
from monocontext.format.filters.grams import HIGHEST, MAX_BITS, MIN_BITS, TABLES, fold_bytes, height, shrink_rows
from monocontext.format.filters.layout import CHECKSUM_BYTES, FilterLayout
from monocontext.format.refs import GRAM_BYTES, FilterRef

_GRAMS_AT_ONCE = 1 << 15
"""The most grams that are hashed at once: 256 KiB fit the processor's cache; with less, threads would wait."""
_GROUPS = 4  # the words of a slot are counted in this many groups, of which the most frequent one counts
_LONGEST_WORD = 99  # longer words count as words of this length
_CJK_LEADS = range(0xE3, 0xEA)  # the first bytes of CJK characters
_MASKS = np.array([(1 << 8 * min(size, hashing.EDGE_BYTES)) - 1 for size in range(_LONGEST_WORD + 1)], np.uint64)
"""The mask of the first 8 bytes of a word, by its length."""
_ENDING_SIZES = np.zeros(1 << 16, np.int8)
"""The length of a word's ending by the last two bytes of the word. For 3, the byte before must be an `i`."""
_ENDING_SIZES[ord("e") << 8 : (ord("e") + 1) << 8] = 1
for _ending in hashing.ENDINGS[:-1]:
    _ENDING_SIZES[int.from_bytes(_ending[-2:], "little")] = len(_ending)
FULL = 0.45  # the share of a column's rows that may be set on average (docs/decisions/005-search-filters.md)
_TILE_FRAMES = 256  # the columns that are in memory at once, and read together: 8 MiB of the highest filter
_IN_MEMORY_BYTES = 4 << 20  # a file of up to this size is kept in memory
_TILE_ROW_BYTES = _TILE_FRAMES // 8


def compute_column(frame: bytes, text_after: bytes, rows: NDArray[np.uint8] | None = None) -> NDArray[np.uint8]:
    """The column of a frame (UTF-8) and the folded text after it. `rows`: zeros to fill; by default a new array."""
    folded = fold_bytes(frame)
    rows = np.zeros(HIGHEST, np.uint8) if rows is None else rows
    _set_word_rows(rows[1 << MAX_BITS :], folded)
    _set_rows(rows, folded + text_after)
    return rows


def _set_rows(column: NDArray[np.uint8], folded: bytes) -> None:
    """Set the rows of all grams of a text in a column of zeros of height 2 ** MAX_BITS (1 ms for 256 KiB)."""
    count = max(len(folded) - GRAM_BYTES + 1, 0)
    eights = np.ndarray(count, "<u8", folded + bytes(8 - GRAM_BYTES), 0, 1)  # the 8 bytes that begin at each byte
    buffer = np.empty(min(_GRAMS_AT_ONCE, count), np.uint64)  # reused: fresh memory costs more than the arithmetic
    for start in range(0, count, _GRAMS_AT_ONCE):
        piece = eights[start : start + _GRAMS_AT_ONCE]
        grams = buffer[: len(piece)]
        # The multiplication shifts out the bytes after the gram.
        np.multiply(piece, np.uint64(hashing.MULTIPLIER << (64 - hashing.GRAM_BITS)), out=grams)
        grams >>= np.uint64(64 - MAX_BITS)
        column[grams.view(np.int64)] = 1


def _set_word_rows(rows: NDArray[np.uint8], folded: bytes) -> None:
    """Set the word rows of a folded frame. `rows`: those of a column of the highest filter, all 0 (1 ms a frame)."""
    slots = len(rows) // len(hashing.LEVELS)
    counts = np.bincount(_word_hashes(folded), minlength=_GROUPS * slots)
    most = counts.reshape(_GROUPS, slots).max(axis=0)
    for number, level in enumerate(hashing.LEVELS):
        rows[number * slots : (number + 1) * slots] = most >= level


def _word_hashes(folded: bytes) -> NDArray[np.int64]:
    """The hash of each word of a folded text, and of each pair of CJK characters: those that `grams.word_rows` uses."""
    edge = hashing.EDGE_BYTES
    data = bytes(edge) + folded + bytes(edge)
    raw = np.frombuffer(data, np.uint8)
    # the 8 bytes from each offset on
    eights: NDArray[np.uint64] = np.ndarray(len(data) - edge + 1, "<u8", data, 0, 1)
    # 1. find the words; comparisons of all bytes at once take half the time of a table
    inside = (raw | np.uint8(32)) - np.uint8(ord("a")) < 26
    inside |= raw == ord("_")
    inside |= raw - np.uint8(ord("0")) < 10
    inside |= raw >= 128
    threes = inside[:-2] & inside[1:-1]
    threes &= inside[2:]
    edges = np.flatnonzero(threes[1:] != threes[:-1])
    starts, stops = edges[::2] + 1, edges[1::2] + hashing.LEAST_WORD_BYTES
    # 2. leave out an `s` at the end
    stops = stops - ((raw.take(stops - 1) == ord("s")) & (stops - starts > hashing.LEAST_WORD_BYTES))
    # 3. leave out an ending, by the last two bytes (and the one before, for `ing` and `ion`)
    endings = _ENDING_SIZES.take(raw.take(stops - 1).astype(np.uint16) << np.uint16(8) | raw.take(stops - 2))
    longest = np.flatnonzero(endings == 3)
    endings[longest] *= raw.take(stops.take(longest) - 3) == ord("i")
    sizes = np.minimum(stops - starts, _LONGEST_WORD).astype(np.int8)
    endings *= sizes - endings >= hashing.LEAST_WORD_BYTES
    sizes -= endings
    # 4. hash the first and the last eight bytes of what remains
    mixed = eights[starts]
    mixed &= _MASKS.take(sizes)
    mixed *= np.uint64(hashing.FIRST_FACTOR)
    longer = np.flatnonzero(sizes > edge)
    mixed[longer] ^= eights[stops.take(longer) - endings.take(longer) - edge] * np.uint64(hashing.LAST_FACTOR)
    if not folded.isascii():  # pairs of characters of 3 bytes
        leads = raw - np.uint8(_CJK_LEADS.start) < len(_CJK_LEADS)
        pairs = np.flatnonzero(leads[:-3] & leads[3:])
        mixed = np.concatenate([mixed, (eights[pairs] & _MASKS[6]) * np.uint64(hashing.FIRST_FACTOR)])
    mixed *= np.uint64(hashing.MIX_FACTOR)
    mixed >>= np.uint64(64 - hashing.HASH_BITS)
    hashes: NDArray[np.int64] = mixed.view(np.int64)
    return hashes


class ColumnFile:
    """The columns of one filter. Add those of the frames in order, then `flush`, then read `rows`."""

    def __init__(self) -> None:
        self.frames = 0
        self.bits = MIN_BITS  # the columns so far need 2 ** bits rows
        self.top_bits = MAX_BITS  # tiles are stored with 2 ** top_bits rows
        self._rows = np.empty(HIGHEST, np.uint8)  # reused: fresh memory would cost as much as the grams
        self._grams: list[float] = []  # the estimated number of distinct grams of each frame
        self._tile: list[NDArray[np.uint8]] = []
        self._tile_frames = 0
        self._tile_widths: list[int] = []  # the width of each tile in the file, in bytes
        self._file = tempfile.SpooledTemporaryFile(_IN_MEMORY_BYTES)  # noqa: SIM115  (lives as long as this object)
        # It is closed with this object: after a conflict with another writer, the next commit reads the rows again.
        weakref.finalize(self, self._file.close)

    def add(self, frame: bytes, text_after: bytes) -> None:
        """Add the column of the next frame. `text_after`: the folded text after it."""
        self._rows.fill(0)
        column = compute_column(frame, text_after, self._rows)
        rows = 1 << MAX_BITS
        share = min(int(np.count_nonzero(column[:rows])), rows - 1) / rows
        self._grams.append(-rows * math.log1p(-share))  # the most likely number of distinct ones
        bit = self._tile_frames % 8  # the bit of this frame in the bytes of eight frames
        if bit == 0:
            self._tile.append(column.copy())
        else:
            eights = column.view(np.uint64)  # eight rows at once; a 1 stays in its byte
            eights <<= np.uint64(bit)
            self._tile[-1] |= column
        self._tile_frames += 1
        self.frames += 1
        if self._tile_frames == _TILE_FRAMES:
            self.flush()

    def flush(self) -> None:
        """Write the columns added since the last flush. The first flush limits the rows to twice those it needs."""
        grams, lower = np.asarray(self._grams), range(MIN_BITS, MAX_BITS)
        self.bits = next((bits for bits in lower if np.mean(-np.expm1(-grams / (1 << bits))) <= FULL), MAX_BITS)
        if not self._tile:
            return
        if not self._tile_widths:
            self.top_bits = min(self.bits + 1, MAX_BITS)
        tile = shrink_rows(np.stack(self._tile), height(self.top_bits), axis=1)
        self._file.write(np.ascontiguousarray(tile.T).tobytes())
        self._tile_widths.append(len(tile))
        self._tile, self._tile_frames = [], 0
        self.bits = min(self.bits, self.top_bits)

    def rows(self, start: int, stop: int, bits: int) -> NDArray[np.uint8]:
        """Rows [start, stop) of the table, shrunk to `height(bits)` rows, with eight columns in each byte."""
        merged_rows = 1 << (self.top_bits - bits)  # stored rows that become one
        pieces, offset = [], 0
        for width in self._tile_widths:
            self._file.seek(offset + start * merged_rows * width)
            data = self._file.read((stop - start) * merged_rows * width)
            tile = np.frombuffer(data, np.uint8).reshape(-1, width)
            pieces.append(shrink_rows(tile, stop - start, axis=0))
            offset += width * height(self.top_bits)
        return np.concatenate(pieces, axis=1)


class StoredRows:
    """The rows of a stored filter, in a temporary file that is mapped into memory."""

    def __init__(self, ref: FilterRef, get: Callable[[str], bytes], *, checks_blocks: bool = False):
        """Read and check the objects of a filter (1 GET each). `checks_blocks`: also the checksum of each block."""
        self._ref, self._layout = ref, FilterLayout(ref)
        self.errors: list[MonocontextError] = []  # what is wrong with its objects; then the rows cannot be read
        self._tile_number, self._tile = -1, np.empty((0, 0), np.uint8)  # the rows that `holds` read last
        if len(ref.parts) != self._layout.parts:
            message = f"expected {self._layout.parts} objects, found {len(ref.parts)}"
            self.errors.append(DamagedData(f"{ref.keys[0]}: {message}"))
            return
        # Written to the file, not to a map of it: that would kill the process on a full disk.
        with tempfile.TemporaryFile() as file:
            for part, key in enumerate(ref.keys):
                try:
                    data = get(key)
                    if (name := hashlib.sha256(data).hexdigest()[:32]) != ref.parts[part]:
                        self.errors.append(DamagedData(f"{key}: its content has the SHA-256 {name}..."))
                    stored = self._layout.check_part(part, data, checks_blocks=checks_blocks)
                    blocks = np.frombuffer(stored, np.uint8).reshape(-1, self._layout.block_bytes)
                    file.write(np.ascontiguousarray(blocks[:, :-CHECKSUM_BYTES]).data)
                except MonocontextError as error:
                    self.errors.append(error)
            if not self.errors:
                file.flush()
                self.rows = np.memmap(file, np.uint8, "r", shape=(self._layout.rows, self._layout.row_bytes))

    def read(self, start: int, stop: int, bits: int) -> NDArray[np.uint8]:
        """Rows [start, stop) of a table of `height(bits)` rows, a byte for each bit. A lower filter repeats rows."""
        if bits > self._ref.bits:
            times = height(bits) // self._layout.rows
            packed = self.rows[np.arange(start, stop) // times]
        else:
            merged_rows = self._layout.rows // height(bits)
            packed = shrink_rows(self.rows[start * merged_rows : stop * merged_rows], stop - start, axis=0)
        return np.unpackbits(packed, axis=1, count=self._layout.columns, bitorder="little")

    def holds(self, column: int, frame: bytes, text_after: bytes) -> bool:
        """Whether a stored column has all rows of a frame and the folded text after it. True if that cannot be told:
        for a damaged filter, one with other folding tables, and one that is higher than ours."""
        if self.errors or self._ref.fold != TABLES or self._ref.bits > MAX_BITS:
            return True
        number, position = divmod(column, _TILE_FRAMES)
        if number != self._tile_number:
            tile = self.rows[:, number * _TILE_ROW_BYTES : (number + 1) * _TILE_ROW_BYTES]
            self._tile_number, self._tile = number, np.ascontiguousarray(tile)
        stored = self._tile[:, position // 8] >> position % 8
        computed = compute_column(frame, text_after[: self._ref.reach_bytes])
        return not (shrink_rows(computed, len(stored), 0) & ~stored & 1).any()
