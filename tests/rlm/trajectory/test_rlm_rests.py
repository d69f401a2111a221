"""What an answer rests on, and ranges."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from monocontext.page.coverage import shares_read
from rlm.trajectory.answer_cells import find_evidence, scans
from rlm.trajectory.ranges import size, union
from rlm.view.rows import simplify_for_map


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
    assert find_evidence([(code, False) for code in codes]) == expected


def test_a_literal_rests_on_what_was_seen_last() -> None:
    cells = [("a = context[:9]", False), ("print(a)", True), ("b = 2", False), ("FINAL('forty-two')", False)]
    assert find_evidence(cells) == [0, 1, 3]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("print(context[:500], context[-500:], len(context))", False),
        ("at = context.find('x'); print(context[at:at + 100])", True),
        ("n = context.count('x')", True),
        ("hits = list(context.grep('x'))", True),
        ("found = 'x' in context", True),
        ("found = context in seen", False),
        ("import re\nm = re.search('x', context)", True),
        ("m = pattern.findall(context)", True),
        ("m = re.search('x', context[:500])", False),
        ("for line in context.lines: pass", True),
        ("print(context.lines[5:9])", False),
        ("n = sum(1 for c in context if c == 'x')", True),
        ("low = context.lower()", True),
        ("first = context.split('\\n')[0]", True),
        ("counts = Counter(context)", True),
        ("f(context[5:9])", False),
        ("isinstance(context, str)", False),
        ("said = [llm_query(piece) for piece in context.chunks(100_000)]", False),
        ("said = llm_query_batched([context[i:i + 9] for i in range(0, len(context), 9)])", False),
        ("said = llm_query(context[context.find('x'):][:99])", True),
        ("part = context[5:9]; part.find('x')", False),
        ("broken = context.find(", False),
        ("1 < 2", False),
    ],
)
def test_a_scan_is_told_from_a_look(code: str, expected: bool) -> None:
    assert scans(code) is expected


def test_ranges_against_sets() -> None:
    chance = random.Random(5)
    for _ in range(300):
        made = [(a, a + chance.randrange(20)) for a in (chance.randrange(200) for _ in range(chance.randrange(12)))]
        members = {i for start, stop in made for i in range(start, stop)}
        merged = union(made)
        assert {i for start, stop in merged for i in range(start, stop)} == members
        assert size(merged) == len(members)
        assert all(a[1] < b[0] for a, b in pairwise(merged))
        told = shares_read(merged, 220, 11)
        exact = [sum(i // 20 == step for i in members) for step in range(11)]
        assert told == [round(1000 * part / 20) for part in exact]


def test_a_map_has_a_bounded_number_of_ranges() -> None:
    many = [(i, i + 1) for i in range(0, 1_000_000, 2)]
    assert len(simplify_for_map(many, 1_000_000)) == 1
    apart = [(i, i + 1) for i in range(0, 10_000_000, 10_000)]
    assert simplify_for_map(apart, 10_000_000) == apart
    assert shares_read([(0, 1)], 10**9)[0] == 1
    assert shares_read([], 0) == []


@pytest.mark.parametrize("characters", [1, 7, 100, 999])
def test_a_map_of_a_short_text_has_no_gaps(characters: int) -> None:
    assert shares_read([(0, characters)], characters) == [1000] * 1000
    assert sum(map(bool, shares_read([(characters - 1, characters)], characters))) >= 1000 // characters
