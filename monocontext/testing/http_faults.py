"""What an HTTP server may do wrong, as values, and a script that says which requests meet it. No I/O.

server.faults.add(stall(at=1000), key="*/segments/*")          # the first GET of a segment
server.faults.add(slow_down(), times=3)                        # the next three GETs
server.faults.add(reset(), verb="CONNECT", times=2)            # the next two connections, before a byte is read
server.faults.add(cut(at=10), share=0.05, times=None)          # one GET in twenty, for good
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from random import Random
from typing import Literal

from monocontext.testing.http_wire import Reply

_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


def _as_it_is(reply: Reply) -> Reply:
    return reply


@dataclass(frozen=True, slots=True)
class HttpFault:
    """What is odd about one answer."""

    name: str
    instead: Reply | None = None
    """Said without carrying the request out."""
    change: Callable[[Reply], Reply] = _as_it_is
    """From what would have been said to what is."""
    rewrite: Callable[[bytes], bytes] | None = None
    """Before it is answered, somebody replaces the object by what this makes of its bytes."""
    ignores: frozenset[str] = frozenset()
    """Headers of the request that the server does not look at, in lower case."""
    stops: tuple[Literal["head", "body"], int] | None = None
    """Send no more after so many bytes of the head or of the body."""
    then: Literal["close", "reset", "stall"] = "close"
    """What comes after the last byte where it `stops`; a stall ends when the client hangs up."""
    bytes_per_second: float | None = None
    """Speed of the body."""

    def __repr__(self) -> str:
        return f"<HttpFault {self.name}>"


# -- the end comes early --------------------------------------------------------------------------------------------


def cut(at: int = 0) -> HttpFault:
    """The connection is closed after `at` bytes of the body."""
    return HttpFault(f"cut at {at}", stops=("body", at))


def cut_head() -> HttpFault:
    """The connection is closed in the middle of the head."""
    return HttpFault("cut in the head", stops=("head", 20))


def lost() -> HttpFault:
    """The request is carried out, and nothing is said about it."""
    return HttpFault("lost answer", stops=("head", 0))


def reset(at: int | None = None) -> HttpFault:
    """The connection is reset: after `at` bytes of the body, by default instead of an answer."""
    return HttpFault(
        "reset" if at is None else f"reset at {at}", stops=("head", 0) if at is None else ("body", at), then="reset"
    )


def stall(at: int = 0) -> HttpFault:
    """Nothing comes after `at` bytes of the body, and the connection stays open."""
    return HttpFault(f"stall at {at}", stops=("body", at), then="stall")


def stall_before_head() -> HttpFault:
    """Nothing comes at all."""
    return HttpFault("stall before the head", stops=("head", 0), then="stall")


def stall_in_head() -> HttpFault:
    """Nothing comes after the beginning of the head."""
    return HttpFault("stall in the head", stops=("head", 20), then="stall")


def drip(bytes_per_second: float) -> HttpFault:
    """The body comes in drops, 50 a second: there is never silence."""
    return HttpFault(f"drip of {bytes_per_second:g} B/s", bytes_per_second=bytes_per_second)


# -- the answer is not what was asked for ---------------------------------------------------------------------------


def short(missing_bytes: int = 1) -> HttpFault:
    """A shorter range than was asked for, with a length and a Content-Range that agree with it."""

    def change(reply: Reply) -> Reply:
        body = reply.body[: max(0, len(reply.body) - missing_bytes)]
        found = _RANGE.fullmatch(reply.headers.get("Content-Range", ""))
        headers = dict(reply.headers)
        if found:
            headers["Content-Range"] = f"bytes {found[1]}-{int(found[1]) + len(body) - 1}/{found[3]}"
        return replace(reply, body=body, headers=headers)

    return HttpFault("short range", change=change)


def shifted(by_bytes: int = 1) -> HttpFault:
    """Bytes of another place, under the head of the right one: those asked for, turned by some."""

    def change(reply: Reply) -> Reply:
        at = by_bytes % max(1, len(reply.body))
        return replace(reply, body=reply.body[at:] + reply.body[:at])

    return HttpFault("shifted body", change=change)


def flipped(at: int = 0) -> HttpFault:
    """One byte of the body has all its bits turned; a negative index counts from the end."""

    def change(reply: Reply) -> Reply:
        body = bytearray(reply.body)
        if body:
            body[max(-len(body), min(at, len(body) - 1))] ^= 0xFF
        return replace(reply, body=bytes(body))

    return HttpFault(f"flipped byte {at}", change=change)


def wrong_range(by_bytes: int = 1) -> HttpFault:
    """A Content-Range that names another place than was asked for."""

    def change(reply: Reply) -> Reply:
        found = _RANGE.fullmatch(reply.headers.get("Content-Range", ""))
        if not found:
            return reply
        said = f"bytes {int(found[1]) + by_bytes}-{int(found[2]) + by_bytes}/{int(found[3]) + by_bytes}"
        return replace(reply, headers=dict(reply.headers) | {"Content-Range": said})

    return HttpFault("wrong Content-Range", change=change)


def other_etag(etag: str = "another-version") -> HttpFault:
    """The answer claims to be of another version, and If-Match is not looked at."""

    def change(reply: Reply) -> Reply:
        return replace(reply, headers=dict(reply.headers) | {"ETag": f'"{etag}"'})

    return HttpFault("wrong ETag", change=change, ignores=frozenset({"if-match"}))


def whole() -> HttpFault:
    """The whole object with status 200, whatever range was asked for."""
    return HttpFault("200 for a range", ignores=frozenset({"range"}))


def replaced(rewrite: Callable[[bytes], bytes] = bytes.swapcase) -> HttpFault:
    """From this request on the object is another one: other bytes, another ETag."""
    return HttpFault("object replaced", rewrite=rewrite)


def replaced_unseen(rewrite: Callable[[bytes], bytes] = bytes.swapcase) -> HttpFault:
    """The same by a server that does not look at If-Match."""
    return HttpFault("object replaced, If-Match ignored", rewrite=rewrite, ignores=frozenset({"if-match"}))


# -- the server says no ---------------------------------------------------------------------------------------------


def refuse(status: int, code: str, headers: Mapping[str, str] | None = None) -> HttpFault:
    """An error in XML, as S3 says it; the request is not carried out."""
    return HttpFault(f"{status} {code}", instead=error_reply(status, code, headers=headers))


def slow_down(retry_after_seconds: int | None = None) -> HttpFault:
    """503 SlowDown, with the time after which to come back if it is given."""
    return refuse(503, "SlowDown", {} if retry_after_seconds is None else {"Retry-After": str(retry_after_seconds)})


def internal_error() -> HttpFault:
    return refuse(500, "InternalError")


def expired(status: Literal[400, 403] = 400) -> HttpFault:
    """The credentials have expired: S3 says it with 400, other servers with 403."""
    return refuse(status, "ExpiredToken")


def error_in_200(code: str = "InternalError") -> HttpFault:
    """An error in XML under a status of 200."""
    return replace(refuse(200, code), name=f"200 {code}")


def error_reply(status: int, code: str, message: str = "on purpose", headers: Mapping[str, str] | None = None) -> Reply:
    """An error as S3 says it."""
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code><Message>{message}</Message></Error>'
    return Reply(status, body.encode(), {"Content-Type": "application/xml"} | dict(headers or {}))


# -- which requests meet it -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class Rule:
    """One line of a script."""

    fault: HttpFault
    verb: str = "GET"
    """`GET`, `HEAD`, `PUT`, `POST`, `DELETE`, `LIST` (a GET of the bucket), `CONNECT` (a connection), or `*` for all
    but connections."""
    key: str = "*"
    """Of the object, with `*` and `?` as in file names."""
    skip: int = 0
    """Requests that it lets pass first."""
    times: int | None = 1
    """Requests that meet it after those; `None` for all."""
    share: float = 1.0
    """Of those, so many, by chance."""
    seen: int = 0
    """Requests of this verb and key so far."""
    struck: int = 0
    """Requests that met the fault so far."""

    def strikes(self, verb: str, key: str, random: Random) -> bool:
        """Whether this request meets the fault; counts it."""
        if self.verb != verb and not (self.verb == "*" and verb != "CONNECT"):
            return False
        if not fnmatchcase(key, self.key) or self.struck == self.times:
            return False
        self.seen += 1
        if self.seen <= self.skip or (self.share < 1 and random.random() >= self.share):
            return False
        self.struck += 1
        return True


@dataclass(slots=True)
class Script:
    """Rules in order: the first that strikes counts. Safe for use by many threads."""

    seed: int = 0
    """Of what is left to chance."""
    rules: list[Rule] = field(default_factory=list)
    _random: Random = field(init=False)
    _lock: threading.Lock = field(init=False, default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = Random(self.seed)

    def add(
        self,
        fault: HttpFault,
        *,
        verb: str = "GET",
        key: str = "*",
        skip: int = 0,
        times: int | None = 1,
        share: float = 1.0,
    ) -> Rule:
        """Append a rule; what it returns counts the requests that met it."""
        rule = Rule(fault, verb, key, skip, times, share)
        with self._lock:
            self.rules.append(rule)
        return rule

    def clear(self) -> None:
        """From now on all is well."""
        with self._lock:
            self.rules.clear()

    @property
    def struck(self) -> int:
        """Faults that were met, by the rules there are now."""
        with self._lock:
            return sum(rule.struck for rule in self.rules)

    def pick(self, verb: str, key: str) -> HttpFault | None:
        """The fault of this request, if it has one."""
        with self._lock:
            return next((rule.fault for rule in self.rules if rule.strikes(verb, key, self._random)), None)
