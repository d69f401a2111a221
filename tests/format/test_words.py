"""Rows of words: what a text sets, a word finds, in any form, in filters of any height."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest

from monocontext.format.filters.columns import compute_column
from monocontext.format.filters.grams import HIGHEST, LEVELS, MAX_BITS, fold, height, shrink_rows, stem_of, word_rows
from tests.budget import examples

from .test_grams import rows_of_grams

PARTS = ["run", "ning", "ed", "s", "_", "7", "Ö", "é", "x", "ings", "ion", "config", " ", "\n", ", ", "-", "東", "京都"]


def words_of(text: str) -> list[str]:
    """Words as the format has them, by a regular expression."""
    runs = re.findall(r"[a-z0-9_\x80-\xff]{3,}", fold(text).encode().decode("latin-1"))
    pairs = re.findall(r"(?=([\u3000-\u9fff]{2}))", text)
    return [run.encode("latin-1").decode() for run in runs] + pairs


@pytest.mark.parametrize("bits", [8, 13, MAX_BITS])
@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_word_that_stands_often_has_its_rows(seed: int, bits: int) -> None:
    rng = random.Random(seed)
    text = "".join(rng.choices(PARTS, k=3_000))
    column = shrink_rows(compute_column(fold(text).encode(), b""), height(bits), axis=0)
    for word, count in Counter(words_of(text)).items():
        for level, least in enumerate(LEVELS):
            if count >= least:
                assert all(column[row] for row in word_rows((word,), level, bits)), (word, count)


@pytest.mark.parametrize("text", ["", "a", "ss", "x" * 40, "é", "東", "東京", " ab", "ab ", "as is us"])
def test_texts_of_a_few_bytes(text: str) -> None:
    column = compute_column(fold(text).encode(), b"")
    assert len(column) == HIGHEST
    assert not column[1 << MAX_BITS :].any()


def test_words_that_stand_seldom_have_no_rows() -> None:
    column = compute_column(b"one of of of two two three three three ", b"two two two")
    assert np.flatnonzero(column[1 << MAX_BITS :]).tolist() == [
        row - (1 << MAX_BITS) for row in word_rows(("three",), 0, MAX_BITS)
    ]


def test_endings() -> None:
    words = ["rotates", "rotating", "rotations", "users", "bus", "is", "string", "song", "cities"]
    stems = ["rotat", "rotat", "rotat", "user", "bus", "is", "str", "song", "citi"]
    assert [stem_of(word.encode()).decode() for word in words] == stems


def rows_one_by_one(text: str) -> list[int]:
    """The rows of a text, a gram and a word after the other."""
    folded = fold(text).encode()
    rows = set(rows_of_grams(folded))
    runs = re.findall(rb"[a-z0-9_\x80-\xff]{3,}", folded)
    pairs = re.findall(rb"(?=([\xe3-\xe9][\x80-\xff]{2}[\xe3-\xe9][\x80-\xff]{2}))", folded)
    counts = Counter(map(hash_of, [*map(stem_of, runs), *pairs]))
    for level, least in enumerate(LEVELS):
        slots = (hashed % (1 << 14) for hashed, count in counts.items() if count >= least)
        rows |= {(1 << MAX_BITS) + level * (1 << 14) + slot for slot in slots}
    return sorted(rows)


def hash_of(stem: bytes) -> int:
    mixed = int.from_bytes(stem[:8], "little") * 0x9E3779B97F4A7C15
    mixed ^= int.from_bytes(stem[-8:] if len(stem) > 8 else b"", "little") * 0xC2B2AE3D27D4EB4F
    return mixed * 0xC2B2AE3D27D4EB4F % (1 << 64) >> 48


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(20)))
def test_rows_are_those_of_each_gram_and_word(seed: int) -> None:
    rng = random.Random(seed)
    signs = [chr(code) for code in range(128)] if seed % 2 else list("seding or_")
    for size in [*range(30), 300, 5_000]:
        text = "".join(rng.choices([*PARTS, *signs], k=size))
        assert np.flatnonzero(compute_column(fold(text).encode(), b"")).tolist() == rows_one_by_one(text)


def test_words_of_a_frame_that_the_text_behind_it_goes_on_with() -> None:
    """A word that the frame cuts counts as what the frame has of it."""
    folded = b"cut off " * 3 + b"cu"
    for behind in (b"", b"t", b"t off ", b"tting"):
        column = compute_column(folded, behind)[1 << MAX_BITS :]
        assert (column == compute_column(folded, b"")[1 << MAX_BITS :]).all()
        assert np.count_nonzero(column) == 2


@pytest.mark.slow
def test_a_text_hashed_in_several_steps() -> None:
    text = "".join(random.Random(3).choices(PARTS, k=400_000))
    assert np.flatnonzero(compute_column(fold(text).encode(), b"")).tolist() == rows_one_by_one(text)
