"""Rows of grams: what a text sets, a needle in it finds, whatever stands around it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from monocontext.format.filters.building import set_column
from monocontext.format.filters.fold import fold
from monocontext.format.filters.grams import MAX_BITS, MAX_ROWS, height, rows_to_read, shrink_rows
from monocontext.format.refs import FILTER_KIND, FILTER_KINDS

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
        eight = folded[at : at + 8]
        if len(eight) == 8 and [is_of_word(byte) for byte in eight[3:6]] == [True, False, True]:
            found.append(eight)
    return found


def is_of_word(byte: int) -> bool:
    return byte >= 128 or chr(byte) in "abcdefghijklmnopqrstuvwxyz0123456789_"


def row_of(gram: bytes) -> int:
    x = int.from_bytes(gram, "little")
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
        ("1234", []),
        ("12345", [0x15C93]),
        ("ther one", [0x174CF]),
        ("東亰", [0x33F6B]),
    ],
)
def test_rows_are_as_ever(text: str, rows: list[int]) -> None:
    found = np.flatnonzero(set_column(fold(text).encode(), b"")[: 1 << MAX_BITS]).tolist()
    assert set(rows) <= set(found)
    assert (rows == []) == (found == [])
    assert set(rows) <= set(rows_to_read(text, MAX_BITS, 4096))


@pytest.mark.parametrize("seed", range(20))
def test_a_text_has_the_rows_of_its_grams(seed: int) -> None:
    dice = random.Random(seed)
    for most in (2, 4, 8, 30, 300, 100_000 if seed == 0 else 3_000):
        folded = fold(made(dice, most)).encode()
        column = set_column(folded, b"")
        assert np.flatnonzero(column[: 1 << MAX_BITS]).tolist() == rows_of_grams(folded)


def test_filters_of_earlier_kinds_have_five_bytes_everywhere() -> None:
    folded = fold("".join(PARTS)).encode()
    rows = sorted({row_of(folded[at : at + 5]) for at in range(len(folded) - 4)})
    for kind in FILTER_KINDS:
        found = np.flatnonzero(set_column(folded, b"", kind=kind)[: 1 << MAX_BITS]).tolist()
        assert (found == rows) == (kind != FILTER_KIND)


@pytest.mark.parametrize("kind", FILTER_KINDS)
@pytest.mark.parametrize("ascii_only", [False, True])
@pytest.mark.parametrize("seed", range(10))
def test_a_needle_has_its_rows_wherever_it_stands(seed: int, ascii_only: bool, kind: str) -> None:
    """In a frame or from it into the text behind, of which the column covers a part; in any case."""
    dice = random.Random(seed)
    asked = 0
    for bits in (9, 13, MAX_BITS):
        text, behind = made(dice, 300), made(dice, 100)
        frame, following = fold(text).encode(), fold(behind).encode()
        overlap = dice.randrange(1, 100)
        reach = overlap + (7 if kind == FILTER_KIND else 4)
        column = shrink_rows(set_column(frame, following[:reach], kind=kind)[: height(MAX_BITS)], height(bits), 0)
        whole = text + behind
        for _ in range(100):
            start = dice.randrange(len(text) + 1)
            needle = whole[start : start + dice.choice([3, 4, 5, 6, 8, 12, 30, 200])]
            if start == len(text) or not needle:
                continue
            rows = rows_to_read(needle.upper() if ascii_only else needle.swapcase(), bits, overlap, ascii_only, kind)
            if ascii_only and not needle.isascii():
                rows = rows_to_read(needle, bits, overlap, True, kind)
            assert len(rows) <= MAX_ROWS
            assert all(column[row] for row in rows), (needle, bits, overlap)
            asked += len(rows) > 0
    assert asked > 100


def test_needles_that_have_rows() -> None:
    def count(needle: str) -> int:
        return len(rows_to_read(needle, MAX_BITS, 4096))

    assert [count(one) for one in ("", "abc", "wor", "éx")] == [0, 0, 0, 0]
    assert [count(one) for one in ("word", "WORD", "x=1;", "12:3", " a1 ")] == [1, 1, 1, 1, 1]
    assert [count(one) for one in ("1234", "beef", "éxy", "東")] == [0, 0, 0, 0]
    assert [count(one) for one in ("12345", "beefs", "éxyz", "東京")] == [1, 2, 1, 2]
    assert count("other one") == 6 + 1, "of the space between two words besides"


def test_a_long_needle_asks_for_eight_spans() -> None:
    """They tell the most; the rest are grams from all of it."""
    needle = " ".join(f"needle{number:02d}" for number in range(20))
    rows = set(rows_to_read(needle, MAX_BITS, 4096))
    assert len(rows) == MAX_ROWS
    spans = {row_of(gram) for gram in grams_of(needle.encode()) if len(gram) == 8}
    assert len(spans) == 19
    assert len(spans & rows) == 8
