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
from regex_equality import Slow, alarm, context_of, differences, seen, windows

from monocontext import Monocontext, regex
from monocontext.errors import ContextTooLarge
from monocontext.format.filters.query import All, AnyOf, Literal, Query
from monocontext.text import lazy_lists
from monocontext.text.regex import lazy_matches, plan
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


@pytest.mark.slow
@pytest.mark.parametrize("pattern", regex_cases.PATTERNS)
def test_as_re(pattern: str, contexts: list[tuple[str, Monocontext]]) -> None:
    rng = random.Random(zlib.crc32(pattern.encode()))
    for flags in regex_cases.FLAGS:
        for bound in (0, 1000):  # with 0 no pattern streams by overlap, but by lines
            text, context = rng.choice(contexts)
            pos, endpos = rng.randrange(-1, len(text) + 2), rng.randrange(-1, len(text) + 2)
            with windows(rng.choice(SIZES), bound):
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
    bound=st.sampled_from([0, 1000]),
)
def test_grammar_as_re(seed: int, pieces: list[str], size: int, frame_bytes: int, flags: int, bound: int) -> None:
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
        stack.enter_context(windows(size, bound))
        pos, endpos = rng.randrange(-1, len(text) + 2), rng.randrange(-1, len(text) + 2)
        _, refused, wrong = differences(pattern, flags, text, context, pos, endpos, rng.randrange(-1, 4))
    assert not wrong, wrong[0]
    assert not refused


LINE = "2024-05-01 host-7 INFO 12 ms (ok) label: x\n"


@pytest.mark.parametrize(
    ("pattern", "flags", "streams"),
    [
        (r"host-(\d+) INFO", 0, True), (r".{0,300}label.{0,300}", re.S, True), (r"label:[ \t]*(.+)", 0, True),
        (r"^2024.*$", re.M, True), (r"(?<=label: )\w+$", re.M, True), (r"(\w+)-\1", 0, True),
        (r"\(([^)\n]+)\)", 0, True), (r"ms\s+([a-z()\s]+)", re.I, True), (r"ok([\s\S]+)label", 0, False),
        (r"\s+", 0, True), (r"label:\s*(.+)", 0, True), (r"\([^)]+\)", 0, True), (r"(?:\s*\w)+", 0, False),
        (r"host(.*?)label", re.S, True), (r"(host-\d+)(.+?)la(.*?)(?=\n\d|\Z)", re.S, True),
        (r"(\d+)-(\d+)-(\d+)\s+\w+-(\d+)\s*INFO\s*(\d+)\s*ms\s*(.*?)\s*label:\s*(\w+)", 0, True),
        (r"host(.*)label", re.S, False), (r"(h).*?\1ost", re.S, False), (r"(?:host.*?)+INFO", re.S, False),
    ],
)  # fmt: skip
def test_above_the_limit_a_pattern_streams_or_says_what_to_write(pattern: str, flags: int, streams: bool) -> None:
    text = LINE * 3000
    with windows(1000), context_of(text, 700, limit=20_000) as context:
        result = regex.finditer(pattern, context, flags)
        if streams:
            assert [match.span() for match in result] == [match.span() for match in re.finditer(pattern, text, flags)]
        else:
            with pytest.raises(ContextTooLarge, match=r"bound its repeats, .* or search a part, such as context\["):
                next(result)
            part = list(regex.finditer(pattern, context.view(0, 4000), flags))
            assert [match.span() for match in part] == [m.span() for m in re.finditer(pattern, text[:4000], flags)]
        with pytest.raises(ContextTooLarge, match=r"re\.sub"):
            regex.sub(pattern, "", context)
        if not streams:
            with pytest.raises(ContextTooLarge, match=r"re\.split"):
                regex.split(pattern, context, 0, flags)


@pytest.mark.parametrize("pattern", [r'"[^"]*"', r"\([^)]+\)", r'=\s*"[^"]*"', r"\([^)]*long", r"\w+", r"zz.*"])
def test_a_pattern_streams_where_its_matches_are_far_apart(pattern: str) -> None:
    text = "word and " * 280_000 + "(a long) zz"
    with context_of(text, 1 << 16, limit=20_000) as context:
        assert [match.span() for match in regex.finditer(pattern, context)] == [
            match.span() for match in re.finditer(pattern, text)
        ]


@pytest.mark.parametrize(
    ("pattern", "window", "decided"),
    [
        (r"\d\s*\d", "." * 20 + "\n", 8), (r"\d\s*\d", "." * 12 + "\n", 0), (r"\d\s*\d", "." * 13 + "\n", 1),
        (r"\d\s*\s*\d", "." * 30 + "\n", 10), (r"\d\s*\d", "." * 12 + "    ....\n", 0),
        (r"\d\s*\d", "." * 16 + "    \n", 0), (r"\d\s*\d", "....   .   .   .   .   .   .\n", 16),
        (r"\d\s*\d", "." * 8 + "    ........\n", 0), (r"(?s)a.*?a", "..a" + "." * 9, 2),
        (r"a.*b", "..a..bbb", 2), (r"a.*b", "." * 8, 7), (r".?.?a[^b]*", "." * 8, 5),
        (r"(?s)a.*?b.*?c", "..a..b..c..a..b" + "." * 9, 3), (r"(?s)a.*?b.*?c", "..a..b" + "." * 9, 2),
    ],
)  # fmt: skip
def test_the_first_characters_of_a_window_are_decided(pattern: str, window: str, decided: int) -> None:
    with windows(3):  # a run has up to 7 characters, and is checked by blocks of 4
        assert plan.plan(re.compile(pattern)).first_undecided(window, 0) == decided


