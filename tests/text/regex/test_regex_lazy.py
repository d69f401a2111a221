"""`split` and `sub` of texts above the limit: lazy, equal to `re`, and in bounded memory."""

from __future__ import annotations

import pickle
import random
import re
import zlib
from contextlib import ExitStack
from itertools import count, islice
from pathlib import Path
from typing import Any

import pytest
import regex_cases
import regex_grammar
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from regex_equality import Slow, alarm, context_of, forced_marks, windows

from monocontext import ContextTooLarge, Monocontext, publish, regex
from monocontext.text import lazy_lists as splits
from monocontext.text.lazy_lists import LazyList
from monocontext.text.regex import lazy
from tests.budget import examples

TEMPLATES = [r"<\g<0>>", "-", "", "long " * 5, r"\\"]


def same(found: Any, expected: Any) -> None:
    """Read from the beginning, then at random places, then from the end."""
    if isinstance(found, tuple):
        assert found[1] == expected[1]
        found, expected = found[0], expected[0]
    if isinstance(found, Monocontext):
        assert "".join(found.span.texts()) == expected
    else:
        assert [*found] == [*expected]
    assert len(found) == len(expected)
    for at in random.Random(1).choices(range(len(expected)), k=5) if expected else ():
        assert found[at] == expected[at]
        assert found[at : at + 3] == expected[at : at + 3]
    assert found[-3:] == expected[-3:]
    assert [*reversed(found)] == [*reversed(expected)]
    assert found == expected


def counted(match: re.Match[str]) -> str:
    counted.numbers += 1  # type: ignore[attr-defined]
    return f"{counted.numbers}:{match.group()[:3]}@{match.start()}"  # type: ignore[attr-defined]


def compare(pattern: str, flags: int, text: str, context: Monocontext, most: int) -> None:
    real, ours = re.compile(pattern, flags), regex.compile(pattern, flags)

    def both(call: Any) -> None:
        counted.numbers = 0  # type: ignore[attr-defined]
        expected = call(real, text)
        counted.numbers = 0  # type: ignore[attr-defined]
        try:
            found = call(ours, context)
            same(found, expected)
        except ContextTooLarge:
            pass  # what the engine would have to hold at once is bounded here as for `finditer`

    for maximum in (0, most):
        both(lambda p, s, maximum=maximum: p.split(s, maximum))
        both(lambda p, s, maximum=maximum: p.sub(counted, s, maximum))
        both(lambda p, s, maximum=maximum: p.subn(counted, s, maximum))
        for template in [*TEMPLATES, *([r"[\1]"] if real.groups else [])]:
            both(lambda p, s, template=template, maximum=maximum: p.subn(template, s, maximum))
    both(lambda p, s: p.sub("-", s, -1))
    both(lambda p, s: p.split(s, -1))


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "CHECKPOINT_EVERY", 3)
    monkeypatch.setattr(lazy, "PIECE_CHARACTERS", 4)


@pytest.mark.slow
@pytest.mark.parametrize("pattern", regex_cases.PATTERNS)
def test_as_re(pattern: str) -> None:
    rng = random.Random(zlib.crc32(pattern.encode()))
    for number in range(2):
        text = regex_cases.text(number, rng.choice([12, 30]))
        with ExitStack() as stack:
            context = stack.enter_context(context_of(text, rng.randrange(1, 20), limit=2, name="regex-lazy"))
            stack.enter_context(windows(rng.choice([1, 2, 3, 7, 16, 1000]), rng.choice([None, 1])))
            if number:
                stack.enter_context(forced_marks(rng.choice([2, 4, 1000])))
            compare(pattern, rng.choice(regex_cases.FLAGS), text, context, rng.randrange(1, 5))


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(
    seed=st.integers(0, 1 << 30),
    pieces=st.lists(st.sampled_from(sorted(set(regex_cases.PIECES))), max_size=8),
    size=st.sampled_from([1, 2, 5, 1000]),
    flags=st.sampled_from(regex_cases.FLAGS),
)
def test_grammar_as_re(seed: int, pieces: list[str], size: int, flags: int) -> None:
    rng = random.Random(seed)
    pattern, text = regex_grammar.pattern(rng, depth=2), "".join(pieces)
    try:
        with alarm(0.3):
            re.sub(pattern, "-", text, flags=flags)
    except (re.error, OverflowError, RuntimeError, Slow):
        assume(False)
    with context_of(text, rng.randrange(1, 20), limit=2, name="regex-lazy") as context, windows(size):
        compare(pattern, flags, text, context, rng.randrange(1, 4))


