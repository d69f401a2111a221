"""Rows of grams: what a text sets, a needle in it finds, whatever stands around it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from monocontext.format.filters.columns import compute_column
from monocontext.format.filters.grams import MAX_BITS, MAX_LITERAL_ROWS, fold, height, rows_to_read, shrink_rows
from monocontext.format.refs import GRAM_BYTES
from tests.budget import examples

PARTS = [
    *("dead", "beef", "0", "12", "12:34:56", "99-", "a1 b2", " ", "\n", ", ", "::", "_", "x", "the ", "İ", "ß", "é"),
    *("Code", "code of", "run-time", "e\u0307", "東", "京都。", "Ж", "жук ", "😀", "\0", "-", "(", "ﬃ", "config", "=="),
]


def rows_of_grams(folded: bytes) -> list[int]:
    """The rows of a text as docs/format.md has them, byte by byte."""
    grams = {folded[start : start + 5] for start in range(len(folded) - 4)}
    return sorted({int.from_bytes(gram, "little") * 0x9E3779B97F % (1 << 40) >> (40 - MAX_BITS) for gram in grams})


def made(dice: random.Random, most: int) -> str:
    return "".join(dice.choices(PARTS, k=dice.randrange(most)))


@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_text_has_the_rows_of_its_grams(seed: int) -> None:
    dice = random.Random(seed)
    for most in (2, 4, 8, 30, 300, 100_000 if seed == 0 else 3_000):
        folded = fold(made(dice, most)).encode()
        column = compute_column(folded, b"")
        assert np.flatnonzero(column[: 1 << MAX_BITS]).tolist() == rows_of_grams(folded)


@pytest.mark.slow
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("seed", range(examples(10)))
def test_a_needle_has_its_rows_wherever_it_stands(seed: int, ascii_only: bool) -> None:
    """In a frame or from it into the text behind, of which the column covers a part; in any case."""
    dice = random.Random(seed)
    asked = 0
    for bits in (9, 13, MAX_BITS):
        text, behind = made(dice, 300), made(dice, 100)
        frame, following = fold(text).encode(), fold(behind).encode()
        overlap = dice.randrange(1, 100)
        reach = overlap + GRAM_BYTES - 1
        column = shrink_rows(compute_column(frame, following[:reach])[: height(MAX_BITS)], height(bits), 0)
        whole = text + behind
        for _ in range(100):
            start = dice.randrange(len(text) + 1)
            needle = whole[start : start + dice.choice([3, 4, 5, 6, 8, 12, 30, 200])]
            if start == len(text) or not needle:
                continue
            rows = rows_to_read(needle.upper() if ascii_only else needle.swapcase(), bits, overlap, ascii_only)
            if ascii_only and not needle.isascii():
                rows = rows_to_read(needle, bits, overlap, True)
            assert len(rows) <= MAX_LITERAL_ROWS
            assert all(column[row] for row in rows), (needle, bits, overlap)
            asked += len(rows) > 0
    assert asked > 60


@pytest.mark.parametrize(
    ("needle", "rows"),
    [("", 0), ("word", 0), ("éxy", 0), ("WORDS", 1), ("東京", 2), ("needle", 2), (" ".join(map(str, range(99))), 64)],
)
def test_needles_that_have_rows(needle: str, rows: int) -> None:
    assert len(rows_to_read(needle, MAX_BITS, 4096)) == rows
