"""Coalescing: each need whole in one request, nothing read twice, and the bounds that the docstrings promise."""

from __future__ import annotations

import math
import random
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from monocontext.engine.fetch.requests import GAP_BYTES, MAX_PART_BYTES, PART_BYTES, FetchItem, coalesce, part_bytes

sizes = st.integers(1, 400_000)
gaps = st.sampled_from([0, 0, 0, 1, GAP_BYTES - 1, GAP_BYTES, GAP_BYTES + 1, 5_000_000])


def item(key: int, object: str, offset: int, size: int, bytes_: int | None = None, is_raw: bool = False) -> FetchItem:
    return FetchItem(key, object, offset, size, size if bytes_ is None else bytes_, bytes, is_raw=is_raw)


@st.composite
def needs(draw: st.DrawFn) -> list[FetchItem]:
    """Needs in a few objects, in any order, with gaps of all kinds."""
    items: list[FetchItem] = []
    for name in draw(st.lists(st.sampled_from("abc"), max_size=3, unique=True)):
        offset = draw(st.integers(0, 1000))
        for size, gap in draw(st.lists(st.tuples(sizes, gaps), max_size=25)):
            items.append(item(len(items), name, offset, size, size * 3))
            offset += size + gap
    return draw(st.permutations(items))


@given(needs(), st.integers(1, 8))
def test_any_needs(wanted: list[FetchItem], at_once: int) -> None:
    requests, keys = coalesce(wanted), sorted(need.key for need in wanted)  # type: ignore[type-var]
    limit = part_bytes(sum(need.stored_bytes for need in wanted))
    assert sorted(need.key for request in requests for need in request.items) == keys, "each in one request"  # type: ignore[type-var]
    for request in requests:
        assert {need.object for need in request.items} == {request.object}
        assert request.start == min(need.offset for need in request.items)
        assert request.stop == max(need.offset + need.stored_bytes for need in request.items)
        assert request.memory_bytes == request.stored_bytes + sum(need.decoded_bytes for need in request.items)
        assert request.stored_bytes <= limit or len(request.items) == 1
        for left, right in pairwise(request.items):
            assert 0 <= right.offset - left.offset - left.stored_bytes <= GAP_BYTES, "only short gaps are read over"
    for one, other in pairwise(sorted(requests, key=lambda request: (request.object, request.start))):
        assert one.object != other.object or one.stop <= other.start, "nothing is read twice"
        if one.object == other.object and other.start - one.stop <= GAP_BYTES:
            assert other.items[0].offset + other.items[0].stored_bytes - one.start > limit, "they fit one part"
    rank = {need.key: number for number, need in enumerate(wanted)}
    first = [min(rank[need.key] for need in request.items) for request in requests]
    assert first == sorted(first), "what is wanted first is asked for first"
    fewer = coalesce(wanted, most_requests=at_once)
    assert sorted(need.key for request in fewer for need in request.items) == keys  # type: ignore[type-var]
    assert len(fewer) <= len(requests)
    assert len(requests) > at_once or [one.items for one in fewer] == [one.items for one in requests]


def test_bounds_in_figures() -> None:
    frames = [item(number, "a", number * (256 << 10), 256 << 10) for number in range(64)]
    random.shuffle(frames)
    assert len(coalesce(frames)) == 16  # 16 MiB in parts of 1 MiB
    assert len(coalesce([need._replace(object=str(need.key)) for need in frames])) == 64
    assert coalesce([]) == []
    large = item(0, "a", 0, MAX_PART_BYTES * 2)
    small = [item(1 + number, "a", MAX_PART_BYTES * 2 + 10 * number, 10) for number in range(2)]
    assert [len(request.items) for request in coalesce([large, *small])] == [1, 2], "what fits no part goes alone"
    # The same stored bytes can be two frames: a text that repeats itself.
    (request,) = coalesce([item(0, "a", 0, 100), item(1, "a", 0, 100), item(2, "a", 100, 5)])
    assert (request.start, request.stop, len(request.items)) == (0, 105, 3)


def test_what_a_request_occupies() -> None:
    raw, packed = item(0, "a", 0, 100, is_raw=True), item(1, "a", 100, 100, 300)
    occupied = [[request.memory_bytes for request in coalesce(needs)] for needs in ([raw], [packed], [raw, packed])]
    assert occupied == [[100], [400], [600]]


def test_where_requests_would_wait_for_each_other_wider_gaps_are_read_over() -> None:
    """100 needs of 10 KB, 200 KB apart: one request each while that many may run, few large ones when not."""
    apart = [item(number, "a", number * 200_000, 10_000) for number in range(100)]
    assert len(coalesce(apart)) == len(coalesce(apart, most_requests=100)) == 100
    fewer = coalesce(apart, most_requests=64)
    assert len(fewer) == math.ceil(100 / 6)  # six lie within the MiB of one part
    assert max(request.stored_bytes for request in fewer) <= PART_BYTES
    wide = [need._replace(offset=need.key * (8 * GAP_BYTES + 10_001)) for need in apart]  # type: ignore[operator]
    assert len(coalesce(wide, most_requests=1)) == 100, "a gap of more than 1 MiB is never read over"
