"""Frames that are sliced again and again are kept decoded: in the room that the cache has left, at their real size."""

from __future__ import annotations

import sys

import pytest

from .counted import counted

SCRIPTS = {
    "ASCII": "plain words in a line\n",
    "Latin-1": "café au lait, déjà vu\n",
    "CJK": "漢字かな交じり文\n",
    "emoji": "mostly ASCII, and 😀\n",
}


@pytest.mark.parametrize("line", SCRIPTS.values(), ids=SCRIPTS)
def test_slices_are_equal_before_and_after_and_the_texts_are_counted(line: str) -> None:
    text = line * 500
    context = counted(text, frame_bytes=1000, options={"cache_bytes": 1 << 20}).context
    cache = context._reader.cache
    for _ in range(4):
        assert [context[at : at + 50] for at in range(0, len(text), 37)] == [
            text[at : at + 50] for at in range(0, len(text), 37)
        ]
    texts = [cache.get(number) for number in range(5)]
    assert all((frame.decoded is not None) == (line is not SCRIPTS["ASCII"]) for frame in texts)
    for _ in range(12):  # long slices of ASCII decode as well
        assert context[100:5000] + context[5000:9999] == text[100:9999]
    decoded_bytes = sum(sys.getsizeof(frame.decoded) for frame in texts if frame.decoded is not None)
    assert cache.used_bytes >= decoded_bytes + len(text.encode())


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


def test_a_frame_that_was_evicted_and_fetched_again_is_counted_as_it_is() -> None:
    """A caller may hold the text of a frame, and slice it on, while the cache has another one of that number."""
    text = SCRIPTS["CJK"] * 400
    context = counted(text, frame_bytes=1000, options={"cache_bytes": 1 << 20}).context
    reader = context._reader
    held = reader.within(0, 10)
    reader.cache.clear()
    assert reader.within(0, 10) is not held
    before = reader.cache.used_bytes
    for _ in range(50):
        held.slice(3, 9)
        reader._keep_decoded(held)
    assert (held.decoded, reader.cache.used_bytes) == (None, before)


def test_what_is_kept_decoded_makes_room_for_a_text_that_fits() -> None:
    """The first part of a text is sliced again and again, and then the rest is read: all of it stays in memory."""
    text = SCRIPTS["CJK"] * 600
    subject = counted(text, frame_bytes=1000, options={"cache_bytes": 23_000})
    for _ in range(3):
        for at in range(0, 2500, 60):
            assert subject.context[at : at + 30] == text[at : at + 30]
    cache = subject.context._reader.cache
    first = cache.peek(0)
    assert first.decoded is not None
    for at in range(0, len(text), 300):
        assert subject.context[at : at + 300] == text[at : at + 300]
    assert first.decoded is None
    assert (subject.gets > 0, cache.used_bytes <= 23_000) == (True, True)
    assert subject.context[:] == text
    assert not subject.gets
