"""One socket that speaks HTTP/1.1: a request goes out, a head and then a body come back. One thread at a time."""

from __future__ import annotations

import socket

from monocontext.transport.http11 import BadReply, Head, head_end, parse_head
from monocontext.transport.patience import Wait
from monocontext.transport.route import Endpoint

Address = tuple[str, int]
# Heads take 400 to 700 bytes: one call brings the head, and no more of the body than is cheap to copy into its place.
_HEAD_BYTES = 2 << 10
_INTERIM = range(100, 200)


class Connection:
    """An open connection. Its owner sets `wait` before each exchange and closes it after any error."""

    def __init__(self, sock: socket.socket, endpoint: Endpoint, address: Address, opened: float) -> None:
        self.endpoint = endpoint
        self.address = address
        self.opened = opened
        """When it was, on the pool's clock."""
        self.idle_since = opened
        self.exchanges = 0
        """Requests answered so far."""
        self._socket = sock
        self._ahead = b""
        self._wait: Wait | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.endpoint} at {self.address[0]}, {self.exchanges} exchanges>"

    @property
    def has_surplus(self) -> bool:
        """Whether more came than was asked for: what follows could be taken for the next answer."""
        return bool(self._ahead)

    def begin(self, wait: Wait) -> None:
        """Let silences be judged by `wait` from now on."""
        self._wait = wait
        self._socket.settimeout(wait.seconds())

    def send(self, data: bytes) -> None:
        self._socket.sendall(data)

    def read_head(self) -> Head:
        """The head of the next answer; interim ones (1xx) are passed over. Raises `BadReply`."""
        while True:
            head = self._next_head()
            if head.status not in _INTERIM:
                return head

    def _next_head(self) -> Head:
        data, self._ahead = bytearray(self._ahead), b""
        while (end := head_end(data)) < 0:
            piece = bytearray(_HEAD_BYTES)
            count = self._receive_into(memoryview(piece))
            if not count:
                raise BadReply(f"the connection was closed after {len(data)} bytes of a head" if data else "no answer")
            data += memoryview(piece)[:count]
        self._ahead = bytes(memoryview(data)[end:])
        return parse_head(memoryview(data)[:end].tobytes())

    def read_into(self, view: memoryview) -> int:
        """Bytes of the body, into the beginning of `view`; 0 when the server has closed."""
        if self._ahead:
            count = min(len(self._ahead), len(view))
            view[:count] = self._ahead[:count]
            self._ahead = self._ahead[count:]
            return count
        return self._receive_into(view)

    def _receive_into(self, view: memoryview) -> int:
        wait = self._wait
        assert wait is not None
        while True:
            try:
                count = self._socket.recv_into(view)
            except TimeoutError:
                self._socket.settimeout(wait.on())
            else:
                wait.heard(count)
                return count

    def is_quiet(self) -> bool:
        """Whether an idle connection is as it was left: neither closed by the server nor with bytes that nobody awaits.

        Over TLS the question cannot be asked without reading a record; there the answer is yes.
        """
        if self.endpoint.scheme == "https":
            return True
        try:
            self._socket.settimeout(0)
            self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def close(self) -> None:
        """Close this process's end. Without a shutdown: a forked parent may be using the same connection."""
        self._socket.close()
