"""Rows of words: what a text sets, a word finds, in any form, in filters of any height."""

from __future__ import annotations

import random
import re
from collections import Counter

import numpy as np
import pytest

from monocontext.format.filters.columns import compute_column
from monocontext.format.filters.grams import LEVELS, MAX_BITS, fold, height, shrink_rows, stem_of, word_rows
from tests.budget import examples

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


def test_words_that_stand_seldom_have_no_rows() -> None:
    column = compute_column(b"one of of of two two three three three ", b"two two two")
    assert np.flatnonzero(column[1 << MAX_BITS :]).tolist() == [
        row - (1 << MAX_BITS) for row in word_rows(("three",), 0, MAX_BITS)
    ]


def test_endings() -> None:
    words = ["rotates", "rotating", "rotations", "users", "bus", "is", "string", "song", "cities"]
    stems = ["rotat", "rotat", "rotat", "user", "bus", "is", "str", "song", "citi"]
    assert [stem_of(word.encode()).decode() for word in words] == stems
