"""Frames in storage: what is encoded comes back, and anything else is refused by name before it is inflated."""

from __future__ import annotations

import tracemalloc

import google_crc32c
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from monocontext.errors import DamagedData
from monocontext.format.codec import decode, encode
from monocontext.format.index import ASCII, Frame, FrameRecord
from monocontext.format.refs import CODECS

TEXT = "some text, a little longer than a word\n" * 5
WHERE = "frame 7 of segments/a.seg: "


def frame_of(record: FrameRecord, codec: str) -> Frame:
    return Frame(7, "segments/a.seg", 0, *record, codec, None, 0, 0, 0)


def encode_text(text: str, codec: str, **changes: int) -> tuple[bytes, Frame]:
    stored, record = encode(text.encode(), codec)
    return stored, frame_of(record._replace(**changes), codec)


@given(st.text(min_size=1), st.sampled_from(CODECS))
def test_round_trip(text: str, codec: str) -> None:
    stored, frame = encode_text(text, codec)
    assert decode(stored, frame) == text.encode()
    assert decode(memoryview(b"x" + stored)[1:], frame) == text.encode()
    if codec == "raw":
        assert stored == text.encode()


def test_a_raw_body_of_one_frame_is_not_copied() -> None:
    """It is received in place; of a body of several frames each is copied once, so that it does not keep the others."""
    stored, frame = encode_text(TEXT, "raw")
    body = b"".join([stored])
    assert decode(body, frame) is body
    assert decode(memoryview(body), frame) is body
    two = body + body
    part = decode(memoryview(two)[len(body) :], frame)
    assert part == body
    assert part is not body
    changing = bytearray(body)
    kept = decode(memoryview(changing), frame)
    changing[:] = bytes(len(changing))
    assert kept == body


def must_refuse(stored: bytes, frame: Frame, what: str) -> None:
    with pytest.raises(DamagedData, match=WHERE + what):
        decode(stored, frame)


@pytest.mark.parametrize("codec", CODECS)
def test_what_the_record_does_not_say(codec: str) -> None:
    stored, frame = encode_text(TEXT, codec)
    for other in (stored[:-1], stored + b"x", b""):
        must_refuse(other, frame, f"length differs: expected {len(stored)} stored bytes, found {len(other)}")
    for index in range(len(stored)):
        other = stored[:index] + bytes([stored[index] ^ 1]) + stored[index + 1 :]
        must_refuse(other, frame, rf"crc32c differs: expected {frame.crc32c:08x}, found \w{{8}}")
    for size in (len(TEXT) + 1, len(TEXT) - 1, len(TEXT) + 1000):
        stored, frame = encode_text(TEXT, codec, bytes=size, characters=size)
        must_refuse(stored, frame, f".*expected {size} bytes.*found {len(TEXT)}")
    must_refuse(*encode_text("caffè", codec, flags=ASCII, characters=6), "expected ASCII, found other characters")
    must_refuse(*encode_text("caffè", codec, characters=6), "expected 6 characters, found 5")


@pytest.mark.parametrize("data", [b"abc\xff", b"\xe2\x82", b"\x80abc", "\ud800".encode("utf-8", "surrogatepass")])
def test_bytes_that_are_no_text(data: bytes) -> None:
    record = FrameRecord(len(data), len(data), len(data), 0, google_crc32c.value(data), 0)
    must_refuse(data, frame_of(record, "raw"), r"not UTF-8 at byte \d")


def zstd_frame(stored: bytes, size: int) -> Frame:
    return frame_of(FrameRecord(len(stored), size, size, 0, google_crc32c.value(stored), ASCII), "zstd")


def test_a_bomb_is_refused_before_it_is_inflated() -> None:
    """Whether it says its size or not."""
    unsaid = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    bombs = {
        zstandard.compress(b"x" * (256 << 20)): ", found 268435456",
        unsaid.compress(b"x" * (64 << 20)) + unsaid.flush(): "",
    }
    decode(*encode_text(TEXT, "zstd"))  # what is set up once is not counted
    for bomb, result in bombs.items():
        tracemalloc.start()
        try:
            must_refuse(bomb, zstd_frame(bomb, 1000), f"expected 1000 bytes of text{result}")
            assert tracemalloc.get_traced_memory()[1] < 1 << 20
        finally:
            tracemalloc.stop()


def test_a_bomb_that_lies_about_its_size() -> None:
    """Content size 1000 in the header of a frame that inflates to more."""
    honest = zstandard.compress(b"x" * 1000)
    bomb = zstandard.compress(b"x" * 60_000)
    # A single segment frame with two bytes of content size: they hold the size minus 256.
    assert honest[4] == bomb[4] == 0x60
    lying = bomb[:5] + honest[5:7] + bomb[7:]
    assert zstandard.frame_content_size(lying) == 1000
    must_refuse(lying, zstd_frame(lying, 1000), "not valid zstd")


def test_what_follows_the_compressed_frame_is_not_text() -> None:
    two = zstandard.compress(b"x" * 1000) + zstandard.compress(b"y" * 1000)
    assert decode(two, zstd_frame(two, 1000)) == b"x" * 1000
    must_refuse(two, zstd_frame(two, 2000), "expected 2000 bytes of text, found 1000 in its zstd header")


@given(st.integers(0, 200), st.integers(1, 255), st.booleans())
def test_damage_under_a_checksum_that_agrees(index: int, change: int, cut: bool) -> None:
    """Zstandard's own faults come out typed too, and never as more bytes than recorded."""
    stored, _ = encode(TEXT.encode(), "zstd")
    other = bytearray(stored)
    other[index % len(other)] ^= change
    other = other[: index % len(other)] if cut else other
    frame = zstd_frame(bytes(other), len(TEXT))
    try:
        assert len(decode(bytes(other), frame)) == len(TEXT)
    except DamagedData as error:
        assert WHERE in str(error)  # noqa: PT017