@pytest.mark.parametrize("pattern", [r"\s+", r"(\d)|(x)?", r"\b", r"(?m)^", r"(?=host)", r"\w*", r"[a-z]+\n?", r"INFO"])
def test_above_the_limit_split_and_findall_are_lazy_lists(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lazy_matches, "ITEMS_PER_CHECKPOINT", 8)
    monkeypatch.setattr(lazy_lists, "ITEMS_PER_CHECKPOINT", 8)
    text = LINE * 80
    with windows(1000), context_of(text, 700, limit=1500) as context:
        for call in (regex.findall, regex.split):
            expected, result = getattr(re, call.__name__)(pattern, text), call(pattern, context)
            assert isinstance(result, lazy_lists.LazyList) or len("".join(map(str, expected))) < 1500
            assert [result[-1], result[len(expected) // 2]] == [expected[-1], expected[len(expected) // 2]]
            assert (list(result), len(result), list(reversed(result))) == (expected, len(expected), expected[::-1])
            assert [result[i] for i in range(len(expected))] == expected
            for part in (slice(3, 9), slice(20, None, 3), slice(-5, None), slice(None, None, -1)):
                assert list(result[part]) == expected[part]
            with pytest.raises(IndexError):
                result[len(expected)]


@pytest.mark.parametrize(
    "pattern", ["qz", ".*qz", r"\w{0,3}qz", r"(?=[^\n]*qz)", r"qz[^)]*\)", "b\na*qz", "(?<=a)qz.*"]
)
@pytest.mark.parametrize(("size", "frame_bytes"), [(1, 1), (5, 3), (30, 7), (1000, 16)])
def test_pieces_without_the_literal_are_skipped(pattern: str, size: int, frame_bytes: int) -> None:
    text = ("ab\nb é" * 9 + "b\naaqz)\nqz") * 4 + "q"
    with windows(size), context_of(text, frame_bytes) as context:
        assert [*map(seen, regex.finditer(pattern, context))] == [*map(seen, re.finditer(pattern, text))]


def test_a_search_reads_as_far_as_it_takes() -> None:
    text = LINE * 30_000
    with context_of(text, 5000, limit=len(text) // 2) as context:
        assert regex.search(r"host-\d+ INFO", context).start() == 11
        assert regex.match(r"[^\n]+", context).end() == len(LINE) - 1
        assert regex.match(r"\d+-.*label", context).end() == len(LINE) - 4
        assert regex.fullmatch(r".+", context) is None
        head, tail = regex.split(r"INFO ", context, maxsplit=1)
        assert (head, tail[:5], len(tail)) == ("2024-05-01 host-7 ", "12 ms", len(text) - 23)
        assert [m.start() for m in regex.compile(r"(?<=-)7").finditer(context, 90_000, 90_100)]
        assert context.stats.bytes_fetched < len(text) // 4
        assert regex.compile(r"\S").findall(context, 1)[0] == "0"


@pytest.mark.parametrize(
    ("pattern", "flags", "literals"),
    [
        ("error", 0, ["error"]), (r"\berr(or)+x?s", 0, ["error", "s"]), (r".{0,30}word.*", 0, ["word"]),
        (r"a|bc", 0, []), (r"(?i)Kb", 0, ["Kb"]), (r"(?:ab){2}c", 0, ["ab", "c"]), (r"x?", 0, []),
        (r"foo(?=bar)(?!baz)", 0, ["bar", "foo"]), (r"(?<=foo)bar", 0, ["bar"]), (r"(a)?(?(1)b|c)d", 0, ["d"]),
        ("a b", re.X, ["ab"]),
    ],
)  # fmt: skip
def test_required_literals(pattern: str, flags: int, literals: list[str]) -> None:
    query = regex.required_literals(pattern, flags)
    parts = query.queries if isinstance(query, All) else (query,)
    assert sorted(item.text for item in parts if isinstance(item, Literal)) == sorted(literals)


def may_match(query: Query | None, text: str) -> bool:
    """Whether the text has the literals of a query, as `re` compares them."""
    if query is None:
        return True
    if isinstance(query, Literal):
        return bool(re.search(re.escape(query.text), text, query.flags))
    assert isinstance(query, All | AnyOf)
    return (all if isinstance(query, All) else any)(may_match(item, text) for item in query.queries)


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
                result = re.search(pattern, text, flags)
        except (re.error, OverflowError, RuntimeError, Slow):
            continue
        if result:
            tried += 1
            assert may_match(regex.required_literals(pattern, flags), text), (pattern, flags, text)
    assert tried > 500
