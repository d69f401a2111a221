"""The needles of benchmarks are what they say."""

from __future__ import annotations

import re

import pytest

from benchmarks.logs import make_logs
from benchmarks.needles import choose


@pytest.fixture(scope="module")
def haystack() -> bytes:
    return b"".join(make_logs(3_000_000, seed=4))


@pytest.mark.slow
def test_needles_are_drawn_by_the_seed(haystack: bytes) -> None:
    assert choose(haystack, 1, 3, seed=1) == choose(haystack, 1, 3, seed=1)
    assert choose(haystack, 1, 3, seed=1) != choose(haystack, 1, 3, seed=2)


def test_needles_are_what_they_say(haystack: bytes) -> None:
    text = haystack.decode()
    needles = choose(haystack, 1, 4, seed=1)
    assert {needle.kind for needle in needles} == {
        "rare identifier",
        "absent identifier",
        "word",
        "common word",
        "phrase",
        "regex",
    }
    for needle in needles:
        if needle.kind == "regex":
            assert sum(1 for _ in re.finditer(needle.query, text)) == needle.places
            continue
        assert text.count(needle.query) == needle.places
        assert (needle.places == 0) == (needle.kind == "absent identifier")
        if needle.kind == "rare identifier":
            assert needle.places <= 5
