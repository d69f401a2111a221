"""Fixed patterns, and patterns from a grammar: everything that `re` says, at windows of 1 to 1000 characters."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
import regex_cases
import regex_grammar
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from regex_equality import Slow, alarm, context_of, differences, forced_marks, windows

from monocontext import Monocontext
from tests.budget import examples

SIZES = [1, 2, 3, 5, 7, 16, 100, 1000]
TEXTS = [(seed, pieces) for seed in range(6) for pieces in (40, 12)] + [(0, 0)]


@pytest.fixture(scope="module")
def contexts() -> Iterator[list[tuple[str, Monocontext]]]:
    with ExitStack() as stack:
        opened = []
        for number, (seed, pieces) in enumerate(TEXTS):
            text = regex_cases.text(seed, pieces)
            name = f"regex-equality-{number}"
            opened.append((text, stack.enter_context(context_of(text, 1 + 7 * seed, name=name))))
        yield opened


def test_there_are_120_patterns() -> None:
    assert len(set(regex_cases.PATTERNS)) >= 120


@pytest.mark.slow
@pytest.mark.parametrize("pattern", regex_cases.PATTERNS)
def test_as_re(pattern: str, contexts: list[tuple[str, Monocontext]]) -> None:
    rng = random.Random(zlib.crc32(pattern.encode()))
    for flags in regex_cases.FLAGS:
        for marks in (False, True):
            text, context = rng.choice(contexts)
            pos, endpos = rng.randrange(-1, len(text) + 2), rng.randrange(-1, len(text) + 2)
            with ExitStack() as stack:
                stack.enter_context(windows(rng.choice(SIZES), rng.choice([None, 1])))
                if marks:
                    stack.enter_context(forced_marks(rng.choice([2, 4, 1000])))
                _, refused, wrong = differences(pattern, flags, text, context, pos, endpos, rng.randrange(-1, 4))
            assert not wrong, wrong[0]
            assert not refused  # the limit is above the text


@settings(max_examples=examples(120), suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1 << 30),
    pieces=st.lists(st.sampled_from(sorted(set(regex_cases.PIECES))), max_size=8),
    size=st.sampled_from(SIZES),
    frame_bytes=st.integers(1, 20),
    flags=st.sampled_from(regex_cases.FLAGS),
    marks=st.booleans(),
)
def test_grammar_as_re(seed: int, pieces: list[str], size: int, frame_bytes: int, flags: int, marks: bool) -> None:
    rng = random.Random(seed)
    pattern = regex_grammar.pattern(rng, depth=2)
    try:
        re.compile(pattern, flags)
    except (re.error, OverflowError, RuntimeError):
        assume(False)
    text = "".join(pieces)
    try:
        with alarm(0.3):
            differences(pattern, flags, text, text, 0, len(text), 0)
    except Slow:
        assume(False)
    with ExitStack() as stack:
        context = stack.enter_context(context_of(text, frame_bytes))
        stack.enter_context(windows(size))
        if marks:
            stack.enter_context(forced_marks(2))
        pos, endpos = rng.randrange(-1, len(text) + 2), rng.randrange(-1, len(text) + 2)
        _, refused, wrong = differences(pattern, flags, text, context, pos, endpos, rng.randrange(-1, 4))
    assert not wrong, wrong[0]
    assert not refused
