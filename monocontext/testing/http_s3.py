"""An S3 server on 127.0.0.1 for tests and measurements, with scripted faults and the latency of a profile.

It runs in threads of this process, one for each connection, starts within a millisecond, and ignores signatures. Use
`SeaweedServer` to show that something works with a real server, and this one to provoke faults.
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

from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.stores.protocol import Store
from monocontext.testing.http_bucket import Bucket
from monocontext.testing.http_faults import HttpFault, Script
from monocontext.testing.http_wire import HttpReply, HttpRequest, read_body, read_head
from monocontext.testing.network import Profile, SimulatedLink, profile

MOST_CONNECTIONS = 256
"""Connections beyond this number wait until another one ends."""
_REMEMBERED = 100_000
_PIECE_BYTES = 256 << 10
_DROPS_PER_SECOND = 50
_NONE = HttpFault("none")


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
        most_connections: int = MOST_CONNECTIONS,
    ) -> None:
        self._memory = ""
        self.store = self._make_store(objects)
        """The store with the objects."""
        self.bucket = bucket
        self.faults = Script(seed)
        """The faults of requests."""
        self._bucket = Bucket(bucket, self.store)
        self._latency = profile(latency) if isinstance(latency, str) else latency
        self._link = SimulatedLink(connection_bytes_per_second, link_bytes_per_second)
        self._random = Random(seed)
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(most_connections)
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._accepting = threading.Thread(target=self._accept, name="stand-in", daemon=True)
        self.connections = 0
        """The number of connections so far."""
        self.in_flight = 0
        """The number of requests without a complete reply."""
        self.reset_counts()

    def _make_store(self, objects: Mapping[str, bytes] | str | os.PathLike[str] | Store | None) -> Store:
        if objects is None or isinstance(objects, Mapping):
            self._memory = f"stand-in-{uuid.uuid4().hex}"
            store = open_store(f"memory://{self._memory}")
            for key, data in (objects or {}).items():
                store.put(key, data)
            return store
        return open_store(objects) if isinstance(objects, (str, os.PathLike)) else objects

    def __repr__(self) -> str:
        counts = ", ".join(f"{count:,} {verb}" for verb, count in sorted(self.counts.items())) or "no requests"
        flow = f"{self.bytes_sent:,} bytes sent, {self.in_flight} in flight, at most {self.most_in_flight}"
        return f"<S3StandIn {self.endpoint} | {counts} | {flow} | {self.connections} connections>"

    @property
    def endpoint(self) -> str:
        """URL of the server, while it runs."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}" if self._listener else ""

    def url(self, prefix: str = "") -> str:
        """`s3://` URL of a prefix in the bucket."""
        return f"s3://{self.bucket}/{prefix}"

    def reset_counts(self) -> None:
        """Set the counts to zero, except those of connections and of requests in flight."""
        with self._lock:
            self.counts: Counter[str] = Counter()
            """The number of requests by verb. A GET or HEAD of the bucket itself is a `LIST`."""
            self.bytes_sent = 0
            """The number of bytes of bodies that were sent, those of broken bodies included."""
            self.most_in_flight = self.in_flight
            self.log: deque[HttpRequest] = deque(maxlen=_REMEMBERED)
            """The last requests without their bodies, in the order of their arrival."""

    @property
    def requests(self) -> int:
        """The number of requests of all verbs."""
        with self._lock:
            return self.counts.total()

    @property
    def open_connections(self) -> int:
        """The number of connections that are open."""
        with self._lock:
            return len(self._connections)

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
            self._accepting.join(5)
        for thread in self.hang_up():
            thread.join(5)
        if self._memory:
            forget(self._memory)

    def hang_up(self) -> list[threading.Thread]:
        """Close all connections, as servers do with idle ones; returns the threads that served them."""
        with self._lock:
            serving = dict(self._connections)
        for item in serving:
            with suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
        return list(serving.values())

    def _accept(self) -> None:
        listener = self._listener
        while listener and not self._stopping.is_set():
            if not self._slots.acquire(timeout=0.1):
                continue
            try:
                sock, _ = listener.accept()
            except OSError:
                return
            with self._lock:
                self.connections += 1
                serve = (sock, self.connections)
                thread = self._connections[sock] = threading.Thread(
                    target=self._serve, args=serve, name="stand-in", daemon=True
                )
            thread.start()

    # -- one connection --------------------------------------------------------------------------------------------

    def _serve(self, sock: socket.socket, number: int) -> None:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with suppress(OSError, AttributeError):
                # bbr, the default on some systems, paces its output, and that would count as time of the client.
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
            fault = self.faults.pick("CONNECT", "")
            if fault is not None:
                self._end(sock, fault)
                return
            with sock.makefile("rb") as file:
                while (request := self._next(sock, file, number)) and self._exchange(sock, request):
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
            self._slots.release()

    def _next(self, sock: socket.socket, file: BinaryIO, connection: int) -> HttpRequest | None:
        request = read_head(file)
        if request is None:
            return None
        if request.headers.get("expect", "").lower() == "100-continue":
            sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = read_body(file, request.headers)
        verb, _ = self._bucket.place(request)
        with self._lock:
            self.counts[verb] += 1
            request = replace(request, connection=connection, number=self.counts.total())
            self.log.append(request)
        return replace(request, body=body)

    def _exchange(self, sock: socket.socket, request: HttpRequest) -> bool:
        """Answer one request; returns whether the connection goes on."""
        with self._lock:
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            seconds = self._latency.seconds(self._random) if self._latency else 0.0
        started = time.monotonic() + seconds
        try:
            verb, key = self._bucket.place(request)
            fault = self.faults.pick(verb, key) or _NONE
            reply = self._reply(request, key, fault)
            self._wait_until(started)
            if request.method == "HEAD":
                reply = replace(reply, body=b"", headers={"Content-Length": str(len(reply.body))} | dict(reply.headers))
            self._send(sock, reply, fault, started)
            if fault.stops:
                self._end(sock, fault)
            return not fault.stops and request.headers.get("connection", "").lower() != "close"
        finally:
            with self._lock:
                self.in_flight -= 1

    def _reply(self, request: HttpRequest, key: str, fault: HttpFault) -> HttpReply:
        if fault.instead:
            return fault.instead
        if fault.rewrite:
            self.store.put(key, fault.rewrite(self.store.get(key).data))
        if fault.ignores:
            seen = {name: value for name, value in request.headers.items() if name not in fault.ignores}
            request = replace(request, headers=seen)
        return fault.change(self._bucket.answer(request))

    def _send(self, sock: socket.socket, reply: HttpReply, fault: HttpFault, begun: float) -> None:
        head, body = reply.head(), memoryview(reply.body)
        if fault.stops:
            part, offset = fault.stops
            head, body = (head[:offset], body[:0]) if part == "head" else (head, body[:offset])
        if fault.bytes_per_second:
            sock.sendall(head)
            self._drip(sock, body, fault.bytes_per_second)
        elif self._link.is_free and len(body) <= _PIECE_BYTES:
            sock.sendall(head + body)  # in one segment where it fits
            self._count(body)
        else:
            sock.sendall(head)
            for start in range(0, len(body), _PIECE_BYTES):
                piece = body[start : start + _PIECE_BYTES]
                begun = self._link.arrival(len(piece), begun)
                self._wait_until(begun)
                sock.sendall(piece)
                self._count(piece)

    def _count(self, piece: memoryview) -> None:
        with self._lock:
            self.bytes_sent += len(piece)

    def _drip(self, sock: socket.socket, body: memoryview, bytes_per_second: float) -> None:
        drop = max(1, round(bytes_per_second / _DROPS_PER_SECOND))
        for start in range(0, len(body), drop):
            if self._stopping.wait(drop / bytes_per_second):
                return
            sock.sendall(body[start : start + drop])
            self._count(body[start : start + drop])

    def _end(self, sock: socket.socket, fault: HttpFault) -> None:
        if fault.then == "reset":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            sock.close()
        elif fault.then == "stall":
            while sock.recv(4096):  # until either side hangs up
                pass

    def _wait_until(self, moment: float) -> None:
        seconds = moment - time.monotonic()
        if seconds > 0:
            self._stopping.wait(seconds)
