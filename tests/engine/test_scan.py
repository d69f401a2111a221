"""A search by the C library finds what `find` finds."""

from __future__ import annotations

import random

import pytest

from monocontext.engine import scan
from monocontext.engine.scan import FAR, NEAR, find


def cases(count: int) -> list[tuple[str, str, int, int]]:
    """Texts, needles and bounds around the lengths at which the way changes."""
    rng = random.Random(14)
    made = []
    for _ in range(count):
        letters = rng.choice(["ab", "abcdefgh \n", "aé漢"])
        size = rng.choice([0, 10, NEAR, FAR - 1, FAR, FAR + NEAR, 40_000])
        hay = ("".join(rng.choices(letters, k=200)) * (size // 200 + 1))[:size] + rng.choice(["", "zz", "é"])
        needle = rng.choice(["", "z", "zz", "é", "qq", "".join(rng.choices(letters, k=rng.randrange(1, 9))), hay[-5:]])
        start = rng.choice([0, 0, rng.randrange(size + 1), size + 7])
        made.append((hay, needle, start, rng.choice([1 << 40, rng.randrange(size + 1)])))
    return made


@pytest.mark.parametrize("has_memmem", [True, False])
def test_it_finds_what_find_finds(monkeypatch: pytest.MonkeyPatch, has_memmem: bool) -> None:
    if not has_memmem:
        monkeypatch.setattr(scan, "_c_search", lambda: None)
    for hay, needle, start, stop in cases(800):
        assert find(hay, needle, start, stop) == hay.find(needle, start, stop)
        data, units = hay.encode(), needle.encode()
        assert find(data, units, start, stop) == data.find(units, start, stop)
