"""One object behind a bare socket, on 127.0.0.1: answers ranges properly, except where its script says otherwise.

What no well-behaved S3 would say, byte by byte; `monocontext.testing.S3StandIn` is the bucket that errs.
"""

from __future__ import annotations

import re
import socket
import ssl
import struct
import threading
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Self

ETAG = "e1"


@dataclass(frozen=True, slots=True)
class Turn:
    """What is odd about one answer."""

    status: int | None = None
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    """Beside the usual ones, or in place of them; an empty value leaves one out. A `body` has no Content-Range."""
    cut_at: int | None = None
    """Close the connection after so many bytes of the body."""
    stall_at: int | None = None
    """Send nothing after so many bytes of the body, and keep the connection open; -1 stalls before the head."""
    drip_seconds: float = 0.0
    """Wait so long before each byte of the body."""
    reset: bool = False
    """Reset the connection instead of answering."""
    chunk_bytes: int = 0
    close: bool = False
    """Close the connection after the answer without having said so."""


GOOD = Turn()


def error(status: int, code: str, more: str = "", **headers: str) -> Turn:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>in so many words</Message>{more}</Error>"
    return Turn(status, body.encode(), {"Content-Type": "application/xml", "ETag": ""} | headers)


@dataclass(frozen=True, slots=True)
class Asked:
    """One request."""

    connection: int
    method: str
    target: str
    headers: dict[str, str]


class ObjectServer:
    """Serves `data` at every path while the `with` block runs; `turns` are for the first requests, in order.

    The last of them is for all that follow too, if it `repeats`.
    """

    def __init__(
        self,
        data: bytes,
        *turns: Turn,
        repeats: bool = False,
        tls: ssl.SSLContext | None = None,
        address: str = "127.0.0.1",
    ) -> None:
        self.data = data
        self.turns = list(turns)
        self._repeats = repeats
        self.asked: list[Asked] = []
        self.connections = 0
        self.tunnels: list[str] = []
        """Where CONNECT was asked to lead: this server answers it and is then itself the other end."""
        self._tls = tls
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._listener = socket.create_server((address, 0), backlog=128)
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []

    @property
    def port(self) -> int:
        return int(self._listener.getsockname()[1])

    @property
    def endpoint(self) -> str:
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        thread = threading.Thread(target=self._accept, daemon=True)
        self._threads.append(thread)
        thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.hang_up()
        for thread in self._threads:
            thread.join(60)

    def hang_up(self) -> None:
        """Close all connections, as a server does with those that were idle for long."""
        for item in list(self._open):
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(sock, self.connections), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, sock: socket.socket, number: int) -> None:
        self._open.add(sock)
        try:
            first = sock.recv(7, socket.MSG_PEEK)
            if first == b"CONNECT":
                asked = _read_request(sock, number)
                if asked:
                    self.tunnels.append(asked.target)
                    self.asked.append(asked)
                sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            if self._tls:
                self._open.discard(sock)
                sock = self._tls.wrap_socket(sock, server_side=True)
                self._open.add(sock)
            while (asked := _read_request(sock, number)) and self._answer(sock, asked):
                pass
        except OSError:
            pass
        finally:
            self._open.discard(sock)
            sock.close()

    def _answer(self, sock: socket.socket, asked: Asked) -> bool:
        """Answer; whether the connection goes on."""
        with self._lock:
            self.asked.append(asked)
            is_last = self._repeats and len(self.turns) == 1
            turn = GOOD if not self.turns else self.turns[0] if is_last else self.turns.pop(0)
        if turn.reset:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            return False
        if turn.stall_at == -1:
            self._stopping.wait()
            return False
        status, body, headers = self._usual(asked)
        if turn.body is not None:
            body = turn.body
            headers.pop("Content-Range", None)
        status = turn.status or status
        headers["Content-Length"] = str(len(body))
        if turn.chunk_bytes:
            headers |= {"Content-Length": "", "Transfer-Encoding": "chunked"}
        headers |= turn.headers
        lines = [f"HTTP/1.1 {status} Said", *(f"{name}: {value}" for name, value in headers.items() if value)]
        sock.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        if asked.method == "HEAD":
            return not turn.close
        if turn.chunk_bytes:
            pieces = [body[i : i + turn.chunk_bytes] for i in range(0, len(body), turn.chunk_bytes)]
            body = b"".join(b"%x;x=y\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\nA: b\r\n\r\n"
        stop = min(offset for offset in (turn.cut_at, turn.stall_at, len(body)) if offset is not None)
        if turn.drip_seconds:
            for i in range(stop):
                self._stopping.wait(turn.drip_seconds)
                sock.sendall(body[i : i + 1])
        else:
            sock.sendall(body[:stop])
        if turn.stall_at is not None:
            self._stopping.wait()
        return turn.cut_at is None and turn.stall_at is None and not turn.close

    def _usual(self, asked: Asked) -> tuple[int, bytes, dict[str, str]]:
        total, headers = len(self.data), {"ETag": f'"{ETAG}"', "Server": "test"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", asked.headers.get("range", ""))
        if not wanted:
            return 200, self.data, headers
        start, last = int(wanted[1]), min(int(wanted[2] or total - 1), total - 1)
        headers["Content-Range"] = f"bytes {start}-{last}/{total}"
        return 206, self.data[start : last + 1], headers


def _read_request(sock: socket.socket, number: int) -> Asked | None:
    data = bytearray()
    while b"\r\n\r\n" not in data:
        piece = sock.recv(4096)
        if not piece:
            return None
        data += piece
    head, _, body = bytes(data).partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    method, target, _ = first.split(" ")
    headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
    if "expect" in headers:
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    left_bytes = int(headers.get("content-length", 0)) - len(body)
    while left_bytes > 0 and (piece := sock.recv(65536)):
        left_bytes -= len(piece)
    return Asked(number, method, target, headers)
