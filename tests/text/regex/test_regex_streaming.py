"""Memory and reading: how much of a text is held, and how often it is pulled."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
import regex_cases
import regex_grammar
from regex_equality import Slow, alarm, context_of, windows

from monocontext import regex
from monocontext.format.filters.query import All, Literal, Query
from monocontext.text.regex.buffer import TextBuffer
from monocontext.text.regex.literals import required_literals
from monocontext.text.source import Span

LINE = "2024-05-01 host-7 INFO 12 ms (ok) label: x\n"
TEXT = LINE * 3000
WINDOW = 1000


@dataclass
class Watch:
    """What a scan asked its text for."""

    largest: int = 0
    pulled: int = 0
    asked: list[tuple[int, int]] = field(default_factory=list)


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    watch = Watch()
    real_window, real_stretch, real_windows = TextBuffer.window, TextBuffer.stretch, Span.windows

    def window(self: TextBuffer, start: int, size: int) -> str:
        text = real_window(self, start, size)
        watch.largest = max(watch.largest, len(self._buffer))
        return text

    def stretch(self: TextBuffer, start: int, least: int, most: int) -> tuple[int, str]:
        base, text = real_stretch(self, start, least, most)
        watch.largest = max(watch.largest, len(self._buffer))
        return base, text

    def span_windows(self: Span, start: int = 0, stop: int | None = None, **options: Any) -> Iterator[Any]:
        watch.asked.append((start, len(self) if stop is None else stop))
        for one in real_windows(self, start, stop, **options):
            watch.pulled += len(one.text)
            yield one

    monkeypatch.setattr(TextBuffer, "window", window)
    monkeypatch.setattr(TextBuffer, "stretch", stretch)
    monkeypatch.setattr(Span, "windows", span_windows)
    return watch


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "slack"),
    [
        (r"\d{4}-\d\d", 10), (r".{0,300}label.{0,300}", 700), (r"\s+", 0), (r"host-(\d+) INFO", 20),
        (r"(?m)^2024.*$", 0),
        (r"\([^)]+\)", 0), (r"label:\s*(.+)", 0), (r"(?s)host(.*?)label", 0), (r"(?s)INFO(.*?)(?=\n\n|\(ok)", 0),
        ("nowhere", 7),
    ],
)  # fmt: skip
def test_memory_is_bounded_and_each_character_is_pulled_once(pattern: str, slack: int, watch: Watch) -> None:
    with windows(WINDOW), context_of(TEXT, 100, limit=2000, name="regex-streaming") as context:
        assert sum(1 for _ in regex.finditer(pattern, context)) == len(re.findall(pattern, TEXT))
    assert watch.largest <= WINDOW + slack + 10
    assert watch.pulled == len(TEXT)
    assert watch.asked == [(0, len(TEXT))]


@pytest.mark.parametrize("pattern", [r"\d{4}-\d\d", "label", r"\s+", r"host-(\d+) INFO", r"(?m)^2024.*$", r"\n\n*"])
def test_frames_that_are_kept_decoded_are_not_copied(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TEXT.replace("label", "\u6f22\u5b57label")
    copied = 0
    real = TextBuffer.window

    def window(self: TextBuffer, start: int, size: int) -> str:
        nonlocal copied
        found = real(self, start, size)
        copied += len(found)
        return found

    monkeypatch.setattr(TextBuffer, "window", window)
    with windows(WINDOW, 100), context_of(text, 4000, name="regex-streaming") as context:
        assert regex.findall(pattern, context) == re.findall(pattern, text)
        assert 0 < copied < len(text) // 5


@pytest.mark.slow
def test_search_reads_as_far_as_it_takes(watch: Watch) -> None:
    with windows(WINDOW), context_of(TEXT, 100, name="regex-streaming") as context:
        assert regex.search(r"label:\s*(.+)", context)
        assert watch.pulled <= 2 * WINDOW
        watch.pulled = 0
        assert regex.match(r"[^\n]+\n", context)
        assert regex.fullmatch(r"[^\n]+\n", context) is None
        assert watch.pulled <= 4 * WINDOW


@pytest.mark.slow
def test_matches_keep_no_window_alive() -> None:
    with windows(WINDOW), context_of(TEXT, 100, name="regex-streaming") as context:
        for match in regex.finditer("host", context):
            assert match._piece == "host"


def test_pos_does_not_read_what_is_before(watch: Watch) -> None:
    with windows(WINDOW), context_of(TEXT, 100, name="regex-streaming") as context:
        assert [m.start() for m in regex.compile(r"(?<=-)7").finditer(context, 90_000, 90_100)]
    assert watch.asked == [(89_999, 90_100)]


@pytest.mark.parametrize(
    ("pattern", "flags", "literals"),
    [
        ("error", 0, ["error"]), (r"\berr(or)+x?s", 0, ["error", "s"]), (r".{0,30}word.*", 0, ["word"]),
        (r"a|bc", 0, []),
        (r"(?i)Kb", 0, ["Kb"]), (r"(?:ab){2}c", 0, ["ababc"]), (r"x?", 0, []),
        (r"foo(?=bar)(?!baz)", 0, ["bar", "foo"]),
        (r"(?<=foo)bar", 0, ["bar"]), (r"(a)?(?(1)b|c)d", 0, ["d"]), ("a b", re.X, ["ab"]),
    ],
)  # fmt: skip
def test_required_literals(pattern: str, flags: int, literals: list[str]) -> None:
    query = required_literals(pattern, flags)
    parts = query.queries if isinstance(query, All) else (query,)
    assert sorted(one.text for one in parts if isinstance(one, Literal)) == sorted(literals)


def may_match(query: Query | None, text: str) -> bool:
    """Whether the text has the literals of a query, as `re` compares them."""
    if query is None:
        return True
    if isinstance(query, Literal):
        return bool(re.search(re.escape(query.text), text, query.flags))
    return (all if isinstance(query, All) else any)(may_match(one, text) for one in query.queries)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(?i)kiss", "\u212aIſſ"),
        ("(?i)i", "İ"),
        ("(?i)i", "ı"),
        ("(?i)İ", "i\u0307"),
        ("(?i)ß", "ẞ"),
        ("(?i)σ", "ς"),
        ("(?i)ǆ", "ǅ"),
    ],
)
def test_literals_fold_as_re_does(pattern: str, text: str) -> None:
    assert may_match(required_literals(pattern, re.I), text) == bool(re.search(pattern, text, re.I))


@pytest.mark.slow
def test_literals_are_never_false_negative() -> None:
    rng = random.Random(3)
    tried = 0
    for number in range(1500):
        pattern = regex_grammar.pattern(rng, 2) if number % 2 else rng.choice(regex_cases.PATTERNS)
        flags = rng.choice(regex_cases.FLAGS)
        text = regex_cases.text(number, 12)
        try:
            with alarm(0.3):
                found = re.search(pattern, text, flags)
        except (re.error, OverflowError, RuntimeError, Slow):
            continue
        if found:
            tried += 1
            assert may_match(required_literals(pattern, flags), text), (pattern, flags, text)
            if not re.search(r"\(\?[=!<]|\\[bBAZ]|[$^]", pattern):
                assert may_match(required_literals(pattern, flags), found[0]), (pattern, flags, text)
    assert tried > 500
