"""Bytes in their place: no copy, and nothing that the garbage collector could trip over."""

from __future__ import annotations

from io import BytesIO

import pytest

from monocontext.errors import DamagedData
from monocontext.stores import open_store
from monocontext.stores.http.http11 import ResponseHead
from monocontext.stores.s3.reads import Download

from .object_server import ObjectServer, Turn

DATA = b"0123456789" * 20_000


class Pieces:
    """The body of a response, which comes in these pieces."""

    left_bytes = None
    read_bytes = 0

    def __init__(self, *pieces: bytes) -> None:
        self._pieces = list(pieces)

    def read_into(self, view: memoryview) -> int:
        piece = self._pieces.pop(0) if self._pieces else b""
        view[: len(piece)] = piece
        self.read_bytes += len(piece)
        return len(piece)


def downloaded(*pieces: bytes, is_chunked: bool) -> Download:
    size = sum(map(len, pieces))
    head = ResponseHead(200, {"etag": '"1"'}, None if is_chunked else size, is_chunked, keeps_alive=True)
    download = Download("s3://b/a", None, None)
    download.receive(head, Pieces(*pieces))  # type: ignore[arg-type]
    return download


@pytest.mark.parametrize("is_chunked", [False, True])
def test_filled_in_steps(is_chunked: bool) -> None:
    blob = downloaded(b"abc", b"defg", b"hij", is_chunked=is_chunked).blob()
    assert (blob.data, blob.total_bytes, type(blob.data)) == (b"abcdefghij", 10, bytes)
    assert downloaded(is_chunked=is_chunked).blob().data == b""


@pytest.mark.slow
@pytest.mark.parametrize(
    "turn",
    [
        Turn(headers={"Content-Range": "bytes 0-99/100"}),
        Turn(headers={"ETag": ""}),
        Turn(stall_at=50_000),
        Turn(cut_at=50_000),
        Turn(body=DATA[:150_000] + b"x", headers={"Content-Range": "bytes 0-149999/200000"}, chunk_bytes=777),
        Turn(body=DATA[:140_000], headers={"Content-Range": "bytes 0-149999/200000"}, chunk_bytes=777),
    ],
    ids=["range", "etag", "stall", "cut", "long", "short"],
)
def test_failed_reads_leave_no_view_behind(turn: Turn, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[BytesIO] = []
    check = Download._check

    def recorded(self: Download, head: object) -> None:
        check(self, head)  # type: ignore[arg-type]
        made.append(self._memory)

    monkeypatch.setattr(Download, "_check", recorded)
    with ObjectServer(DATA, turn) as server:
        store = open_store("s3://bucket", endpoint=server.endpoint)
        try:
            assert store.get_range("a", 0, 150_000).data == DATA[:150_000]
        except DamagedData:
            pass
    for buffer in made:
        buffer.truncate(0)  # BufferError while a view is alive
