"""What search filters are asked, and what their answers mean. Fetches nothing itself but through `Records`."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

from monocontext.candidates import Answer
from monocontext.filters.grams import GRAM_BYTES
from monocontext.filters.layout import Layout
from monocontext.filters.planner import Planner, Records
from monocontext.manifest import Manifest
from monocontext.needs import Need as Sought
from monocontext.needs import literals
from monocontext.plan import FILTER_GAP_BYTES, Need

LEAST_FRAMES = 8
"""A search in fewer frames asks no filter: that would be a round trip of its own."""
DENSE = 0.4
"""Share of frames from which on candidates are no candidates: a pass without gaps is cheaper."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a filter, as the cache keeps it."""

    rows: bytes

    @property
    def size_bytes(self) -> int:
        return len(self.rows) + 200


@dataclass(frozen=True, slots=True)
class Told:
    """What filters said of a search, as the cache keeps it: a loop of `find` asks again and again."""

    runs: tuple[tuple[int, int], ...]
    asked_bytes: int
    """What was asked for takes so much, about."""

    @property
    def size_bytes(self) -> int:
        return 150 * len(self.runs) + self.asked_bytes + 200


class Asking:
    """The search filters of one text: which of their blocks a search takes, and where they let it look."""

    def __init__(self, manifest: Manifest, records: Records):
        self._manifest = manifest
        self._records = records
        self._planner = Planner(manifest.filters, manifest.frames)

    def useless(self, need: Sought | None, frames: int) -> str:
        """Why asking is no use in so many frames; empty where it is."""
        if need is None:
            return "it has no text that every match holds"
        if not self._manifest.filters:
            return "the context has no search filters"
        if frames < LEAST_FRAMES:
            return f"filters are asked where a text has {LEAST_FRAMES} frames or more"
        return ""

    def blocks(self, need: Sought) -> list[Need]:
        """What has to be fetched to be told."""
        blocks = {(layout, layout.block_of(row)): None for layout, row in self._planner.asked(need)}
        return [_block_need(*block) for block in blocks]

    def told(
        self, need: Sought, within_line: bool, blocks: Mapping[Hashable, Block], records: Records | None = None
    ) -> Told:
        """What those blocks say. Records of frames are asked for only by literals far behind a match's beginning."""

        def row(layout: Layout, number: int) -> bytes:
            block = layout.block_of(number)
            return layout.row(blocks[layout.address(block)[0], block].rows, number)

        frames = self._planner.candidates(need, row, records or self._records, within_line)
        runs = ((0, self._manifest.frames),) if frames is None else _runs(frames)
        return Told(runs, sum(len(literal.text) for literal in literals(need)))

    def answer(self, told: Told, need: Sought, within: range) -> Answer:
        """What that means for some neighbouring frames."""
        first, last = within.start, within.stop
        low = bisect_right(told.runs, first, key=lambda run: run[1])
        high = bisect_left(told.runs, last, key=lambda run: run[0])
        runs = [(max(a, first), min(b, last)) for a, b in told.runs[low:high]]
        frames, left = len(within), sum(b - a for a, b in runs)
        if left <= DENSE * frames:
            return Answer(frames, runs, "")
        if self._planner.asked(need):
            return Answer(frames, None, f"{left:,} of {frames:,} frames may hold it")
        return Answer(frames, None, f"filters know of texts of {GRAM_BYTES} bytes or more")


def _block_need(layout: Layout, block: int) -> Need:
    key, offset = layout.address(block)
    size = layout.block_bytes

    def decode(body: memoryview) -> Block:
        return Block(layout.check(bytes(body), block))

    return Need((key, block), key, offset, size, size, decode, gap_bytes=FILTER_GAP_BYTES)


def _runs(frames: Any) -> tuple[tuple[int, int], ...]:
    """The stretches of an array of booleans that are true, half-open."""
    import numpy as np

    edges = np.flatnonzero(np.diff(frames.view(np.int8), prepend=0, append=0))
    return tuple(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))
