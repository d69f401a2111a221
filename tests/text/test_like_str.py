"""The text is its own model: every operation equals the one on `str`, whatever the frames, the cache and the limit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.errors import ContextTooLarge
from monocontext.stores.protocol import Store
from monocontext.writing.publish import publish
from tests.budget import examples

from .alike import (
    ALPHABET,
    Stored,
    assert_alike,
    bounds,
    cache_sizes,
    frame_sizes,
    needles,
    offsets,
    plain,
    slices,
    texts,
)

Operation = Callable[[Any], Any]
LIMITS = st.sampled_from([3, 3, 20, 1 << 20])
everywhere = settings(max_examples=examples(250))


def call(name: str, *arguments: Any) -> Operation:
    return lambda text: getattr(text, name)(*arguments)


@given(texts, frame_sizes, cache_sizes, st.lists(slices | offsets, min_size=1, max_size=8), LIMITS)
@settings(max_examples=examples(500))
@example("a\r\nb", 1, 0, [slice(None, None, -1), 1, slice(1, 3)], 3)
@example("é" * 30, 7, 0, [slice(1, 29, 2), 5, 5, slice(2, 3)], 1 << 20)
def test_items_and_slices(text: str, frame_bytes: int, cache: int, keys: list[Any], limit: int) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=limit) as context:
        assert len(context) == len(text)
        for key in keys + keys[:1]:  # the second time from the frame last read
            assert_alike(lambda t, key=key: t[key], context, text)  # type: ignore[misc]


@given(texts, frame_sizes, cache_sizes, bounds, bounds)
@everywhere
def test_iteration_and_comparison(text: str, frame_bytes: int, cache: int, a: int | None, b: int | None) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache) as context:
        view, part = context.view(a, b), text[a:b]
        for mine, right in [(context, text), (view, part)]:
            assert list(mine) == list(right)
            assert list(reversed(mine)) == list(reversed(right))
            assert (mine == right, right == mine, mine != right) == (True, True, False)
            assert (hash(mine), bool(mine), str(mine), f"{mine}") == (hash(right), bool(right), right, right)
            assert mine != right + "x"
            assert mine != right[:-1] + "\x00"
            assert (mine == right.encode(), mine == None, mine == 3) == (False, False, False)  # noqa: E711
        assert (view == context) == (part == text)
        assert view == context.view(a, b)


@given(texts, texts, frame_sizes, frame_sizes)
@everywhere
def test_two_stored_texts(left: str, right: str, frame_bytes: int, other_frame_bytes: int) -> None:
    with Stored(left, frame_bytes) as a, Stored(right, other_frame_bytes) as b, Stored(left, other_frame_bytes) as c:
        assert (a == b) == (left == right)
        assert a == c
        assert (b in a, a.count(b) if right else 0) == (right in left, left.count(right) if right else 0)
        assert hash(a) == hash(c)


SEARCHES = ["find", "rfind", "index", "rindex", "count", "startswith", "endswith"]


@st.composite
def searches(draw: st.DrawFn, text: str) -> Operation:
    name = draw(st.sampled_from(SEARCHES))
    needle: Any = draw(needles(text))
    if name.endswith("with") and draw(st.booleans()):
        needle = tuple(draw(st.lists(needles(text), max_size=3)))
    return call(name, needle, *draw(st.lists(bounds, max_size=2)))


@given(st.data(), texts, frame_sizes, cache_sizes, bounds, bounds, LIMITS)
@settings(max_examples=examples(300))
def test_search(
    data: st.DataObject, text: str, frame_bytes: int, cache: int, a: int | None, b: int | None, limit: int
) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=limit) as context:
        for _ in range(4):
            operation = data.draw(searches(text))
            assert_alike(operation, context, text)
            assert_alike(operation, context.view(a, b), text[a:b])
            needle = data.draw(needles(text))
            assert (needle in context) == (needle in text)


@given(st.text("ab", max_size=60), st.text("ab", min_size=1, max_size=7), frame_sizes, bounds, bounds)
@settings(max_examples=examples(500))
@example("aaaaaaa", "aa", 1, 1, None)
@example("abaababaabaab", "abaab", 3, None, None)
def test_needles_that_overlap_themselves(
    text: str, needle: str, frame_bytes: int, a: int | None, b: int | None
) -> None:
    with Stored(text, frame_bytes, materialize_limit=3) as context:
        for name in ("count", "find", "rfind"):
            assert_alike(call(name, needle, a, b), context, text)
        assert_alike(call("split", needle), context, text)
        assert_alike(call("rsplit", needle), context, text)
        assert_alike(call("split", needle, 2), context, text)
        assert_alike(call("replace", needle, "X"), context, text)
        assert_alike(call("replace", needle, "aba", 2), context, text)


@given(texts, frame_sizes, cache_sizes, st.booleans(), st.booleans(), bounds, bounds, slices)
@settings(max_examples=examples(400))
@example("a\r\nb\r", 2, 0, True, True, None, None, slice(None))
@example("\r\n" * 5, 1, 0, True, False, 1, None, slice(None, None, -1))
def test_lines_by_splitting(
    text: str, frame_bytes: int, cache: int, lazy: bool, keepends: bool, a: int | None, b: int | None, key: slice
) -> None:
    limit = {"materialize_limit": 3} if lazy else {}
    with Stored(text, frame_bytes, cache_bytes=cache, **limit) as whole:  # type: ignore[arg-type]
        for context, right in [(whole, text), (whole.view(a, b), text[a:b])]:
            for operation in (call("splitlines", keepends), call("split", "\n"), call("split"), call("split", "\r\n")):
                parts, expected = operation(context), operation(right)
                assert plain(parts) == expected
                assert parts == expected
                assert expected == parts
                assert parts != [*expected, ""]
                assert parts != expected[:-1] or not expected
                assert plain(parts[key]) == expected[key]
                assert [plain(part) for part in reversed(parts)] == expected[::-1]
                for i in {0, -1, len(expected) // 2, -len(expected), len(expected), 10**18}:
                    assert_alike_item(parts, expected, i)
                for item in [*expected[:2], *expected[-1:]]:
                    assert item in parts
                    assert parts.index(item) == expected.index(item)
                    assert parts.count(item) == expected.count(item)
                assert "never there" not in parts


def assert_alike_item(parts: Any, expected: list[str], i: int) -> None:
    try:
        right = expected[i]
    except IndexError:
        with pytest.raises(IndexError):
            parts[i]
        return
    assert plain(parts[i]) == right


@given(texts, frame_sizes, cache_sizes, bounds, bounds, slices, LIMITS)
@settings(max_examples=examples(400))
@example("a\n\nb", 1, 0, None, None, slice(None, None, -1), 3)
def test_lines(text: str, frame_bytes: int, cache: int, a: int | None, b: int | None, key: slice, limit: int) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=limit) as whole:
        for context, right in [(whole, text), (whole.view(a, b), text[a:b])]:
            expected = [line + "\n" for line in right.split("\n")]
            expected[-1] = expected[-1][:-1]
            if not expected[-1]:
                expected.pop()
            lines = context.lines
            assert len(lines) == len(expected)
            assert [plain(line) for line in lines] == expected
            assert [plain(line) for line in reversed(lines)] == expected[::-1]
            try:
                assert plain(lines[key]) == "".join(expected[key])
            except ContextTooLarge:
                assert limit < 1 << 20
            for i in {0, -1, len(expected) // 2, -len(expected), len(expected), -len(expected) - 1}:
                assert_alike_item(lines, expected, i)


@given(texts, frame_sizes, cache_sizes, st.integers(1, 50), bounds, bounds)
@everywhere
def test_chunks(text: str, frame_bytes: int, cache: int, size: int, a: int | None, b: int | None) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=3) as whole:
        for context, right in [(whole, text), (whole.view(a, b), text[a:b])]:
            pieces = list(context.chunks(size))
            assert "".join(pieces) == right
            assert all(type(piece) is str and 1 <= len(piece) <= size for piece in pieces)
            for piece in pieces[:-1]:
                assert len(piece) == size or piece.endswith("\n")
                assert len(piece) >= size - size // 8


# -- all other methods ----------------------------------------------------

PLAIN = ["lower", "upper", "casefold", "swapcase", "title", "capitalize", "expandtabs", "strip", "lstrip", "rstrip"]
QUESTIONS = [
    *("isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "isidentifier", "islower", "isnumeric", "isprintable"),
    *("isspace", "istitle", "isupper"),
]
WITH_ARGUMENTS = [
    *("slice", "split", "rsplit", "splitlines", "partition", "rpartition", "replace", "translate", "removeprefix"),
    *("removesuffix", "center", "ljust", "rjust", "zfill", "add", "radd", "mul", "encode", "less", "equal", "item"),
    *("tabs", "chars"),
]
TABLE = {ord("a"): "xyz", ord("\n"): None, ord("é"): "e", ord("b"): 0x1F600}


@st.composite
def methods(draw: st.DrawFn, text: str) -> Operation:
    """Any method of `str` with arguments that may matter."""
    needle = needles(text)
    small = st.integers(-2, 5)
    name = draw(st.sampled_from([*PLAIN, *QUESTIONS, *SEARCHES, *WITH_ARGUMENTS]))
    if name in PLAIN + QUESTIONS:
        return call(name)
    if name in SEARCHES:
        return draw(searches(text))
    match name:
        case "slice":
            key = draw(slices)
            return lambda t: t[key]
        case "item":
            at = draw(offsets)
            return lambda t: t[at]
        case "split" | "rsplit":
            return call(name, draw(st.none() | needle), draw(small))
        case "splitlines":
            return call(name, draw(st.booleans()))
        case "partition" | "rpartition" | "removeprefix" | "removesuffix":
            return call(name, draw(needle))
        case "replace":
            return call(name, draw(needle), draw(needle), draw(small))
        case "translate":
            return call(name, TABLE)
        case "center" | "ljust" | "rjust":
            return call(name, draw(st.integers(-3, 80)), draw(st.sampled_from(["x", " ", "漢"])))
        case "zfill":
            return call(name, draw(st.integers(-3, 80)))
        case "add":
            more = draw(texts)
            return lambda t: t + more
        case "radd":
            more = draw(texts)
            return lambda t: more + t
        case "mul":
            times = draw(small)
            return lambda t: t * times
        case "encode":
            return call("encode", draw(st.sampled_from(["utf-8", "utf-16-le", "ascii"])), "replace")
        case "less":
            other = draw(needle)
            return lambda t: (t < other, t <= other, t > other, t >= other)
        case "equal":
            other = draw(needle)
            return lambda t: t == other
        case "tabs":
            return call("expandtabs", draw(small))
        case _:
            return call(draw(st.sampled_from(["strip", "lstrip", "rstrip"])), draw(needle))


@given(st.data(), texts, frame_sizes, cache_sizes, bounds, bounds, LIMITS)
@settings(max_examples=examples(400))
def test_every_method(
    data: st.DataObject, text: str, frame_bytes: int, cache: int, a: int | None, b: int | None, limit: int
) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=limit) as context:
        for _ in range(3):
            operation = data.draw(methods(text))
            assert_alike(operation, context, text)
            assert_alike(operation, context.view(a, b), text[a:b])


@given(st.data(), texts, frame_sizes)
@settings(max_examples=examples(400))
def test_methods_of_what_methods_gave(data: st.DataObject, text: str, frame_bytes: int) -> None:
    with Stored(text, frame_bytes, materialize_limit=3) as context:
        mine: Any = context
        right = text
        for _ in range(3):
            operation = data.draw(methods(right))
            assert_alike(operation, mine, right)
            try:
                result, expected = operation(mine), operation(right)
            except (ContextTooLarge, ValueError, IndexError, TypeError, OverflowError):
                continue
            if isinstance(result, Monocontext) and len(expected) < 300:
                mine, right = result, expected


@pytest.mark.parametrize(
    "operation",
    [
        lambda t: t["a"],
        lambda t: t[1.5],
        lambda t: t[None],
        lambda t: t[::0],
        lambda t: t["a":],
        lambda t: 3 in t,
        lambda t: None in t,
        lambda t: t.find(3),
        lambda t: t.find(),
        lambda t: t.find("a", "b"),
        lambda t: t.count(None),
        lambda t: t.startswith(3),
        lambda t: t.startswith(("x", 3)),
        lambda t: t.startswith(("a", 3)),
        lambda t: t.startswith((("a",),)),
        lambda t: t.startswith(["a"]),
        lambda t: t.endswith(None),
        lambda t: t.split(3),
        lambda t: t.split(""),
        lambda t: t.split("a", "b"),
        lambda t: t.replace("a"),
        lambda t: t.index("not there"),
        lambda t: t.rindex("not there"),
        lambda t: t[len(t)],
        lambda t: t[-len(t) - 1],
        lambda t: t < 3,
        lambda t: t + 3,
        lambda t: t + b"x",
        lambda t: t * "x",
        lambda t: t.center("x"),
        lambda t: t.center(9, "xy"),
        lambda t: t.join([3]),
        lambda t: t.partition(""),
        lambda t: setattr(t, "x", 3),
        lambda t: t.__setitem__(0, "x"),
    ],
    ids=range(35),
)
@pytest.mark.parametrize("limit", [3, 1000])
def test_errors_are_of_the_same_kind(operation: Operation, limit: int) -> None:
    text = "abc\ndef"
    with Stored(text, 3, materialize_limit=limit) as context:
        expected = None
        try:
            result = operation(text)
        except Exception as error:
            expected = type(error)
        if expected is None:
            assert plain(operation(context)) == result
            return
        with pytest.raises((expected, ContextTooLarge) if limit == 3 else expected):
            operation(context)


def test_too_large_says_what_to_do() -> None:
    with Stored("abc\n" * 10, 7, materialize_limit=5) as context:
        for operation in (str, hash, lambda t: f"{t}", lambda t: t * 3, lambda t: t.encode()):
            with pytest.raises(Exception, match="characters, more than the limit of 5") as raised:
                operation(context)
            assert isinstance(raised.value, MemoryError | TypeError)


def test_it_is_a_sequence_and_no_str() -> None:
    from collections.abc import Sequence

    with Stored("abc", 3) as context:
        assert isinstance(context, Sequence)
        assert not isinstance(context, str)
        assert type(context) is Monocontext
        assert repr(context).startswith("<Monocontext 3 characters")


# -- on every kind of store ----------------------------------------------------

DATA = "".join(c + ("\n" if i % 5 == 0 else "") for i, c in enumerate(ALPHABET * 3))


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["raw", "zstd"])
def test_on_every_store(any_store: Store, codec: str) -> None:
    publish(DATA, any_store, frame_bytes=60, segment_bytes=200, codec=codec)
    for options in ({}, {"cache_bytes": 0}, {"materialize_limit": 10}):
        with Monocontext.open(any_store, **options) as context:  # type: ignore[arg-type]
            for operation in [
                lambda t: t[3:50],
                lambda t: t[::-7],
                lambda t: t[-1],
                lambda t: t.find("👍🏽", 40),
                lambda t: t.rfind("e\u0301"),
                lambda t: t.count("\n", 3, 100),
                lambda t: t.count("ab"),
                lambda t: t.endswith("\ufb01"),
                lambda t: t.split("\n"),
                lambda t: t.splitlines(True),
                lambda t: "missing" in t,
                lambda t: "".join(t),
                lambda t: t == DATA,
            ]:
                assert_alike(operation, context, DATA)
            assert "".join(context.chunks(31)) == DATA
            assert "".join(context.lines) == DATA


@pytest.mark.slow
@given(st.data())
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_texts_on_every_store(any_store: Store, data: st.DataObject) -> None:
    text, frame_bytes = data.draw(texts), data.draw(frame_sizes)
    codec = data.draw(st.sampled_from(["raw", "zstd"]))
    publish(text, any_store, frame_bytes=frame_bytes, segment_bytes=3 * frame_bytes, codec=codec, replace=True)
    options = {"cache_bytes": data.draw(cache_sizes), "materialize_limit": data.draw(LIMITS)}
    with Monocontext.open(any_store, **options) as context:  # type: ignore[arg-type]
        a, b = data.draw(bounds), data.draw(bounds)
        for _ in range(5):
            operation = data.draw(methods(text))
            assert_alike(operation, context, text)
            assert_alike(operation, context.view(a, b), text[a:b])
        assert "".join(context.view(a, b).lines) == text[a:b]


@pytest.mark.slow
@given(st.data(), texts, frame_sizes, cache_sizes, bounds, bounds, LIMITS)
@settings(max_examples=examples(10_000))
def test_every_method_at_length(
    data: st.DataObject, text: str, frame_bytes: int, cache: int, a: int | None, b: int | None, limit: int
) -> None:
    with Stored(text, frame_bytes, cache_bytes=cache, materialize_limit=limit) as context:
        for _ in range(4):
            operation = data.draw(methods(text))
            assert_alike(operation, context, text)
            assert_alike(operation, context.view(a, b), text[a:b])
