"""Filters of changed texts: every frame keeps its own column, or has none, through any changes and joins."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from monocontext.format.filters import joining
from monocontext.format.filters.building import Columns
from monocontext.format.filters.columns import StoredRows, compute_column
from monocontext.format.filters.grams import shrink_rows
from monocontext.format.filters.joining import FrameChange, append_filters, apply_changes, join, put_filter, runs_of
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.refs import FilterRef, check_filters
from monocontext.records import replace
from tests.budget import examples


class Text:
    """Frames of made-up text, and filters of them in a dict of objects."""

    def __init__(self, chance: random.Random, frames: int, sizes: tuple[int, ...] = (1,)) -> None:
        self.chance, self.objects, self.sizes = chance, dict[str, bytes](), sizes
        self.frames: list[bytes] = [self.frame() for _ in range(frames)]
        self.covered: list[bool] = [True] * frames
        self.refs = self.made([range(frames)])

    def frame(self) -> bytes:
        words = (f"{self.chance.getrandbits(60):x} " for _ in range(self.chance.choice(self.sizes)))
        return "".join(word * 3 for word in words).encode()

    def made(self, ranges: list[range]) -> tuple[FilterRef, ...]:
        columns = Columns(64, 1)
        for numbers in ranges:
            for number in numbers:
                columns.feed(self.frames[number])
                columns.end()  # each column covers its own frame alone
        columns.finish()
        return columns.store(self.objects.__setitem__, ranges)

    def change(self) -> None:
        """Replace some frames by others, anywhere; half of them get columns."""
        changes: list[FrameChange] = []
        ranges: list[range] = []
        frames, covered, done = [], [], 0
        for first in sorted(self.chance.sample(range(len(self.frames) + 1), self.chance.randrange(1, 4))):
            if first < done:
                continue
            stop = min(first + self.chance.randrange(4), len(self.frames))
            stale = max(first - self.chance.randrange(2), done)
            frames += self.frames[done:first]
            covered += [*self.covered[done:stale], *[False] * (first - stale)]
            new = self.chance.randrange(4)
            if new and self.chance.random() < 0.5:
                ranges.append(range(len(frames), len(frames) + new))
            frames += [self.frame() for _ in range(new)]
            covered += [False] * new
            changes.append(FrameChange(stale, first, stop, new - (stop - first)))
            done = stop
        self.frames, self.covered = [*frames, *self.frames[done:]], [*covered, *self.covered[done:]]
        self.refs = apply_changes(self.refs, changes)
        if ranges:
            self.refs = append_filters(self.refs, self.made(ranges), self.objects.__getitem__, self.objects.__setitem__)
        for numbers in ranges:
            self.covered[numbers.start : numbers.stop] = [True] * len(numbers)

    def check(self) -> None:
        check_filters(self.refs, len(self.frames))
        result: list[int] = []
        for ref in self.refs:
            rows = StoredRows(ref, self.objects.__getitem__).rows
            columns = np.unpackbits(rows, axis=1, count=ref.width, bitorder="little")
            for first, column, count in ref.runs:
                for number in range(count):
                    made = shrink_rows(compute_column(self.frames[first + number], b""), len(columns), axis=0)
                    stored = columns[:, column + number]
                    assert not (made & ~stored).any(), "a gram is missing"
                    assert len(self.sizes) > 1 or (made == stored).all()
                    result.append(first + number)
            check_sparsity(FilterLayout(ref), self.objects, columns)
        assert sorted(result) == [number for number, covered in enumerate(self.covered) if covered]


def check_sparsity(layout: FilterLayout, objects: dict[str, bytes], columns: np.ndarray) -> None:
    """A large filter says how many bits each of its rows of grams has, about."""
    if not layout.is_small:
        key, start, size = layout.address(layout.blocks)
        stored = layout.check(objects[key][start : start + size], layout.blocks)
        for row, count in enumerate(columns[: 2 * len(stored)].sum(axis=1).tolist()):
            sparsity = stored[row // 2] >> row % 2 * 4 & 15
            assert not count or abs(4 * math.sqrt(math.log2(layout.columns / count)) - sparsity) <= 0.5


@pytest.mark.parametrize("sizes", [(1,), (1, 8, 40)])
@pytest.mark.parametrize("seed", range(examples(12)))
def test_a_frame_keeps_its_column_or_has_none(
    seed: int, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("monocontext.format.filters.layout.WHOLE_BYTES", seed % 2 << 20)
    text = Text(random.Random(seed), 30, sizes)
    for _ in range(12):
        text.change()
    text.check()
    if len(text.refs) > 1:
        text.refs = (join(text.refs, text.objects.__getitem__, text.objects.__setitem__),)
        text.check()


@pytest.mark.parametrize(("sizes", "most_times", "most_filters"), [((1,), 2, 5), ((1, 8), 2, 5), ((1, 8), 32, 2)])
def test_few_filters_after_many_edits(sizes: tuple[int, ...], most_times: int, most_filters: int) -> None:
    """Their number grows with the logarithm of the edits, so does what an edit writes again."""
    text = Text(random.Random(1), 600, sizes)
    written = []
    for number in range(200):
        text.refs = apply_changes(text.refs, [FrameChange(3 * number, 3 * number, 3 * number + 1, 0)])
        new = text.made([range(3 * number, 3 * number + 1)])
        get, put = text.objects.__getitem__, text.objects.__setitem__
        text.refs = append_filters(text.refs, new, get, put, most_times=most_times)
        written.append(text.refs[-1].width)
        assert len(text.refs) <= most_filters
    assert sum(written) / len(written) < joining.SMALL_FRAMES


def test_runs() -> None:
    assert runs_of([range(5, 7), range(7, 10), range(20, 21)]) == ((5, 0, 5), (20, 5, 1))
    (ref,) = Text(random.Random(0), 10).refs
    assert [item.runs for item in apply_changes([ref], [FrameChange(3, 4, 6, -1)])] == [((0, 0, 3), (5, 6, 4))]
    assert [item.runs for item in apply_changes([ref], [FrameChange(4, 4, 4, 2)])] == [((0, 0, 4), (6, 4, 6))]
    assert apply_changes([ref], [FrameChange(0, 0, 10, 0)]) == ()


def test_rows_that_fill_a_block_each() -> None:
    """As of a text of more than 4096 frames, 1 GiB."""
    text = Text(random.Random(0), 10)
    get, put = text.objects.__getitem__, text.objects.__setitem__
    wide = replace(text.refs[0], width=5000)
    wide = put_filter(wide, lambda start, stop: np.full((stop - start, 625), 255, np.uint8), put)
    for ref in (joining.clear_unused(wide, get, put), join([wide], get, put)):
        rows = StoredRows(ref, get).rows
        assert np.unpackbits(rows, axis=1, bitorder="little").sum(axis=1).tolist() == [10] * len(rows)
