"""A stand-in that hands requests on to a real server or an emulator, and errs with its replies by script."""

from __future__ import annotations

import http.client
from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from monocontext.stores.protocol import Store
from monocontext.testing import HttpFault, S3StandIn
from monocontext.testing.http_wire import HttpReply, HttpRequest

_OF_THE_CONNECTION = ("connection", "keep-alive", "transfer-encoding", "expect")
_KNOWN = {name.lower(): name for name in ("ETag", "Content-Range", "Content-Length")}
"""Headers as faults name them."""


class ForwardingServer(S3StandIn):
    """Serves what lies behind `endpoint`; `place` is the path before keys: a bucket, or an account with a container."""

    def __init__(self, endpoint: str, place: str, scheme: str, store: Store, objects: Mapping[str, bytes]) -> None:
        super().__init__(store, bucket=place.rpartition("/")[2])
        self._bucket: Any = _Forward(endpoint, place)
        self._scheme = scheme
        for key, data in objects.items():
            store.put(key, data)

    def url(self, prefix: str = "") -> str:
        return f"{self._scheme}://{self.bucket}/{prefix}"

    def _reply(self, request: HttpRequest, key: str, fault: HttpFault) -> HttpReply:
        if "range" not in fault.ignores:
            return super()._reply(request, key, fault)
        part = super()._reply(request, key, replace(fault, ignores=frozenset()))  # Azure's signature covers the range
        headers = {name: value for name, value in part.headers.items() if name != "Content-Range"}
        return HttpReply(200, self.store.get(key).data, headers)


class _Forward:
    """Has another server answer; a connection for each request."""

    def __init__(self, endpoint: str, place: str) -> None:
        self._address = urlsplit(endpoint).netloc
        self._place = f"/{place}/"

    def place(self, request: HttpRequest) -> tuple[str, str]:
        """The verb and key of a request, as fault scripts name them."""
        key = request.path.removeprefix(self._place) if request.path.startswith(self._place) else ""
        return ("LIST" if not key and request.method == "GET" else request.method), key

    def answer(self, request: HttpRequest) -> HttpReply:
        target = quote(request.path) + (f"?{urlencode(request.query, quote_via=quote)}" if request.query else "")
        connection = http.client.HTTPConnection(self._address, timeout=60)
        asked = {name: value for name, value in request.headers.items() if name not in _OF_THE_CONNECTION}
        if request.method in ("PUT", "POST"):
            asked["content-length"] = str(len(request.body))
        try:
            connection.request(request.method, target, request.body or None, asked)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        headers = {_KNOWN.get(name.lower(), name): value for name, value in reply.getheaders()}
        dropped = _OF_THE_CONNECTION if request.method == "HEAD" else (*_OF_THE_CONNECTION, "content-length")
        kept = {name: value for name, value in headers.items() if name.lower() not in dropped}
        return HttpReply(reply.status, body, kept)
