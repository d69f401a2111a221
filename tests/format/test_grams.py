"""Rows of grams: what a text sets, a needle in it finds, whatever stands around it."""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

from monocontext.format.filters.case_folding import fold
from monocontext.format.filters.frame_column import compute_column
from monocontext.format.filters.grams import MAX_BITS, MAX_ROWS, height, rows_to_read, shrink_rows
from monocontext.format.refs import LONGEST_GRAM
from tests.budget import examples

PARTS = [
    *("dead", "beef", "0", "12", "12:34:56", "99-", "a1 b2", " ", "\n", ", ", "::", "_", "x", "the ", "İ", "ß", "é"),
    *("Code", "code of", "run-time", "e\u0307", "東", "京都。", "Ж", "жук ", "😀", "\0", "-", "(", "ﬃ", "config", "=="),
]


def grams_of(folded: bytes) -> list[bytes]:
    """The grams of a text as docs/format.md has them, byte by byte."""
    found = []
    for at in range(len(folded)):
        four = folded[at : at + 4]
        if len(four) == 4 and max(four) < 128 and any(byte not in b"0123456789abcdef" for byte in four):
            found.append(four)
        elif at + 5 <= len(folded):
            found.append(folded[at : at + 5])
        if re.fullmatch(b"[a-z0-9_]{3}", folded[at : at + 3]):
            found.append(folded[at : at + 3])
        eight = folded[at : at + 8]
        stands_between = [is_of_word(byte) for byte in eight[1:6]] == [True, True, True, False, True]
        if len(eight) == 8 and stands_between and not eight[3:4].isdigit():
            found.append(eight)
    return found


def is_of_word(byte: int) -> bool:
    return byte >= 128 or chr(byte) in "abcdefghijklmnopqrstuvwxyz0123456789_"


def row_of(gram: bytes) -> int:
    x = int.from_bytes(gram, "little")
    if len(gram) == 3:
        return x * 0x9E3779 % (1 << 24) >> (24 - MAX_BITS)
    if len(gram) == 8:
        return x * 0xC2B2AE3D27D4EB4F % (1 << 64) >> (64 - MAX_BITS)
    return x * 0x9E3779B97F % (1 << 40) >> (40 - MAX_BITS)


def rows_of_grams(folded: bytes) -> list[int]:
    return sorted(set(map(row_of, grams_of(folded))))


def made(dice: random.Random, most: int) -> str:
    return "".join(dice.choices(PARTS, k=dice.randrange(most)))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("Word", [0x10F1E]),
        ("wo", []),
        ("wor", [0x1ED00]),
        ("1234", []),
        ("12345", [0x15C93]),
        ("ther one", [0x174CF]),
        ("東亰", [0x33F6B]),
    ],
)
def test_rows_are_as_ever(text: str, rows: list[int]) -> None:
    found = np.flatnonzero(compute_column(fold(text).encode(), b"")[: 1 << MAX_BITS]).tolist()
    assert set(rows) <= set(found)
    assert set(rows) <= set(rows_to_read(text, MAX_BITS, 4096))


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
        reach = overlap + LONGEST_GRAM - 1
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
            assert len(rows) <= MAX_ROWS
            assert all(column[row] for row in rows), (needle, bits, overlap)
            asked += len(rows) > 0
    assert asked > 100


def test_needles_that_have_rows() -> None:
    def count(needle: str) -> int:
        return len(rows_to_read(needle, MAX_BITS, 4096))

    assert [count(one) for one in ("", "ab", "éx", "東", "x=1", "12:")] == [0, 0, 0, 0, 0, 0]
    assert [count(one) for one in ("abc", "x_1", "1234", "beef", "éxyz")] == [1, 1, 2, 2, 2]
    assert [count(one) for one in ("word", "WORD", "12345", "cafés")] == [3, 3, 4, 3]
    assert [count(one) for one in ("x=1;", "12:3", " a1 ", "東京")] == [1, 1, 1, 2]
    assert [count(one) for one in ("needle", "needles", "needless")] == [7, 8, 8], "3 bytes where rows are few"
    for needle, has_span in {
        "wood owl": True,
        "x-ray-tube": True,
        "wd40 owl": False,
        "an owl ink": True,
        "we an owl": False,
    }.items():
        spans = {row_of(gram) for gram in grams_of(needle.encode()) if len(gram) == 8}
        assert bool(spans) == has_span, needle
        assert spans <= set(rows_to_read(needle, MAX_BITS, 4096)), needle


def test_a_long_needle_asks_for_eight_spans() -> None:
    """They tell the most; the rest are grams from all of it."""
    needle = " ".join(f"{number:02d}needle" for number in range(20))
    rows = set(rows_to_read(needle, MAX_BITS, 4096))
    assert len(rows) == MAX_ROWS
    spans = {row_of(gram) for gram in grams_of(needle.encode()) if len(gram) == 8}
    assert len(spans) == 19
    assert len(spans & rows) == 8
