"""What an answer rests on, and ranges."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from rlm.view.ranges import for_map, shares, size, union
from rlm.view.rests import rests_on


@pytest.mark.parametrize(
    ("codes", "expected"),
    [
        (["a = context[:5]", "b = context[5:9]", "FINAL(a)"], [0, 2]),
        (["a = 1", "b = a + 1", "c = 2", "FINAL(f'{b}')"], [0, 1, 3]),
        (["a = 1", "a = 2", "FINAL(a)"], [1, 2]),
        (["a = 1", "a = a + 1", "FINAL(a)"], [0, 1, 2]),
        (["a = 1", "a += 1", "FINAL(a)"], [0, 1, 2]),
        (["found = []", "found.append(1)", "x = 3", "FINAL(found)"], [0, 1, 3]),
        (["d = {}", "d['k'] = 1", "FINAL_VAR('d')"], [0, 1, 2]),
        (["def f(x):\n    return x", "x = 9", "FINAL(f(1))"], [0, 2]),
        (["x = 1", "total = sum(x for x in context)", "FINAL(total)"], [1, 2]),
        (["import re", "import json", "FINAL(re.escape('a'))"], [0, 2]),
        (["answer['content'] = 'draft'", "unused = 1", "answer['ready'] = True; answer['content'] += 'x'"], [0, 2]),
        (["a = context.find('x')", "b = context.find('y')", "FINAL(b)"], [1, 2]),
        (["a = 1", "b = (", "FINAL(a)"], [0, 2]),
        (["import re", "re.match('a', 'b')", "x = re.escape('a')", "FINAL(x)"], [0, 2, 3]),
        (["context = context[:9]", "x = context.find('a')", "FINAL(x)"], [0, 1, 2]),
        (["print(1)"], [0]),
        ([], []),
    ],
)
def test_cells_that_made_the_values(codes: list[str], expected: list[int]) -> None:
    assert rests_on([(code, False) for code in codes]) == expected


def test_a_literal_rests_on_what_was_seen_last() -> None:
    cells = [("a = context[:9]", False), ("print(a)", True), ("b = 2", False), ("FINAL('forty-two')", False)]
    assert rests_on(cells) == [0, 1, 3]


def test_ranges_against_sets() -> None:
    chance = random.Random(5)
    for _ in range(300):
        made = [(a, a + chance.randrange(20)) for a in (chance.randrange(200) for _ in range(chance.randrange(12)))]
        members = {i for start, stop in made for i in range(start, stop)}
        merged = union(made)
        assert {i for start, stop in merged for i in range(start, stop)} == members
        assert size(merged) == len(members)
        assert all(a[1] < b[0] for a, b in pairwise(merged))
        told = shares(merged, 220, 11)
        exact = [sum(i // 20 == step for i in members) for step in range(11)]
        assert told == [round(1000 * part / 20) for part in exact]


def test_a_map_has_a_bounded_number_of_ranges() -> None:
    many = [(i, i + 1) for i in range(0, 1_000_000, 2)]
    assert len(for_map(many, 1_000_000)) == 1
    apart = [(i, i + 1) for i in range(0, 10_000_000, 10_000)]
    assert for_map(apart, 10_000_000) == apart
    assert shares([(0, 1)], 10**9)[0] == 1
    assert shares([], 0) == []