TEXT = "".join(f"user {i}: what is {i * 7919 % 1000}?\nassistant: it is {i}\n" for i in range(2000))


def test_they_are_lazy_and_read_when_looked_at() -> None:
    with windows(1000), context_of(TEXT, 500, limit=2000, name="regex-lazy") as context:
        before = context.stats.bytes_fetched
        parts = regex.split(r"\n(?=user|assistant)", context)
        text = regex.sub(r"(\d+)", r"<\1>", context)
        assert context.stats.bytes_fetched == before
        assert isinstance(parts, LazyList)
        assert isinstance(text, Monocontext)
        assert list(islice(parts, 3)) == re.split(r"\n(?=user|assistant)", TEXT)[:3]
        assert text[:50] == re.sub(r"(\d+)", r"<\1>", TEXT)[:50]
        assert context.stats.bytes_fetched - before < len(TEXT) // 2
        assert repr(text).startswith("<Monocontext ? characters by sub()")
        head, tail = regex.split(r"\n", context, maxsplit=1)
        assert (type(head), type(tail), head) == (str, Monocontext, TEXT.split("\n")[0])
        assert head + "\n" + tail == TEXT


def test_a_part_above_the_limit_is_a_view() -> None:
    text = f"a{'x' * 5000}b{'y' * 30}b"
    with windows(100), context_of(text, 50, limit=100, name="regex-lazy") as context:
        parts = list(regex.split("[ab]", context))
        assert parts == re.split("[ab]", text)
        assert [type(part) for part in parts] == [str, Monocontext, str, str]


def test_a_function_is_called_once_for_each_match_and_at_once() -> None:
    numbers = count(1)
    with windows(1000), context_of(TEXT, 500, limit=60_000, name="regex-lazy") as context:
        text = regex.sub("user", lambda match: f"{next(numbers)}", context)
        assert next(numbers) == 2001
        expected = count(1)
        assert text == re.sub("user", lambda match: f"{next(expected)}", TEXT)
        assert text[5000:5100] == str(text[:6000])[5000:5100]
        with pytest.raises(ZeroDivisionError):
            regex.sub("user", lambda match: str(1 // 0), context)
        with pytest.raises(TypeError, match="expected str instance, int found"):
            regex.sub("user", lambda match: 5, context)
        with pytest.raises(ContextTooLarge, match="use a template"):
            regex.sub("user", lambda match: "x" * 100, context)


def test_errors_of_arguments_come_at_once() -> None:
    with windows(1000), context_of(TEXT, 500, limit=2000, name="regex-lazy") as context:
        for call in (
            lambda m, s: m.sub("user", r"\9", s),
            lambda m, s: m.sub("(", "", s),
            lambda m, s: m.sub("user", 5, s),
            lambda m, s: m.split("user", s, "1"),
            lambda m, s: m.subn("user", "", s, None),
        ):
            with pytest.raises(Exception) as expected:  # noqa: PT011
                call(re, TEXT)
            with pytest.raises(expected.type):
                call(regex, context)
        with pytest.raises(ContextTooLarge, match="cannot be streamed"):
            regex.split(r"(?s)(.*)\1", context)


def test_what_was_read_before_a_refresh_stays(tmp_path: Path) -> None:
    publish("a1b2c3" * 50, tmp_path, frame_bytes=10)
    with Monocontext.open(tmp_path, materialize_limit=20) as context:
        parts, text = regex.split(r"\d", context), regex.sub(r"\d", "-", context)
        again = pickle.loads(pickle.dumps(parts)), pickle.loads(pickle.dumps(text))
        publish("x", tmp_path, replace=True)
        context.refresh()
        assert parts == again[0] == re.split(r"\d", "a1b2c3" * 50)
        assert text == again[1] == re.sub(r"\d", "-", "a1b2c3" * 50)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """No piece that a pass holds is longer than a window and what a match adds."""
    monkeypatch.setattr(lazy, "PIECE_CHARACTERS", 1000)
    pieces: list[int] = []
    real = lazy.Substituted.pieces

    def watched(self: Any, *arguments: Any) -> Any:
        for text, state in real(self, *arguments):
            pieces.append(len(text))
            yield text, state

    monkeypatch.setattr(lazy.Substituted, "pieces", watched)
    with windows(1000), context_of(TEXT, 500, limit=2000, name="regex-lazy") as context:
        assert regex.sub("[a-z]", "x" * 100, context) == re.sub("[a-z]", "x" * 100, TEXT)
    assert max(pieces) < 3000
