"""Every operation of `str`, in chains of three, on texts in awkward frames: WRONG must be 0, loud only where reviewed.

The short form is shrunk by hypothesis where it finds something. The long campaign runs seeded cases, which are faster:
`campaign(seed, comparisons)` in comparison.py, and a failing case is named by what it did.
"""

from __future__ import annotations

from random import Random

import pytest

from tests.budget import examples

from . import cases
from .comparison import Counts, campaign, compare, run_chain
from .subject import small_pieces, stored

COMPARED = 200_000
NOT_OPERATIONS = {"__new__", "__doc__", "__getattribute__", "__init_subclass__", "__subclasshook__"}


def test_seeded_chains_of_operations() -> None:
    counts = campaign(seed=1, compared=examples(5_000))
    assert not counts.wrong, counts.wrong[0]
    assert counts.same > 0.6 * counts.compared, counts


@pytest.mark.parametrize("name", cases.NAMES)
def test_each_operation(name: str) -> None:
    """None is left out by chance: each by itself, on texts of its own."""
    counts = Counts()
    for number in range(3):
        random = Random(f"{name} {number}")
        text = cases.text(random)
        frame_bytes, limit = random.choice((1, 2, 3, 5, 100)), random.choice((3, 10))
        with small_pieces(random):
            context = stored(text, frame_bytes, limit)
            for _ in range(3):
                op = cases.operation(random, text, name)
                story = f"{text!r} in frames of {frame_bytes}, limit {limit}"
                compare(op, text, context, counts, story)
    assert not counts.wrong, counts.wrong[0]
    assert counts.same or name in cases.LOUD


def test_every_attribute_of_str_is_compared() -> None:
    own = {name for name in dir(str) if getattr(str, name) is not getattr(object, name, None)}
    left = own - set(cases.FORMS) - set(cases.NOT_COMPARED) - NOT_OPERATIONS
    assert not left
    assert not cases.NEVER_LOUD - set(cases.FORMS)


@pytest.mark.slow
def test_a_derived_text_is_a_text_too() -> None:
    """Chains that begin with one: what `lower` gives is asked everything that the stored text is."""
    counts = Counts()
    for number in range(60):
        random = Random(f"derived {number}")
        text = cases.text(random)
        with small_pieces(random):
            context = stored(text, random.choice((1, 3, 5)), limit=3)
            for code in ("t.lower()", "t.upper()", "t.casefold()", "t.replace('a', '\\n')", "t.replace('ab', 'x')"):
                right, mine = eval(code, {"t": text}), eval(code, {"t": context})
                run_chain(random, right, mine, counts, f"{text!r}: {code}")
    assert not counts.wrong, counts.wrong[0]


@pytest.mark.fuzz
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(2, 10))
def test_a_long_campaign(seed: int) -> None:
    counts = campaign(seed, compared=COMPARED // 8)
    print(counts, dict(counts.loud))
    assert not counts.wrong, counts.wrong[0]
