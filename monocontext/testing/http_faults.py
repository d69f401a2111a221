"""Describe the faults of an HTTP server, and decide which requests meet them. No I/O.

server.faults.add(stall(at=1000), key="*/segments/*")  # the first GET of a segment
server.faults.add(slow_down(), times=3)                # the next three GETs
server.faults.add(reset(), verb="CONNECT", times=2)    # the next two connections, before a byte is read
server.faults.add(cut(at=10), share=0.05, times=None)  # one GET in twenty, for ever
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from random import Random
from typing import Literal

_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")  # bytes 0-99/1000, not bytes */1000
_IF_MATCH = frozenset({"if-match"})


@dataclass(frozen=True, slots=True)
class HttpReply:
    """One complete reply. `Content-Length` is the length of the body, unless `headers` contains it."""

    status: int
    body: bytes = field(default=b"", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)

    def head(self) -> bytes:
        """The status line and the headers, as they are sent."""
        headers = {"Content-Length": str(len(self.body)), "Server": "stand-in", **self.headers}
        lines = [f"HTTP/1.1 {self.status} Said", *(f"{name}: {value}" for name, value in headers.items())]
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")

    def with_header(self, name: str, value: str) -> HttpReply:
        """The same reply with another value of one header."""
        return replace(self, headers={**self.headers, name: value})


@dataclass(frozen=True, slots=True)
class HttpFault:
    """One fault: how the server treats a request and its reply."""

    name: str
    instead: HttpReply | None = None  # the reply to send without carrying out the request
    change: Callable[[HttpReply], HttpReply] | None = None  # changes the reply
    rewrite: Callable[[bytes], bytes] | None = None  # replaces the object before the request is carried out
    ignores: frozenset[str] = frozenset()  # names of request headers that the server ignores, in lower case
    stops: tuple[Literal["head", "body"], int] | None = None
    """The number of bytes of the head or the body after which the server stops sending."""
    then: Literal["close", "reset", "stall"] = "close"
    """What happens after it `stops`: the connection is closed, reset, or silent until the client hangs up."""
    bytes_per_second: float | None = None  # the speed of the body


# -- the end comes early --------------------------------------------------------------------------------------------

lost = partial(HttpFault, "lost reply", stops=("head", 0))
"""The server carries out the request and sends no reply."""
cut_head = partial(HttpFault, "cut in the head", stops=("head", 20))
"""The connection is closed in the middle of the head."""
stall_before_head = partial(HttpFault, "stall before the head", stops=("head", 0), then="stall")
"""Nothing comes at all."""
stall_in_head = partial(HttpFault, "stall in the head", stops=("head", 20), then="stall")
"""Nothing comes after the beginning of the head."""


def cut(at: int = 0) -> HttpFault:
    """The connection is closed after `at` bytes of the body."""
    return HttpFault(f"cut at {at}", stops=("body", at))


def stall(at: int = 0) -> HttpFault:
    """Nothing comes after `at` bytes of the body, and the connection stays open."""
    return HttpFault(f"stall at {at}", stops=("body", at), then="stall")


def reset(at: int | None = None) -> HttpFault:
    """The connection is reset after `at` bytes of the body; by default instead of a reply."""
    if at is None:
        return HttpFault("reset", stops=("head", 0), then="reset")
    return HttpFault(f"reset at {at}", stops=("body", at), then="reset")


def drip(bytes_per_second: float) -> HttpFault:
    """The body comes in 50 small pieces a second, so the connection is never silent."""
    return HttpFault(f"drip of {bytes_per_second:g} B/s", bytes_per_second=bytes_per_second)


# -- the reply is not what was requested -----------------------------------------------------------------------------


def _change_range(reply: HttpReply, *changes: int) -> HttpReply:
    """The reply with `changes` added to the numbers of its Content-Range: first byte, last byte, total."""
    if not (match := _CONTENT_RANGE.fullmatch(reply.headers.get("Content-Range", ""))):
        return reply
    first, last, total = (int(number) + change for number, change in zip(match.groups(), changes, strict=True))
    return reply.with_header("Content-Range", f"bytes {first}-{last}/{total}")


def short(missing_bytes: int = 1) -> HttpFault:
    """A shorter range than the request names, with a length and a Content-Range that agree with it."""

    def change(reply: HttpReply) -> HttpReply:
        missing = min(missing_bytes, len(reply.body))
        return _change_range(replace(reply, body=reply.body[: len(reply.body) - missing]), 0, -missing, 0)

    return HttpFault("short range", change=change)


def flipped(at: int = 0) -> HttpFault:
    """One byte of the body has all its bits inverted; a negative index counts from the end."""

    def change(reply: HttpReply) -> HttpReply:
        body = bytearray(reply.body)
        if body:
            body[max(-len(body), min(at, len(body) - 1))] ^= 0xFF
        return replace(reply, body=bytes(body))

    return HttpFault(f"flipped byte {at}", change=change)


def wrong_range(by_bytes: int = 1) -> HttpFault:
    """A Content-Range that differs from the requested range."""
    return HttpFault("wrong Content-Range", change=lambda reply: _change_range(reply, by_bytes, by_bytes, by_bytes))


shifted = partial(HttpFault, "shifted body", change=lambda reply: replace(reply, body=reply.body[1:] + reply.body[:1]))
"""The right head, and a body that is rotated by one byte."""
other_etag = partial(
    HttpFault, "wrong ETag", change=lambda reply: reply.with_header("ETag", '"another-version"'), ignores=_IF_MATCH
)
"""The reply names another version of the object, and the server ignores If-Match."""
whole = partial(HttpFault, "200 for a range", ignores=frozenset({"range"}))
"""The whole object with status 200, although the request has a range."""


def replaced(rewrite: Callable[[bytes], bytes] = bytes.swapcase, ignores: frozenset[str] = frozenset()) -> HttpFault:
    """The object is replaced before the request: other bytes, another ETag."""
    name = "object replaced, If-Match ignored" if ignores else "object replaced"
    return HttpFault(name, rewrite=rewrite, ignores=ignores)


replaced_unseen = partial(replaced, ignores=_IF_MATCH)
"""`replaced`, on a server that also ignores If-Match."""


# -- the server refuses ---------------------------------------------------------------------------------------------


def error_reply(
    status: int, code: str, message: str = "on purpose", headers: Mapping[str, str] | None = None
) -> HttpReply:
    """An error in XML as S3 sends it."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return HttpReply(status, body.encode(), {"Content-Type": "application/xml"} | dict(headers or {}))


