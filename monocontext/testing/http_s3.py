"""Run an S3 server on 127.0.0.1 for tests and measurements, with scripted faults and the latency of a profile.

The server starts within a millisecond, runs in this process with a thread for each connection, and ignores signatures.
Use `SeaweedServer` to show that something works with a real server, and this server to provoke faults.
"""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from random import Random
from typing import BinaryIO, Self
from urllib.parse import parse_qsl, unquote

from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.stores.protocol import Store
from monocontext.testing.bucket import Bucket, HttpRequest
from monocontext.testing.http_faults import FaultScript, HttpFault, HttpReply
from monocontext.testing.network import Profile, SimulatedLink, profile

_MOST_LOGGED = 100_000  # requests that `S3StandIn.log` keeps
_PIECE_BYTES = 256 << 10  # of a body that are sent at once
_DRIPS_PER_SECOND = 50  # pieces of a body whose speed a fault limits
_LINE_BYTES = 64 << 10  # the longest line of a request's head
_JOIN_SECONDS = 5  # the longest wait for a thread at the end
_NO_FAULT = HttpFault("none")


class S3StandIn:
    """Serves one bucket while the `with` block runs: `Monocontext.open(server.url("ctx"), endpoint=server.endpoint)`.

    `objects` are bytes by key, a directory, or a store, to which new objects are written. `latency` is a profile, or
    the name of one, for the wait before each answer. By default there are no waits and no limits of speed.
    """

    def __init__(
        self,
        objects: Mapping[str, bytes] | str | os.PathLike[str] | Store | None = None,
        *,
        bucket: str = "bucket",
        latency: Profile | str | None = None,
        connection_bytes_per_second: float | None = None,
        link_bytes_per_second: float | None = None,
        seed: int = 0,
    ) -> None:
        self._memory_name = f"stand-in-{uuid.uuid4().hex}"
        self.store: Store  # the store with the objects
        if objects is None or isinstance(objects, Mapping):
            self.store = open_store(f"memory://{self._memory_name}")
            for key, data in (objects or {}).items():
                self.store.put(key, data)
        else:
            self.store = open_store(objects) if isinstance(objects, (str, os.PathLike)) else objects
        self.bucket = bucket
        self.faults = FaultScript(seed)  # the faults that requests meet
        self._bucket = Bucket(bucket, self.store)
        self._latency = profile(latency) if isinstance(latency, str) else latency
        self._link = SimulatedLink(connection_bytes_per_second, link_bytes_per_second)
        self._random = Random(seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._accepting = threading.Thread(target=self._accept, name="stand-in", daemon=True)
        self.connections = 0  # the number of connections so far
        self.in_flight = 0  # the number of requests without a complete reply
        self.reset_counts()

    @property
    def endpoint(self) -> str:
        """The URL of the server, while it runs; else empty."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}" if self._listener else ""

    def url(self, prefix: str = "") -> str:
        """The `s3://` URL of a prefix in the bucket."""
        return f"s3://{self.bucket}/{prefix}"

    def reset_counts(self) -> None:
        """Set the counts to zero, except those of connections and of requests in flight."""
        with self._lock:
            self.counts: Counter[str] = Counter()
            """The number of requests by verb. A GET or HEAD of the bucket itself is a `LIST`."""
            self.bytes_sent = 0  # the number of bytes of bodies that were sent, those of broken bodies included
            self.log: deque[HttpRequest] = deque(maxlen=_MOST_LOGGED)
            """The last requests without their bodies, in the order of their arrival."""

    @property
    def requests(self) -> int:
        """The number of requests of all verbs."""
        with self._lock:
            return self.counts.total()

    # -- life ------------------------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close all connections and wait for all threads to end."""
        listener, self._listener = self._listener, None
        self._stopping.set()
        if listener is not None:
            with suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)  # wakes up `accept`
            listener.close()
            self._accepting.join(_JOIN_SECONDS)
        for thread in self.hang_up():
            thread.join(_JOIN_SECONDS)
        forget(self._memory_name)

    def hang_up(self) -> list[threading.Thread]:
        """Close all connections, as servers do with idle ones; returns the threads that served them."""
        with self._lock:
            threads = dict(self._connections)
        for sock in threads:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
        return list(threads.values())

    def _accept(self) -> None:
        """Accept connections until the server stops, and serve each in a thread of its own."""
        listener = self._listener
        while listener and not self._stopping.is_set():
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                thread = threading.Thread(target=self._serve, args=(sock,), name="stand-in", daemon=True)
                self._connections[sock] = thread
            thread.start()

    # -- one connection --------------------------------------------------------------------------------------------

    def _serve(self, sock: socket.socket) -> None:
        """Answer the requests of one connection until either side ends it."""
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError, AttributeError):
                # bbr, the default on some systems, paces its output, and that would count as time of the client.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            if fault := self.faults.pick("CONNECT", ""):
                _end_connection(sock, fault)
                return
            with sock.makefile("rb") as file:
                while (request := _read_request(sock, file)) and self._exchange(sock, request):
                    pass
        except (OSError, ValueError):  # the client hung up, or did not send HTTP
            pass
        finally:
            with self._lock:
                del self._connections[sock]
            # `close` is not enough: a forked process may have a copy of the socket, and the client would wait for ever.
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def _exchange(self, sock: socket.socket, request: HttpRequest) -> bool:
        """Answer one request; returns whether the connection stays open."""
        verb, key = self._bucket.verb_and_key(request)
        with self._lock:
            self.counts[verb] += 1
            self.log.append(replace(request, body=b""))
            self.in_flight += 1
            latency_seconds = self._latency.seconds(self._random) if self._latency else 0.0
        reply_time = time.monotonic() + latency_seconds
        try:
            fault = self.faults.pick(verb, key) or _NO_FAULT
            reply = self._reply(request, key, fault)
            self._wait_until(reply_time)
            if request.method == "HEAD":
                reply = replace(reply, body=b"", headers={"Content-Length": str(len(reply.body)), **reply.headers})
            self._send(sock, reply, fault, reply_time)
            if fault.stops:
                _end_connection(sock, fault)
            return not fault.stops and request.headers.get("connection", "").lower() != "close"
        finally:
            with self._lock:
                self.in_flight -= 1

    def _reply(self, request: HttpRequest, key: str, fault: HttpFault) -> HttpReply:
        """The complete reply to a request that meets a fault."""
        if fault.instead:
            return fault.instead
        if fault.rewrite:
            self.store.put(key, fault.rewrite(self.store.get(key).data))
        headers = {name: value for name, value in request.headers.items() if name not in fault.ignores}
        reply = self._bucket.answer(replace(request, headers=headers))
        return fault.change(reply) if fault.change else reply

    def _send(self, sock: socket.socket, reply: HttpReply, fault: HttpFault, reply_time: float) -> None:
        """Send the part of a reply that the fault lets through, from `reply_time` on, at the speed of the link."""
        head, body = reply.head(), memoryview(reply.body)
        if fault.stops:
            part, offset = fault.stops
            head, body = (head[:offset], body[:0]) if part == "head" else (head, body[:offset])
        link, piece_bytes = self._link, _PIECE_BYTES
        if fault.bytes_per_second:
            link = SimulatedLink(fault.bytes_per_second)
            piece_bytes = max(1, round(fault.bytes_per_second / _DRIPS_PER_SECOND))
        if not link.is_unlimited:
            sock.sendall(head)
            head = b""
        arrival = reply_time
        for start in range(0, len(body) or 1, piece_bytes):
            piece = body[start : start + piece_bytes]
            arrival = link.arrival(len(piece), arrival)
            self._wait_until(arrival)
            sock.sendall(head + piece if head else piece)  # in one segment where they fit
            head = b""
            with self._lock:
                self.bytes_sent += len(piece)

    def _wait_until(self, end: float) -> None:
        """Wait until this time of `time.monotonic`, or until the server stops."""
        seconds = end - time.monotonic()
        if seconds > 0:
            self._stopping.wait(seconds)


def _end_connection(sock: socket.socket, fault: HttpFault) -> None:
    """Reset a connection, or for "stall" wait until either side hangs up, as the fault says. The caller closes it."""
    if fault.then == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    elif fault.then == "stall":
        while sock.recv(4096):
            pass


def _read_request(sock: socket.socket, file: BinaryIO) -> HttpRequest | None:
    """The next request on a connection; `None` after the last one, and for a malformed first line."""
    words = file.readline(_LINE_BYTES).decode("latin-1").split()
    if len(words) != 3:
        return None
    method, target, _ = words
    headers: dict[str, str] = {}
    while line := file.readline(_LINE_BYTES).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = file.read(int(headers.get("content-length", 0)))
    path, _, query = target.partition("?")
    return HttpRequest(method, unquote(path), dict(parse_qsl(query, keep_blank_values=True)), headers, body)
