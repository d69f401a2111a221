"""Bytes in their place: no copy, and nothing that the garbage collector could trip over."""

from __future__ import annotations

from io import BytesIO

import pytest

from monocontext.errors import DamagedData
from monocontext.stores import open_store
from monocontext.stores.s3.reads import Download

from .object_server import ObjectServer, Turn

DATA = b"0123456789" * 20_000


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
    check = Download._check_head

    def recorded(self: Download, head: object) -> None:
        check(self, head)  # type: ignore[arg-type]
        made.append(self._memory)

    monkeypatch.setattr(Download, "_check_head", recorded)
    with ObjectServer(DATA, turn) as server:
        store = open_store("s3://bucket", endpoint=server.endpoint)
        try:
            assert store.get_range("a", 0, 150_000).data == DATA[:150_000]
        except DamagedData:
            pass
    for buffer in made:
        buffer.truncate(0)  # BufferError while a view is alive