def refuse(status: int, code: str, headers: Mapping[str, str] | None = None) -> HttpFault:
    """The request is not carried out, and the reply is an error in XML as S3 sends it."""
    return HttpFault(f"{status} {code}", instead=error_reply(status, code, headers=headers))


internal_error = partial(refuse, 500, "InternalError")
error_in_200 = partial(refuse, 200, "InternalError")
"""An error in XML under a status of 200."""


def slow_down(retry_after_seconds: int | None = None) -> HttpFault:
    """503 SlowDown, with a Retry-After header if a time is given."""
    return refuse(503, "SlowDown", {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)})


def expired(status: Literal[400, 403] = 400) -> HttpFault:
    """The credentials have expired: S3 answers 400, other servers 403."""
    return refuse(status, "ExpiredToken")


# -- which requests meet it -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class FaultRule:
    """A fault, and the requests that meet it, which it counts."""

    fault: HttpFault
    verb: str = "GET"
    """`GET`, `HEAD`, `PUT`, `POST`, `DELETE`, `LIST` (a GET of the bucket), `CONNECT`, or `*` for all but `CONNECT`."""
    key: str = "*"  # a glob for the key of the object: `*/segments/*`
    skip: int = 0  # the number of matching requests that pass first
    times: int | None = 1  # the number of requests that meet the fault then; `None` for all
    share: float = 1.0  # the probability that a matching request meets the fault
    seen: int = 0  # the number of matching requests so far
    struck: int = 0  # the number of requests that met the fault so far

    def strikes(self, verb: str, key: str, random: Random) -> bool:
        """Whether this request meets the fault; counts it."""
        is_verb = self.verb == verb or (self.verb == "*" and verb != "CONNECT")
        if not is_verb or not fnmatchcase(key, self.key) or self.struck == self.times:
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.share < 1 and random.random() >= self.share):
            return False
        self.struck += 1
        return True


class FaultScript:
    """Rules in order; the first that matches a request applies. Safe for use by many threads."""

    def __init__(self, seed: int = 0) -> None:
        self._rules: list[FaultRule] = []
        self._random = Random(seed)
        self._lock = threading.Lock()

    def add(
        self, fault: HttpFault, *, verb: str = "GET", key: str = "*", skip: int = 0, times: int | None = 1,
        share: float = 1.0,
    ) -> FaultRule:  # fmt: skip
        """Append a rule with these fields, and return it."""
        with self._lock:
            self._rules.append(FaultRule(fault, verb, key, skip, times, share))
            return self._rules[-1]

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._rules.clear()

    @property
    def struck(self) -> int:
        """The number of requests that met a fault of the current rules."""
        with self._lock:
            return sum(rule.struck for rule in self._rules)

    def pick(self, verb: str, key: str) -> HttpFault | None:
        """The fault of this request, if any."""
        with self._lock:
            return next((rule.fault for rule in self._rules if rule.strikes(verb, key, self._random)), None)
