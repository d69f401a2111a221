"""Coalescing: each need whole in one request, nothing read twice, and the bounds that the docstrings promise."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monocontext.engine.fetch.requests import (
    FAN_OUT,
    GAP_BYTES,
    MAX_PART_BYTES,
    PART_BYTES,
    FetchItem,
    coalesce,
    part_bytes,
)

sizes = st.integers(1, 400_000)
gaps = st.sampled_from([0, 0, 0, 1, GAP_BYTES - 1, GAP_BYTES, GAP_BYTES + 1, 5_000_000])


@st.composite
def needs(draw: st.DrawFn) -> list[FetchItem]:
    """Needs in a few objects, in any order, with gaps of all kinds."""
    found: list[FetchItem] = []
    for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
        at = draw(st.integers(0, 1000))
        for size, gap in draw(st.lists(st.tuples(sizes, gaps), max_size=25)):
            found.append(FetchItem(len(found), name, at, size, size * 3, bytes))
            at += size + gap
    return draw(st.permutations(found))


@given(needs())
def test_each_need_lies_whole_in_exactly_one_request(wanted: list[FetchItem]) -> None:
    requests = coalesce(wanted)
    assert sorted(need.key for request in requests for need in request.items) == sorted(need.key for need in wanted)
    for request in requests:
        for need in request.items:
            assert need.object == request.object
            assert request.start <= need.offset
            assert need.offset + need.stored_bytes <= request.stop
        assert request.start == min(need.offset for need in request.items)
        assert request.stop == max(need.offset + need.stored_bytes for need in request.items)
        assert request.memory_bytes == request.stored_bytes + sum(need.bytes for need in request.items)


@given(needs())
def test_requests_do_not_overlap_and_read_over_short_gaps_only(wanted: list[FetchItem]) -> None:
    requests = coalesce(wanted)
    for left, right in pairwise(sorted(requests, key=lambda request: (request.object, request.start))):
        assert left.object != right.object or left.stop <= right.start
    for request in requests:
        for left, right in pairwise(request.items):
            assert 0 <= right.offset - left.offset - left.stored_bytes <= GAP_BYTES


@given(needs())
def test_no_request_is_longer_than_a_part(wanted: list[FetchItem]) -> None:
    limit = part_bytes(sum(need.stored_bytes for need in wanted))
    for request in coalesce(wanted):
        assert request.stored_bytes <= limit or len(request.items) == 1


@given(needs())
def test_neighbours_that_fit_one_part_are_one_request(wanted: list[FetchItem]) -> None:
    limit = part_bytes(sum(need.stored_bytes for need in wanted))
    for left, right in pairwise(sorted(coalesce(wanted), key=lambda request: (request.object, request.start))):
        if left.object == right.object and right.start - left.stop <= GAP_BYTES:
            assert right.items[0].offset + right.items[0].stored_bytes - left.start > limit


@given(st.lists(sizes, min_size=1, max_size=200))
def test_how_many_requests_for_what_lies_back_to_back(frames: list[int]) -> None:
    at = 0
    wanted = []
    for number, size in enumerate(frames):
        wanted.append(FetchItem(number, "a", at, size, size, bytes))
        at += size
    part = part_bytes(at)
    # A request ends where the next frame would not fit any more, so each two of them together hold more than a part.
    assert len(coalesce(wanted)) <= 2 * math.ceil(at / part)
    small = max(frames)
    assert len(coalesce(wanted)) <= math.ceil(at / max(part - small, 1))


@given(st.integers(0, 1 << 40))
def test_the_size_of_a_part(total: int) -> None:
    part = part_bytes(total)
    assert PART_BYTES <= part <= MAX_PART_BYTES
    if PART_BYTES * FAN_OUT <= total <= MAX_PART_BYTES * FAN_OUT:
        assert part == total // FAN_OUT


def test_bounds_in_figures() -> None:
    frame = 256 << 10
    back_to_back = [FetchItem(i, "a", i * frame, frame, frame, bytes) for i in range(64)]
    random.shuffle(back_to_back)
    assert len(coalesce(back_to_back)) == 16  # 16 MiB in parts of 1 MiB
    assert len(coalesce(back_to_back * 1)) == 16
    apart = [need._replace(object=str(need.key)) for need in back_to_back]
    assert len(coalesce(apart)) == 64
    assert coalesce([]) == []


def test_one_stretch_that_holds_two_places_of_the_text() -> None:
    """The same stored bytes can be two frames: a text that repeats itself."""
    twice = [
        FetchItem(0, "a", 0, 100, 100, bytes),
        FetchItem(1, "a", 0, 100, 100, bytes),
        FetchItem(2, "a", 100, 5, 5, bytes),
    ]
    (request,) = coalesce(twice)
    assert (request.start, request.stop, len(request.items)) == (0, 105, 3)


@given(needs())
def test_what_is_wanted_first_is_asked_for_first(wanted: list[FetchItem]) -> None:
    rank = {need.key: i for i, need in enumerate(wanted)}
    first = [min(rank[need.key] for need in request.items) for request in coalesce(wanted)]
    assert first == sorted(first)


def test_what_does_not_fit_a_part_goes_alone() -> None:
    large = FetchItem(0, "a", 0, MAX_PART_BYTES * 2, 1, bytes)
    small = [
        FetchItem(1, "a", MAX_PART_BYTES * 2, 10, 10, bytes),
        FetchItem(2, "a", MAX_PART_BYTES * 2 + 10, 10, 10, bytes),
    ]
    assert [len(request.items) for request in coalesce([large, *small])] == [1, 2]


def test_what_a_request_occupies() -> None:
    raw, packed = (FetchItem(i, "a", i * 100, 100, 100 + 200 * i, bytes, is_raw=i == 0) for i in (0, 1))
    assert [each.memory_bytes for each in coalesce([raw])] == [100]
    assert [each.memory_bytes for each in coalesce([packed])] == [400]
    assert [each.memory_bytes for each in coalesce([raw, packed])] == [600]


def test_where_requests_would_wait_for_each_other_wider_gaps_are_read_over() -> None:
    """100 needs of 10 KB, 200 KB apart: one request each while that many may run, few large ones when not."""
    apart = [FetchItem(i, "a", i * 200_000, 10_000, 10_000, bytes) for i in range(100)]
    assert len(coalesce(apart)) == len(coalesce(apart, at_once=100)) == 100
    fewer = coalesce(apart, at_once=64)
    assert len(fewer) == math.ceil(100 / 6)  # six lie within the MiB of one part
    assert {need.key for each in fewer for need in each.items} == set(range(100))
    assert max(each.stored_bytes for each in fewer) <= PART_BYTES
    wide = [need._replace(offset=need.key * (8 * GAP_BYTES + 10_001)) for need in apart]  # type: ignore[operator]
    assert len(coalesce(wide, at_once=1)) == 100, "a gap of more than 1 MiB is never read over"


@given(needs(), st.integers(1, 8))
def test_at_once_leaves_nothing_out(wanted: list[FetchItem], at_once: int) -> None:
    found, plain = coalesce(wanted, at_once=at_once), coalesce(wanted)
    assert sorted(need.key for each in found for need in each.items) == sorted(need.key for need in wanted)  # type: ignore[type-var]
    assert len(found) <= len(plain)
    assert len(plain) > at_once or [one.items for one in found] == [one.items for one in plain]
