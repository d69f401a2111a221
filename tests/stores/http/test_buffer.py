"""Bytes in their place: no copy, and nothing that the garbage collector could trip over."""

from __future__ import annotations

import pytest

from monocontext.errors import DamagedData
from monocontext.stores import open_store
from monocontext.stores.s3.download import Download, ReceiveBuffer

from .object_server import ObjectServer, Turn

DATA = b"0123456789" * 20_000


def test_filled_in_steps() -> None:
    buffer = ReceiveBuffer(10)
    for piece in (b"abc", b"defg", b"hij"):
        with buffer.free_view() as rest:
            rest[: len(piece)] = piece
        buffer.filled_bytes += len(piece)
    assert (buffer.is_full, buffer.missing_bytes) == (True, 0)
    assert buffer.take() == b"abcdefghij"
    assert type(buffer.take()) is bytes
    assert ReceiveBuffer(0).is_full


@pytest.mark.parametrize("length", [1, 10, 65_536, 1 << 20])
def test_no_copy(length: int) -> None:
    buffer = ReceiveBuffer(length)
    with buffer.free_view() as rest:
        rest[-1:] = b"x"
    buffer.filled_bytes = length
    assert buffer.take() is buffer.take()
    assert buffer.take()[-1:] == b"x"
    assert bytes(1) == b"\0"  # the one that Python keeps was not written to


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
    made: list[ReceiveBuffer] = []
    check = Download._check

    def recorded(self: Download, head: object) -> None:
        check(self, head)  # type: ignore[arg-type]
        if self._buffer is not None:
            made.append(self._buffer)

    monkeypatch.setattr(Download, "_check", recorded)
    with ObjectServer(DATA, turn) as server:
        store = open_store("s3://bucket", endpoint=server.endpoint)
        try:
            assert store.get_range("a", 0, 150_000).data == DATA[:150_000]
        except DamagedData:
            pass
    for buffer in made:
        buffer._memory.truncate(0)  # BufferError while a view is alive
