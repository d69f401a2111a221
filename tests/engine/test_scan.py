"""A search by the C library finds what `find` finds, and a pass looks at what was searched where it was decoded."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace

import pytest

from monocontext import Monocontext, regex
from monocontext.engine import frame_table, scan
from monocontext.engine.scan import FAR, NEAR, find, find_apart
from monocontext.text import windows
from monocontext.text.regex import scan as stream
from tests.budget import examples

from .counted import stored


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
        monkeypatch.setattr(scan, "_searches", lambda: (None, None))
    for hay, needle, start, stop in cases(800):
        assert find(hay, needle, start, stop) == hay.find(needle, start, stop)
        data, units = hay.encode(), needle.encode()
        assert find(data, units, start, stop) == data.find(units, start, stop)
        assert find_apart(data, units) == data.find(units)


TEXT = "".join(f"line {i} of 漢 text{' needle' * (i % 700 == 699)}\n" for i in range(4000)) + "needl"

PASSES: dict[str, Callable[[object], object]] = {
    "count": lambda c: (c.count("needle"), c.count("absent"), c.count("line"), c.count("e\nline 700 ")),  # type: ignore[attr-defined]
    "find": lambda c: (c.find("needle"), c.find("absent"), c.find("needle", 30_000), c.find("needl", 70_000)),  # type: ignore[attr-defined]
    "split": lambda c: list(c.split("needle")),  # type: ignore[attr-defined]
    "replace": lambda c: str(c.replace("needle", "pin")),  # type: ignore[attr-defined]
    "regex": lambda c: [match.span() for match in regex.finditer(r"needle\n\w+", c)],  # type: ignore[call-overload]
}


@pytest.mark.slow
@pytest.mark.parametrize("name", PASSES)
@pytest.mark.parametrize("frame_bytes", [100, 1000, 30_000])
def test_a_pass_over_frames_that_were_searched_where_they_were_decoded(name: str, frame_bytes: int) -> None:
    with Monocontext.open(stored(TEXT, frame_bytes=frame_bytes, frames_per_segment=40, codec="zstd")) as context:
        expected = PASSES[name](TEXT)
        assert PASSES[name](context) == expected
        assert PASSES[name](context) == expected  # and where they are in memory, searched for something else


def test_frames_are_searched_once_where_they_are_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[bytes] = []
    later: list[object] = []
    real, real_later = find_apart, find
    monkeypatch.setattr(frame_table, "find_apart", lambda data, needle: searched.append(needle) or real(data, needle))
    look = SimpleNamespace(find=lambda *given: later.append(given) or real_later(*given))
    monkeypatch.setattr(windows, "scan", look)
    with Monocontext.open(stored(TEXT, frame_bytes=10_000, frames_per_segment=40, codec="zstd")) as context:
        frames = context._reader.manifest.frames  # type: ignore[union-attr]
        assert context.count("absent") == 0
        assert (searched, later) == ([b"absent"] * frames, [])
        assert context.count("other") == 0
        assert (len(searched), len(later)) == (frames, frames)


@pytest.mark.parametrize(
    ("find_all", "needles"),
    [
        (lambda c: list(regex.finditer(r"absent \w+ (?i:other)", c)), [b"absent "]),
        (lambda c: list(regex.finditer(r"\w{1,9} absent", c)), [b" absent"]),
        (lambda c: list(c.grep(r"absent \d+|or other")), [b"absent ", b"or other"]),
        (lambda c: list(regex.finditer("(?i)absent", c)), []),
        (lambda c: list(c.grep(r"\d\D7$")), []),
    ],
)
def test_literals_of_patterns_are_looked_for_there_too(
    find_all: Callable[[Monocontext], list[object]], needles: list[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    searched: list[bytes] = []
    later: list[object] = []
    real, real_later = find_apart, find
    monkeypatch.setattr(frame_table, "find_apart", lambda data, needle: searched.append(needle) or real(data, needle))
    look = SimpleNamespace(find=lambda *given: later.append(given) or real_later(*given))
    monkeypatch.setattr(windows, "scan", look)
    with Monocontext.open(stored(TEXT, frame_bytes=10_000, frames_per_segment=40, codec="zstd")) as context:
        frames = context._reader.manifest.frames  # type: ignore[union-attr]
        assert find_all(context) == []
        assert (Counter(searched), later) == (Counter(needles * frames), [])


PATTERNS = [
    "needle", r"needle \d+", r"(\w*)needle", r"(?<=a)needle", r".{0,3}needle.{0,30}", r"\bneedle\b", "é needle",
    r"need(le|ed)?", r"needle(?!\n)", r"aa(b|needle)", r"\w+ (?=needle)", "(?i)Needle|aab",
]  # fmt: skip
ACROSS_LINES = [r"e\nnee", r"(?s)needle.*?a\n"]  # grep refuses these


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(examples(12)))
def test_patterns_over_frames_that_were_searched(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "FIRST_WINDOW", 64)
    monkeypatch.setattr(stream, "WINDOW", 256)
    rng = random.Random(seed)
    words = ["needle", "need", "le", "a", "aab", "\n", " ", "e\n", *(["é", "漢 ", "🙂"] if seed % 3 else [])]
    text = "".join(rng.choice(words[:1]) if rng.random() < 0.01 else rng.choice(words[1:]) for _ in range(4000))
    frame_bytes = rng.choice([50, 300, 2000])
    address = stored(text, frame_bytes=frame_bytes, frames_per_segment=40, codec="zstd")
    lines = text.splitlines(keepends=True)
    for pattern in PATTERNS + ACROSS_LINES:
        with Monocontext.open(address) as context:
            found = [(match.span(), match.group()) for match in regex.finditer(pattern, context)]
            assert found == [(match.span(), match.group()) for match in re.finditer(pattern, text)]
        if pattern in ACROSS_LINES:
            continue
        with Monocontext.open(address) as context:
            asked = rng.sample(PATTERNS, 2) if rng.random() < 0.3 else [pattern]
            expected, at = [], 0
            for number, line in enumerate(lines, 1):
                alone = line.removesuffix("\n")
                begins = [match.start() for one in asked if (match := re.search(one, alone))]
                expected += [(at + min(begins), number, alone)] if begins else []
                at += len(line)
            assert [tuple(hit) for hit in context.grep(asked)] == expected
