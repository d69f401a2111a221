"""What stays in memory: bounded, and the least recently used goes first."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from functools import partial
from types import FrameType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext import Monocontext
from monocontext.engine.fetch import cache as cache_module
from monocontext.engine.fetch.cache import Cache
from monocontext.format.index import FRAMES_PER_PAGE
from tests.virtual import virtual_context


class Piece:
    """Something of so many bytes."""

    def __init__(self, size_bytes: int = 10):
        self.size_bytes = size_bytes


def fill(cache: Cache, keys: range, size_bytes: int = 10) -> None:
    for key in keys:
        cache.put(key, Piece(size_bytes))


def use_again(cache: Cache, keys: range) -> None:
    """Use what is there, long after it was used first."""
    for key in keys:
        assert cache.get(key) is not None


def test_the_least_recently_used_goes_first() -> None:
    cache = Cache(1000)
    fill(cache, range(100))
    use_again(cache, range(50))
    fill(cache, range(200, 210))
    assert [key for key in range(100) if key not in cache] == list(range(50, 60))


def test_a_check_for_frames_in_memory_is_no_use_of_their_index_page() -> None:
    with Monocontext.open(virtual_context(3 * FRAMES_PER_PAGE, "a line of a frame\n" * 2000)) as context:
        reader = context._reader
        assert reader is not None
        start, first_page = len(context) // 5, ("page", 0)
        reader.read(start, start + 10)
        reader.read(len(context) // 2, len(context) // 2 + 10)  # the table keeps the page of this one outside the cache
        assert reader.cache.mark_expected(first_page)
        assert reader.is_in_memory(start, start + 10)
        assert not reader.cache.mark_expected(first_page)


def test_what_was_fetched_ahead_goes_last_until_it_is_used() -> None:
    cache = Cache(1000)
    for key in range(50):
        cache.put(key, Piece(), used=False)
    fill(cache, range(100, 200))
    assert (cache.expected_bytes, all(key in cache for key in range(50))) == (500, True)
    use_again(cache, range(25))
    fill(cache, range(200, 250))
    assert [key for key in range(50) if key in cache] == [*range(25), *range(25, 50)]
    fill(cache, range(300, 325))
    assert [key for key in range(50) if key in cache] == list(range(25, 50))
    assert cache.mark_expected(324)
    assert not cache.mark_expected(25)
    cache.unmark_expected()
    fill(cache, range(400, 410))
    assert [key for key in range(50) if key in cache] == list(range(35, 50))


@given(
    capacity=st.integers(0, 60),
    events=st.lists(st.tuples(st.sampled_from(["put", "ahead", "get"]), st.integers(0, 12), st.integers(1, 30))),
)
def test_any_order_of_events(capacity: int, events: list[tuple[str, int, int]]) -> None:
    """What it returns is what was put last; never more than fits; the newest is there; all is there while all fits."""
    cache, put, given_up = Cache(capacity), dict[Hashable, Piece](), False
    for verb, key, size in events:
        if verb == "get":
            assert cache.get(key) in (None, put.get(key))
            continue
        piece = Piece(size)
        cache.put(key, piece, used=verb == "put")
        if size <= capacity:
            put[key] = piece
            assert key in cache
        else:
            put.pop(key, None)
        given_up |= sum(one.size_bytes for one in put.values()) > capacity
        kept = [one for one in put if one in cache]
        assert cache.used_bytes == sum(put[one].size_bytes for one in kept) <= max(capacity, 0)
        assert len(cache) == len(kept)
        assert not set(cache._used) & set(cache._expected)
        assert given_up or len(kept) == len(put)


class _Struck(BaseException):
    pass


def strike(work: Callable[[], object], line: int) -> bool:
    """Do work in the cache, with an exception before one of its lines; fails if it takes 10,000 lines. Returns whether
    there was such a line."""
    lines = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != cache_module.__file__:
            return None
        lines += event == "line"
        assert lines < 10_000
        if event == "line" and lines == line:
            raise _Struck
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    except _Struck:
        return True
    finally:
        sys.settrace(before)
    return lines >= line


CHANGES: dict[str, Callable[[Cache], object]] = {
    "use": lambda cache: cache.get(1), "use what was expected": lambda cache: cache.get(20),
    "put": lambda cache: cache.put(50, Piece()), "put again": lambda cache: cache.put(5, Piece(20)),
    "expect": lambda cache: cache.mark_expected(6), "expect nothing": lambda cache: cache.unmark_expected(),
}  # fmt: skip


def use_many(cache: Cache) -> None:
    for _ in range(3):
        for key in (*range(100, 130), *range(8), 20, 21, 50):
            if cache.get(key) is None:
                cache.put(key, Piece(), used=key % 5 > 0)


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_an_interrupted_change_neither_hangs_nor_spoils_what_follows(change: Callable[[Cache], object]) -> None:
    line, was_struck = 0, True
    while was_struck:
        line += 1
        cache = Cache(100)
        fill(cache, range(8))
        for key in range(20, 22):
            cache.put(key, Piece(), used=False)
        was_struck = strike(partial(change, cache), line)
        strike(partial(use_many, cache), -1)
        assert cache.used_bytes == 10 * len(cache) == 100
    assert line > 3
