"""Frames that are sliced again and again are kept decoded: in the room that the cache has left, at their real size."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.engine.fetch.cache import Cache

from .counted import counted

SCRIPTS = {
    "ASCII": "plain words in a line\n",
    "Latin-1": "café au lait, déjà vu\n",
    "CJK": "漢字かな交じり文\n",
    "emoji": "mostly ASCII, and 😀\n",
}


class Piece:
    def __init__(self, size_bytes: int):
        self.size_bytes = size_bytes
        self.decoded: str | None = None
        self.decoding_work = 0


@given(
    st.integers(0, 3000),
    st.lists(st.tuples(st.sampled_from(["put", "get", "keep", "hold", "mend"]), st.integers(0, 9))),
)
def test_no_sequence_leaves_a_text_without_its_frame_or_the_cache_too_full(
    capacity: int, steps: list[tuple[str, int]]
) -> None:
    cache, pieces = Cache(capacity), list[Piece]()
    for step, key in steps:
        found = cache.get(key) if step == "keep" and key in cache else None
        if step == "put":
            pieces.append(Piece(100 + 30 * key))
            cache.put(key, pieces[-1], used=key % 2 == 0)
        elif step == "get":
            cache.get(key)
        elif step == "hold":
            cache.hold(key)
        elif step == "mend":
            cache._is_dirty = True
        elif isinstance(found, Piece) and cache.has_room_for_decoded(10 * key):
            cache.keep_decoded(key, found, "😀" * 10 * key)
        assert cache.used_bytes <= capacity
        here = {id(cache._main.get(key)) for key in cache._main} | {id(one.entry) for one in cache._probation.values()}
        here |= {id(entry) for entry, _ in cache._expected.values()}
        kept = [piece for piece in pieces if piece.decoded is not None]
        assert all(id(piece) in here for piece in kept)
        assert sum(sys.getsizeof(piece.decoded) for piece in kept) == cache._decoded.size_bytes


@pytest.mark.parametrize("line", SCRIPTS.values(), ids=SCRIPTS)
def test_slices_are_equal_before_and_after_and_the_texts_are_counted(line: str) -> None:
    text = line * 500
    context = counted(text, frame_bytes=1000, options={"cache_bytes": 1 << 20}).context
    cache = context._reader.cache
    for _ in range(4):
        assert [context[at : at + 50] for at in range(0, len(text), 37)] == [
            text[at : at + 50] for at in range(0, len(text), 37)
        ]
    assert (cache._decoded.size_bytes > len(text)) == (line is not SCRIPTS["ASCII"])
    for _ in range(12):  # long slices of ASCII decode as well
        assert context[100:5000] + context[5000:9999] == text[100:9999]
    frames = [text for text in (cache.get(number) for number in range(5)) if text.decoded is not None]
    assert cache._decoded.size_bytes >= sum(sys.getsizeof(frame.decoded) for frame in frames)


def test_a_cache_without_room_keeps_frames_and_asks_for_nothing_again() -> None:
    text = SCRIPTS["CJK"] * 400
    subject = counted(text, frame_bytes=1000, options={"cache_bytes": 15_000})
    subject.context[:]
    assert subject.gets > 0
    for _ in range(3):
        for at in range(0, 4000, 97):
            assert subject.context[at : at + 30] == text[at : at + 30]
    assert not subject.gets
    for at in range(0, 4000, 97):
        assert subject.context[at : at + 30] == text[at : at + 30]
    assert not subject.gets
    assert subject.context._reader.cache.used_bytes <= 15_000
