"""An S3 server on 127.0.0.1 for tests and measurements, with scripted faults and the latency of a profile.

It runs in threads of this process, one for each connection, starts within a millisecond, and ignores signatures. Use
`SeaweedServer` to show that something works with a real server, and this one to provoke faults.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
import struct
import threading
import time
import uuid
from collections import Counter, deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email.utils import formatdate
from random import Random
from typing import BinaryIO, Self
from urllib.parse import parse_qsl, quote, unquote
from xml.sax.saxutils import escape

from monocontext.errors import AccessDenied, AlreadyExists, ContextChanged, InvalidUrl, MonocontextError, NotFound
from monocontext.stores import open_store
from monocontext.stores.memory import forget
from monocontext.stores.protocol import ObjectInfo, Store
from monocontext.testing.http_faults import HttpFault, HttpReply, Script, error_reply
from monocontext.testing.network import Profile, SimulatedLink, profile

_MOST_LOGGED = 100_000  # requests that `S3StandIn.log` keeps
_PIECE_BYTES = 256 << 10  # of a body that are sent at once
_DROPS_PER_SECOND = 50  # pieces of a body whose speed is limited
_MOST_LISTED = 1000  # objects in one answer to a LIST, as on S3
_NO_FAULT = HttpFault("none")
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """One complete request."""

    method: str
    path: str
    """Decoded; begins with a slash."""
    query: Mapping[str, str] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)  # by name in lower case
    body: bytes = field(default=b"", repr=False)


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
        self._memory = f"stand-in-{uuid.uuid4().hex}"
        place = f"memory://{self._memory}" if objects is None or isinstance(objects, Mapping) else objects
        self.store: Store = open_store(place) if isinstance(place, (str, os.PathLike)) else place
        """The store with the objects."""
        for key, data in objects.items() if isinstance(objects, Mapping) else ():
            self.store.put(key, data)
        self.bucket = bucket
        self.faults = Script(seed)
        """The faults of requests."""
        self._bucket = Bucket(bucket, self.store)
        self._latency = profile(latency) if isinstance(latency, str) else latency
        self._link = SimulatedLink(connection_bytes_per_second, link_bytes_per_second)
        self._random = Random(seed)
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._listener: socket.socket | None = None
        self._connections: dict[socket.socket, threading.Thread] = {}
        self._accepting = threading.Thread(target=self._accept, name="stand-in", daemon=True)
        self.connections = 0
        """The number of connections so far."""
        self.in_flight = 0
        """The number of requests without a complete reply."""
        self.reset_counts()

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
            self.log: deque[HttpRequest] = deque(maxlen=_MOST_LOGGED)
            """The last requests without their bodies, in the order of their arrival."""

    @property
    def requests(self) -> int:
        """The number of requests of all verbs."""
        with self._lock:
            return self.counts.total()

    @property
    def open_connections(self) -> int:
        """The number of connections that are open."""
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
        """Answer one request; returns whether the connection goes on."""
        verb, key = self._bucket.place(request)
        with self._lock:
            self.counts[verb] += 1
            self.log.append(replace(request, body=b""))
            self.in_flight += 1
            seconds = self._latency.seconds(self._random) if self._latency else 0.0
        started = time.monotonic() + seconds
        try:
            fault = self.faults.pick(verb, key) or _NO_FAULT
            reply = self._reply(request, key, fault)
            self._wait_until(started)
            if request.method == "HEAD":
                reply = replace(reply, body=b"", headers={"Content-Length": str(len(reply.body)), **reply.headers})
            self._send(sock, reply, fault, started)
            if fault.stops:
                _end_connection(sock, fault)
            return not fault.stops and request.headers.get("connection", "").lower() != "close"
        finally:
            with self._lock:
                self.in_flight -= 1

    def _reply(self, request: HttpRequest, key: str, fault: HttpFault) -> HttpReply:
        if fault.instead:
            return fault.instead
        if fault.rewrite:
            self.store.put(key, fault.rewrite(self.store.get(key).data))
        headers = {name: value for name, value in request.headers.items() if name not in fault.ignores}
        reply = self._bucket.answer(replace(request, headers=headers))
        return fault.change(reply) if fault.change else reply

    def _send(self, sock: socket.socket, reply: HttpReply, fault: HttpFault, begun: float) -> None:
        head, body, link, size = reply.head(), memoryview(reply.body), self._link, _PIECE_BYTES
        if fault.stops:
            part, offset = fault.stops
            head, body = (head[:offset], body[:0]) if part == "head" else (head, body[:offset])
        if speed := fault.bytes_per_second:
            link, size = SimulatedLink(speed), max(1, round(speed / _DROPS_PER_SECOND))
        if not link.is_unlimited:
            sock.sendall(head)
            head = b""
        for start in range(0, len(body) or 1, size):
            piece = body[start : start + size]
            begun = link.arrival(len(piece), begun)
            self._wait_until(begun)
            sock.sendall(head + piece if head else piece)  # in one segment where they fit
            head = b""
            with self._lock:
                self.bytes_sent += len(piece)

    def _wait_until(self, moment: float) -> None:
        seconds = moment - time.monotonic()
        if seconds > 0:
            self._stopping.wait(seconds)


def _end_connection(sock: socket.socket, fault: HttpFault) -> None:
    if fault.then == "reset":
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    elif fault.then == "stall":
        while sock.recv(4096):  # until either side hangs up
            pass


def _read_request(sock: socket.socket, file: BinaryIO) -> HttpRequest | None:
    """The next request; `None` after the last one, and for a malformed first line."""
    first = file.readline(64 << 10).split()
    if len(first) != 3:
        return None
    headers: dict[str, str] = {}
    while line := file.readline(64 << 10).strip():
        name, _, value = line.decode("latin-1").partition(":")
        headers[name.lower()] = value.strip()
    if headers.get("expect", "").lower() == "100-continue":
        sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
    body = file.read(int(headers.get("content-length", 0)))
    path, _, query = first[1].decode("latin-1").partition("?")
    return HttpRequest(first[0].decode("latin-1"), unquote(path), dict(parse_qsl(query, True)), headers, body)


class Bucket:
    """Answers requests for the objects of any store: one request in, one reply out. Safe for use by many threads.

    It supports the requests of boto3 and of `S3Store`: GET with a range and If-Match, HEAD, ListObjectsV2, PUT with a
    condition, DELETE, and uploads in parts. It does not support signatures, versions, access control, copies, chunked
    bodies, delimiters of lists, and checksums of the body.
    """

    def __init__(self, name: str, store: Store) -> None:
        self.name = name
        self.store = store
        self._uploads: dict[str, dict[int, bytes]] = {}

    def place(self, request: HttpRequest) -> tuple[str, str]:
        """The verb and key of a request, as fault scripts name them: a GET or HEAD of the bucket itself is a `LIST`."""
        key = request.path.removeprefix(f"/{self.name}").removeprefix("/")
        return ("LIST" if not key and request.method in ("GET", "HEAD") else request.method), key

    def answer(self, request: HttpRequest) -> HttpReply:
        """Carry out a request. A mistake of the client gives an error reply, not an exception."""
        if f"{request.path}/".split("/")[1] != self.name:
            return error_reply(404, "NoSuchBucket")
        chunked = any("chunked" in request.headers.get(f"{kind}-encoding", "") for kind in ("content", "transfer"))
        if request.query.get("delimiter") or chunked:
            return error_reply(501, "NotImplemented")
        verb, key = self.place(request)
        try:
            match verb:
                case "LIST":
                    return self._list(request) if request.method == "GET" else HttpReply(200)
                case "GET" | "HEAD":
                    return self._read(key, request)
                case _ if "uploads" in request.query or "uploadId" in request.query:
                    return self._upload(key, request)
                case "PUT":
                    return HttpReply(200, headers={"ETag": self._put(key, request.body, request)})
                case "DELETE":
                    self.store.delete(key)
                    return HttpReply(204)
        except NotFound:
            return error_reply(404, "NoSuchKey")
        except (AlreadyExists, ContextChanged):
            return error_reply(412, "PreconditionFailed")
        except AccessDenied:
            return error_reply(403, "AccessDenied")
        except (InvalidUrl, ValueError) as error:
            return error_reply(400, "InvalidArgument", escape(str(error)))
        except MonocontextError as error:
            return error_reply(500, "InternalError", escape(str(error)))
        return error_reply(501, "NotImplemented")

    def _read(self, key: str, request: HttpRequest) -> HttpReply:
        info = self.store.head(key)
        size, range_header = info.size_bytes, request.headers.get("range", "")
        headers = {
            "ETag": f'"{info.etag}"',
            "Last-Modified": formatdate(info.modified_seconds, usegmt=True),
            "Content-Type": "binary/octet-stream",
        }
        if request.headers.get("if-match", "").strip('"') not in ("", "*", info.etag):
            return error_reply(412, "PreconditionFailed")
        span = _span(range_header, size)
        if span is None:
            return error_reply(416, "InvalidRange", headers={"Content-Range": f"bytes */{size}"})
        if request.method == "HEAD":
            return HttpReply(200, headers=headers | {"Content-Length": str(size)})
        start, stop = span
        body = self.store.get_range(key, start, stop - start, etag=info.etag).data if stop > start else b""
        if not range_header:
            return HttpReply(200, body, headers)
        return HttpReply(206, body, headers | {"Content-Range": f"bytes {start}-{stop - 1}/{size}"})

    def _put(self, key: str, data: bytes, request: HttpRequest) -> str:
        match = request.headers.get("if-match", "").strip('"') or None
        etag = self.store.put(key, data, if_absent=request.headers.get("if-none-match") == "*", if_match=match)
        return f'"{etag}"'

    def _list(self, request: HttpRequest) -> HttpReply:
        prefix, after = request.query.get("prefix", ""), request.query.get("continuation-token", "")
        most = min(_MOST_LISTED, int(request.query.get("max-keys") or _MOST_LISTED))
        entries = [info for info in self.store.list(prefix) if info.key > after]
        is_cut = len(entries) > most
        head = f"<Name>{self.name}</Name><Prefix>{_encode_key(prefix)}</Prefix><EncodingType>url</EncodingType>"
        head += f"<KeyCount>{len(entries[:most])}</KeyCount><IsTruncated>{str(is_cut).lower()}</IsTruncated>"
        if is_cut:
            head += f"<NextContinuationToken>{escape(entries[most - 1].key)}</NextContinuationToken>"
        return _xml(f"<ListBucketResult>{head}{''.join(map(_list_entry, entries[:most]))}</ListBucketResult>")

    def _upload(self, key: str, request: HttpRequest) -> HttpReply:
        """Begin, continue, end or drop an upload in parts."""
        name = request.query.get("uploadId") or uuid.uuid4().hex
        fields = f"<Bucket>{self.name}</Bucket><Key>{escape(key)}</Key>"
        if request.method == "POST" and "uploads" in request.query:
            self._uploads[name] = {}
            fields += f"<UploadId>{name}</UploadId>"
            return _xml(f"<InitiateMultipartUploadResult>{fields}</InitiateMultipartUploadResult>")
        parts = self._uploads.get(name) if request.method == "PUT" else self._uploads.pop(name, None)
        if request.method == "DELETE":
            return HttpReply(204)
        if parts is None:
            return error_reply(404, "NoSuchUpload")
        if request.method == "PUT":
            parts[int(request.query["partNumber"])] = request.body
            return HttpReply(200, headers={"ETag": f'"{hashlib.sha256(request.body).hexdigest()[:32]}"'})
        etag = self._put(key, b"".join(parts[number] for number in sorted(parts)), request)
        fields += f"<ETag>{escape(etag)}</ETag>"
        return _xml(f"<CompleteMultipartUploadResult>{fields}</CompleteMultipartUploadResult>")


def _span(range_header: str, size: int) -> tuple[int, int] | None:
    """The bytes [start, stop) in a Range header; `None` if the object has none of them."""
    match = _RANGE.fullmatch(range_header)
    if not match or match[0] == "bytes=-":
        return 0, size
    if not match[1]:  # the last bytes
        start, stop = max(0, size - int(match[2])), size
    else:
        start, stop = int(match[1]), min(size, int(match[2]) + 1 if match[2] else size)
    return (start, stop) if start < stop else None


def _list_entry(info: ObjectInfo) -> str:
    written = datetime.fromtimestamp(info.modified_seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
    fields = f"<Key>{_encode_key(info.key)}</Key><LastModified>{written}</LastModified>"
    fields += f"<ETag>&quot;{escape(info.etag)}&quot;</ETag><Size>{info.size_bytes}</Size>"
    return f"<Contents>{fields}<StorageClass>STANDARD</StorageClass></Contents>"


def _encode_key(text: str) -> str:
    return escape(quote(text, safe="/"))


def _xml(body: str) -> HttpReply:
    data = f'<?xml version="1.0" encoding="UTF-8"?>\n{body}'
    return HttpReply(200, data.encode(), {"Content-Type": "application/xml"})
