"""A body that comes in TLS records fills one view, and nothing is lost by an error."""

from __future__ import annotations

import pytest

from monocontext.stores.http.connection import Body, Connection, Endpoint, ExchangeTimer, ResponseHead, Stalled

RECORD = 16 << 10


class Records:
    """A socket whose answers are made of pieces; an error among them is raised."""

    def __init__(self, pieces: list[bytes | OSError]) -> None:
        self._pieces = pieces

    def settimeout(self, seconds: float) -> None: ...

    def sendall(self, data: bytes) -> None: ...

    def recv_into(self, view: memoryview) -> int:
        piece = self._pieces.pop(0) if self._pieces else b""
        if isinstance(piece, OSError):
            raise piece
        taken = piece[: len(view)]
        if len(piece) > len(taken):
            self._pieces.insert(0, piece[len(taken) :])
        view[: len(taken)] = taken
        return len(taken)


def body_of(pieces: list[bytes | OSError], size: int, can_retry: bool = False) -> Body:
    connection = Connection(Records(pieces), Endpoint("http", "host", 80), ("127.0.0.1", 80), 0.0)  # type: ignore[arg-type]
    connection.send(b"", ExchangeTimer(1.0, 10.0, 60.0, lambda: 0.0, lambda: can_retry))
    return Body(connection, ResponseHead(206, {}, size, is_chunked=False, keeps_alive=True))


def test_no_more_is_taken_than_the_body_has() -> None:
    body = body_of([b"x" * 700, b"y" * 700], 1000)
    view = memoryview(bytearray(5000))
    assert (body.read_into(view), bytes(view[:1000])) == (1000, b"x" * 700 + b"y" * 300)


@pytest.mark.parametrize("size", [300, 1000, 5000])
def test_what_came_with_the_head_and_the_rest_fill_one_view(size: int) -> None:
    body = body_of([b"HTTP/1.1 206 -\r\n\r\n" + b"x" * 500, b"y" * 1000, b"z" * 3500], size)
    body._connection.read_head()
    view = memoryview(bytearray(9000))
    assert body.read_into(view) == size
    assert bytes(view[:size]) == (b"x" * 500 + b"y" * 1000 + b"z" * 3500)[:size]
    assert body.left_bytes == 0
    assert body.leaves_connection_usable is (size >= 500)


@pytest.mark.parametrize("error", [ConnectionResetError("reset"), TimeoutError()])
def test_what_came_before_an_error_is_counted(error: OSError) -> None:
    body = body_of([b"x" * RECORD, b"y" * 100, error], 100_000, can_retry=True)
    view = memoryview(bytearray(100_000))
    with pytest.raises(Stalled if isinstance(error, TimeoutError) else ConnectionResetError):
        body.read_into(view)
    assert body.read_bytes == RECORD + 100
    assert bytes(view[RECORD : RECORD + 100]) == b"y" * 100
