"""HTTP/1.1 as text: fed whole and byte by byte, proper and not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monocontext.stores.http.connection import (
    MAX_HEAD_BYTES,
    BadResponse,
    ChunkDecoder,
    ResponseHead,
    request_head,
    split_head,
)

HEAD = b'HTTP/1.1 206 Partial Content\r\nETag: "e1"\r\nContent-Length:  12 \r\nX-A: 1\r\nx-a: 2\r\nX-Empty:\r\n\r\n'


def parse_head(data: bytes) -> ResponseHead:
    result = split_head(data)
    assert result is not None
    assert result[1] == b""
    return result[0]


def test_a_head_byte_by_byte() -> None:
    data = HEAD + b"body"
    result = [split_head(data[:count]) for count in range(len(data) + 1)]
    head = parse_head(HEAD)
    assert result == [None] * len(HEAD) + [(head, b"body"[:count]) for count in range(5)]
    assert (head.status, head.body_bytes, head.keeps_alive, head.is_chunked) == (206, 12, True, False)
    assert dict(head.headers) == {"etag": '"e1"', "content-length": "12", "x-a": "1, 2", "x-empty": ""}


@pytest.mark.parametrize(
    ("lines", "keeps_alive"),
    [
        (b"HTTP/1.1 200 OK", True),
        (b"HTTP/1.1 200", True),
        (b"HTTP/1.1 200 OK\r\nConnection: Close", False),
        (b"HTTP/1.0 200 OK", False),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive", True),
    ],
)
def test_whether_a_connection_goes_on(lines: bytes, keeps_alive: bool) -> None:
    assert parse_head(lines + b"\r\n\r\n").keeps_alive is keeps_alive


@pytest.mark.parametrize(
    "lines",
    [
        b"",
        b"HTTP/2 200 OK",
        b"SSH-2.0-OpenSSH",
        b"HTTP/1.1 2000 OK",
        b"HTTP/1.1 +20 OK",
        b"HTTP/1.1 200 OK\r\nno colon",
        b"HTTP/1.1 200 OK\r\n: no name",
        b"HTTP/1.1 200 OK\r\nA: b\r\n folded: c",
        b"HTTP/1.1 200 OK\r\nContent-Length : 3",
        b"HTTP/1.1 200 OK\r\nETag: a\nContent-Length: 3",
    ],
)
def test_no_head(lines: bytes) -> None:
    with pytest.raises(BadResponse, match="expected"):
        parse_head(lines + b"\r\n\r\n")


@pytest.mark.parametrize("said", [b"-1", b"+3", b"3_0", b"", b"3\r\nContent-Length: 4", "\u0663".encode(), b"9" * 5000])
def test_no_length(said: bytes) -> None:
    with pytest.raises(BadResponse, match="expected one Content-Length"):
        parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: " + said + b"\r\n\r\n")


def test_one_length_twice_and_none_at_all() -> None:
    assert parse_head(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n").body_bytes == 3
    assert parse_head(b"HTTP/1.1 200 OK\r\n\r\n").body_bytes is None
    assert parse_head(b"HTTP/1.1 204 OK\r\n\r\n").body_bytes == 0
    chunked = parse_head(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n")
    assert (chunked.is_chunked, chunked.body_bytes) == (True, None)


def test_a_head_without_end() -> None:
    with pytest.raises(BadResponse, match="headers of at most"):
        split_head(b"a" * (MAX_HEAD_BYTES + 1))


@pytest.mark.parametrize("value", ["a\r\nx: y", "a\ny", "a\ry", "\r\n"])
def test_no_value_ends_its_line(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        request_head("GET", "/", {"if-match": value})


def encode_chunks(pieces: list[bytes], extension: bytes = b"", trailers: bytes = b"") -> bytes:
    chunks = b"".join(b"%X%b\r\n%b\r\n" % (len(piece), extension, piece) for piece in pieces if piece)
    return chunks + b"0\r\n" + trailers + b"\r\n"


@given(
    st.lists(st.binary(max_size=40)),
    st.lists(st.integers(1, 30), min_size=1),
    st.sampled_from([b"", b";a=b"]),
    st.sampled_from([b"", b"A: b\r\nC: d\r\n"]),
    st.binary(max_size=5),
)
def test_chunks_however_they_are_cut(
    pieces: list[bytes], steps: list[int], extension: bytes, trailers: bytes, surplus: bytes
) -> None:
    data, chunks, result, offset, i = encode_chunks(pieces, extension, trailers) + surplus, ChunkDecoder(), b"", 0, 0
    while offset < len(data):
        step = steps[i % len(steps)]
        result += chunks.feed(data[offset : offset + step])
        offset, i = offset + step, i + 1
    assert (result, chunks.ended, chunks.surplus) == (b"".join(pieces), True, surplus)


@given(st.lists(st.binary(min_size=1, max_size=40), min_size=1), st.data())
def test_chunks_that_stop_early_have_not_ended(pieces: list[bytes], data: st.DataObject) -> None:
    whole = encode_chunks(pieces)
    chunks = ChunkDecoder()
    result = chunks.feed(whole[: data.draw(st.integers(0, len(whole) - 1))])
    assert not chunks.ended
    assert b"".join(pieces).startswith(result)


@pytest.mark.parametrize("data", [b"x\r\n", b"-1\r\n", b"+1\r\n", b"1_0\r\n", b"\r\n", b"1\r\nabc\r\n", b"1" * 5000])
def test_no_chunks(data: bytes) -> None:
    with pytest.raises(BadResponse, match="expected"):
        ChunkDecoder().feed(data)
    with pytest.raises(BadResponse, match="expected"):
        _feed_each(ChunkDecoder(), data)


def _feed_each(chunks: ChunkDecoder, data: bytes) -> None:
    for i in range(len(data)):
        chunks.feed(data[i : i + 1])
