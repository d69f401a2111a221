"""The way between the characters and the bytes of one frame, at and around every checkpoint."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from monocontext.engine import frame as frametext
from monocontext.engine.frame import CHECKPOINT_EVERY, FrameText
from monocontext.errors import DamagedData
from monocontext.format.codec import describe
from monocontext.format.index import Frame
from tests.budget import examples

texts = st.text("ab\né漢😀\r\u0301", min_size=1, max_size=80)


def frame_of(text: str, **changes: int) -> FrameText:
    data = text.encode()
    record = describe(data, data)._replace(**changes)
    return FrameText(Frame(3, "segments/a.seg", 0, *record, "raw", None, 0, 0, 0), data)


@settings(max_examples=examples(300))
@given(texts, st.sampled_from([8, 16, 24, 1024]), st.data())
def test_all_ways(text: str, checkpoint_every: int, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frametext, "CHECKPOINT_EVERY", checkpoint_every)
        patch.setattr(frametext, "NEWLINES_EVERY", checkpoint_every // 2)
        frame = frame_of(text)
        for _ in range(5):
            a, b = sorted([data.draw(st.integers(0, len(text))), data.draw(st.integers(0, len(text)))])
            if a < b:
                assert frame.slice(a, b) == text[a:b]
            assert frame.to_byte(a) == len(text[:a].encode())
            assert frame.to_character(len(text[:a].encode())) == a
        newlines = [i for i, character in enumerate(text) if character == "\n"]
        assert [frame.nth_newline(n) for n in range(len(newlines))] == newlines
        for at in range(len(text) + 1):
            byte = len(text[:at].encode())
            assert frame.newlines_before(byte) == frame_of(text).newlines_before(byte) == text.count("\n", 0, at)
        with pytest.raises(DamagedData, match=r"frame 3 of segments/a\.seg: expected \d+ newlines, found \d+"):
            frame.nth_newline(len(newlines))
        assert frame.text == text


@pytest.mark.parametrize("size", [CHECKPOINT_EVERY - 1, CHECKPOINT_EVERY, CHECKPOINT_EVERY + 1, 70_000])
def test_around_the_checkpoints_of_a_real_frame(size: int) -> None:
    text = "".join(random.Random(size).choices("abc\né漢😀", k=size))
    frame = frame_of(text)
    checkpoints = [
        len(frame.data[:byte].decode(errors="ignore")) for byte in range(0, len(frame.data), CHECKPOINT_EVERY)
    ]
    for at in sorted({min(max(place + d, 0), size - 1) for place in (*checkpoints, size) for d in (-1, 0, 1)}):
        byte, start, stop = len(text[:at].encode()), max(at - 2000, 0), min(at + 2000, size)
        assert (frame.to_byte(at), frame.to_character(byte)) == (byte, at)
        assert (frame.slice(start, at + 1), frame.slice(at, stop)) == (text[start : at + 1], text[at:stop])
    assert frame.nth_newline(text.count("\n") - 1) == text.rindex("\n")


def test_counts_that_lie_are_found_where_they_matter() -> None:
    for text in ("é" * 50, "é" * 5000):
        lying = frame_of(text, characters=len(text) - 1)
        for ask in (lambda f: f.text, lambda f: f.slice(0, 3), lambda f: f.to_byte(3), lambda f: f.to_character(4)):
            with pytest.raises(DamagedData, match=rf"frame 3 .*expected {len(text) - 1} characters, found {len(text)}"):
                ask(lying)
