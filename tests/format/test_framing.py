"""Cutting text into frames: nothing lost, no character and no CR LF in two, newlines preferred."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from monocontext.format.codec import Framer, describe
from monocontext.format.index import ASCII, ENDS_LINE, HAS_CR, HAS_OTHER_BREAKS, HAS_SIGMA, LOWER_KEEPS_LENGTH
from tests.budget import examples

ALPHABET = ["a", "b", " ", "\n", "\r", "\r\n", "é", "e\u0301", "漢", "😀", "\u2028", "\x0b", "\x85"]
texts = st.lists(st.sampled_from(ALPHABET), max_size=150).map("".join)


def frames_of(text: str, frame_bytes: int, cuts: list[int] | None = None) -> list[bytes]:
    """The frames of a text that is fed in pieces cut at the given characters."""
    framer = Framer(frame_bytes)
    bounds = [0, *sorted({min(cut, len(text)) for cut in cuts or []}), len(text)]
    frames = []
    for start, stop in itertools.pairwise(bounds):
        frames += framer.feed(text[start:stop].encode())
    return [*frames, *framer.finish()]


@settings(max_examples=examples(500))
@given(texts, st.integers(1, 100), st.lists(st.integers(0, 150), max_size=5))
@example("\r\n" * 20, 1, [1, 2, 3])
@example("\r\n" * 20, 3, [5])
@example("😀" * 9, 1, [])
@example("a\r\n", 2, [2])
@example("\r" * 9 + "\n", 3, [])
def test_frames(text: str, frame_bytes: int, cuts: list[int]) -> None:
    frames = frames_of(text, frame_bytes, cuts)
    assert b"".join(frames) == text.encode()
    assert frames == frames_of(text, frame_bytes)  # however the input arrives
    for frame in frames:
        assert len(frame) >= 1
        frame.decode()
        # A single character, or a CR LF pair, may reach past the limit.
        assert len(frame) <= frame_bytes or len(frame.decode()) == 1 or frame == b"\r\n"
    for left, right in itertools.pairwise(frames):
        assert not (left.endswith(b"\r") and right.startswith(b"\n"))


@given(texts, st.integers(8, 100))
def test_a_frame_ends_at_the_last_newline_of_its_last_quarter(text: str, frame_bytes: int) -> None:
    frames = frames_of(text, frame_bytes)
    data, offset = text.encode(), 0
    for frame in frames[:-1]:
        newline = data.rfind(b"\n", offset + frame_bytes - frame_bytes // 4, offset + frame_bytes)
        if newline >= 0:
            assert offset + len(frame) == newline + 1
        else:
            assert len(frame) >= frame_bytes - 3 - 1  # not cut shorter than a character or a CR takes
        offset += len(frame)


@pytest.mark.parametrize(
    ("text", "flags"),
    [
        ("a", ASCII | LOWER_KEEPS_LENGTH),
        ("a\r\n", ASCII | LOWER_KEEPS_LENGTH | HAS_CR | ENDS_LINE),
        ("\na", ASCII | LOWER_KEEPS_LENGTH),
        *[(f"a{c}", ASCII | LOWER_KEEPS_LENGTH | HAS_OTHER_BREAKS) for c in "\x0b\x0c\x1c\x1d\x1e"],
        *[(f"a{c}", LOWER_KEEPS_LENGTH | HAS_OTHER_BREAKS) for c in "\x85\u2028\u2029"],
        ("é", LOWER_KEEPS_LENGTH),
        ("\u0130", 0),
        ("Σ", LOWER_KEEPS_LENGTH | HAS_SIGMA),
        ("\u0130Σ\r\u2028", HAS_SIGMA | HAS_CR | HAS_OTHER_BREAKS),
    ],
)
def test_flags(text: str, flags: int) -> None:
    assert describe(text.encode(), b"").flags == flags


@given(st.text())
def test_what_flags_claim(text: str) -> None:
    record = describe(text.encode(), b"stored")
    assert (record.bytes, record.characters, record.newlines) == (len(text.encode()), len(text), text.count("\n"))
    assert record.stored_bytes == 6
    assert bool(record.flags & ASCII) == text.isascii()
    if not record.flags & (HAS_CR | HAS_OTHER_BREAKS):
        assert text.splitlines(keepends=True) == re.findall(r"[^\n]*\n|[^\n]+", text)
    if record.flags & LOWER_KEEPS_LENGTH:
        assert len(text.lower()) == len(text)
    if not record.flags & HAS_SIGMA:
        assert text.lower() == "".join(character.lower() for character in text)
