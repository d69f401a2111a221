"""One GET, whatever comes between: sign, send, receive in place, and ask again for what is still missing.

What is done about what:

| what happens | what follows |
|---|---|
| a kept connection was closed while it waited | at once on a new one |
| no byte for as long as patience lasts, or hardly any | the rest, at once, on a new connection to another address |
| the connection breaks, or does not open | the rest, after a pause |
| 500, 502, 503, 504, 429, also inside a 200 | again, after a pause |
| 307 and its like; 301 or 400 that names a region | there, once each |
| expired token; a clock that differs from the server's | again, once each: renewed, by its clock |
| any other answer | `Refused`, for the store to put into words |

Retries are paid from one budget for the whole client; with nothing left the first failure counts, and silence is waited
out. There is no thread: the caller's does it all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from random import SystemRandom
from typing import Protocol
from urllib.parse import urljoin, urlsplit

from monocontext.errors import MonocontextError
from monocontext.transport.body import Body, Cut
from monocontext.transport.connection import Address, Connection
from monocontext.transport.http11 import BadReply, Head, request_head
from monocontext.transport.pace import Pace
from monocontext.transport.patience import Overdue, Patience, Wait
from monocontext.transport.pool import Pool
from monocontext.transport.refusal import MAX_ERROR_BYTES, Refused, is_disguised
from monocontext.transport.retry import Budget, next_pause
from monocontext.transport.route import DEFAULT_PORTS, Origin, Route
from monocontext.transport.signing import Credentials, Signer, encode_path

DEADLINE_SECONDS = 60.0
"""Of one call, all its retries included: what waits behind it would rather know."""
_SECONDS_PER_BYTE = 1e-6
"""What slow lines get on top of the deadline: 1 s for a MB."""
# A generator of its own: code that seeds that of the module `random` finds its own sequence, whatever is read.
_chance = SystemRandom()
_HEADERS = {"user-agent": "monocontext", "accept-encoding": "identity"}


class Sink(Protocol):
    """Takes the answers to one request, and knows what is still missing."""

    def wanted(self) -> Mapping[str, str]:
        """Headers that ask for what is missing."""
        ...

    def begin(self, head: Head) -> None:
        """A body follows. Raises when this head is not an answer to `wanted`: no byte of the body is read then."""
        ...

    def place(self) -> memoryview:
        """Where the next bytes go; never empty. Released at once."""
        ...

    def advance(self, count: int) -> None:
        """So many bytes were written to the beginning of `place()`. Raises when there are more than belong there."""
        ...

    def refused(self) -> None:
        """The server asked for fewer requests; it may be asked again."""
        ...

    def end(self) -> None:
        """The body ended. Raises when something is missing that asking again would not bring."""
        ...


class Unanswered(OSError):
    """No answer arrived whole, and asking again did not help."""


@dataclass(slots=True)
class _Errand:
    """One call: where it goes now, and what it has met."""

    route: Route
    target: str
    """Path and query, percent-encoded."""
    until: float
    """On the monotonic clock."""
    mended: set[str] = field(default_factory=set)
    """What was put right; nothing is twice."""
    silences: int = 0
    cuts: int = 0
    signed_by: Credentials | None = None
    """The last request."""
    avoid: Address | None = None
    """Where the last exchange failed."""


class Client:
    """Asks one origin. Safe for use by many threads, and after a fork; holds no thread."""

    def __init__(
        self,
        origin: Origin,
        pool: Pool,
        *,
        attempts: int = 4,
        silence_seconds: float = 10.0,
        deadline_seconds: float = DEADLINE_SECONDS,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        self.pool = pool
        self.budget = Budget(time.monotonic)
        self.patience = Patience(silence_seconds)
        self.pace = Pace()
        self._origin = origin
        self._attempts = attempts
        self._silence_seconds = silence_seconds
        self._deadline_seconds = deadline_seconds
        self._wall_clock = wall_clock
        self._server_ahead_seconds = 0.0
        self._signer: Signer | None = None

    def __repr__(self) -> str:
        return f"<Client {self.pool!r}, {self.budget!r}, patience {self.patience.seconds:.1f} s>"

    def get(self, key: str, sink: Sink, expected_bytes: int = 0) -> None:
        """Fill `sink` with the object `key`, or with the part that it wants (1 GET, and one more for each fault).

        Raises `Refused`, `Unanswered`, what `sink` raises, and what the origin raises when it has no credentials.
        """
        route = self._origin.route()
        until = time.monotonic() + self._deadline_seconds + expected_bytes * _SECONDS_PER_BYTE
        errand = _Errand(route, route.path + encode_path(key), until)
        attempt, pause = 1, 0.0
        while True:
            try:
                self._ask(errand, sink, is_last=attempt >= self._attempts)
            except MonocontextError:  # some are kin to OSError
                raise
            except Refused as refused:
                if refused.is_throttling:
                    sink.refused()
                if self._mend(refused, errand):
                    continue
                if not refused.passes or not self._may_retry(attempt, errand):
                    raise
                pause = next_pause(pause, _chance.uniform)
            except OSError as error:
                if not _is_passing(error) or not self._may_retry(attempt, errand):
                    raise _unanswered(error, errand, attempt) from error
                errand.silences += isinstance(error, TimeoutError)
                pause = 0.0 if isinstance(error, TimeoutError) else next_pause(pause, _chance.uniform)
            else:
                self.budget.succeeded()
                return
            attempt += 1
            if pause:
                time.sleep(min(pause, max(0.0, errand.until - time.monotonic())))

    def close(self) -> None:
        """Close idle connections. Idempotent; a later `get` opens new ones."""
        self.pool.close()

    def _may_retry(self, attempt: int, errand: _Errand) -> bool:
        return attempt < self._attempts and time.monotonic() < errand.until and self.budget.take()

    def _ask(self, errand: _Errand, sink: Sink, is_last: bool) -> None:
        """One exchange: whatever went wrong, the connection is back in the pool or closed."""
        waits_out = is_last or not self.budget.can_pay()
        seconds = self._silence_seconds if waits_out else self.patience.after(errand.silences)
        pace = None if waits_out else self.pace
        wait = Wait(seconds, self._silence_seconds, errand.until, time.monotonic, self.budget.can_pay, pace)
        connection, head = self._send(errand, sink, wait)
        refused: Refused | None = None
        try:
            body = Body(connection, head)
            if head.status not in (200, 206) or is_disguised(head):
                refused = Refused(head, body.read(MAX_ERROR_BYTES))
            else:
                _fill(sink, head, body, errand)
                wait.ended()
        except BaseException:
            errand.avoid = connection.address
            self.pool.discard(connection)
            raise
        if body.leaves_connection_usable:
            self.pool.give_back(connection)
        else:
            self.pool.discard(connection)
        if refused:
            raise refused

    def _send(self, errand: _Errand, sink: Sink, wait: Wait) -> tuple[Connection, Head]:
        """Send the request and await the head; once more when a kept connection turns out to be closed."""
        request = self._request(errand, sink)
        fresh = errand.avoid is not None
        while True:
            connection = self.pool.borrow(errand.route.endpoint, wait, fresh=fresh, avoid=errand.avoid)
            try:
                began = time.monotonic()
                connection.send(request)
                head = connection.read_head()
                self.patience.learn(time.monotonic() - began)
                return connection, head
            except BaseException as error:
                self.pool.discard(connection)
                errand.avoid, fresh = connection.address, True
                if not connection.exchanges or isinstance(error, TimeoutError) or not isinstance(error, OSError):
                    raise

    def _request(self, errand: _Errand, sink: Sink) -> bytes:
        route, target = errand.route, errand.target
        endpoint, headers = route.endpoint, dict(sink.wanted())
        host = endpoint.host_header
        if route.signed:
            path, _, query = target.partition("?")
            now = self._wall_clock() + self._server_ahead_seconds
            signer = self._signer_for(route)
            errand.signed_by = signer.credentials
            headers = signer.headers("GET", host, path, query, headers, now)
        else:
            headers["host"] = host
        if endpoint.proxy and endpoint.scheme == "http":
            target = f"http://{host}{target}"
            if endpoint.proxy.authorization:
                headers["proxy-authorization"] = endpoint.proxy.authorization
        return request_head("GET", target, headers | _HEADERS)

    def _signer_for(self, route: Route) -> Signer:
        credentials, signer = self._origin.credentials(), self._signer
        if signer is None or signer.credentials != credentials or signer.region != route.region:
            signer = self._signer = Signer(credentials, route.region, route.service)
        return signer

    def _mend(self, refused: Refused, errand: _Errand) -> bool:
        """Put right what the server complains of, if that can be done and was not done before."""
        if refused.is_expired and errand.signed_by and _first("credentials", errand):
            self._origin.renew(errand.signed_by)
            return True
        if refused.is_skewed and _first("clock", errand) and (server_clock := refused.server_clock) is not None:
            self._server_ahead_seconds = server_clock - self._wall_clock()
            return True
        if refused.region and _first("region", errand):
            moved = self._origin.move(refused.region)
            if moved is None or moved == errand.route:
                return False
            errand.target = moved.path + errand.target.removeprefix(errand.route.path)
            errand.route = moved
            return True
        if refused.location and _first("location", errand):
            return _follow(refused.location, errand)
        return False


def _fill(sink: Sink, head: Head, body: Body, errand: _Errand) -> None:
    sink.begin(head)
    try:
        while count := _read(body, sink):
            sink.advance(count)
    except (Cut, BadReply, ConnectionError):
        errand.cuts += 1
        raise
    sink.end()


def _read(body: Body, sink: Sink) -> int:
    with sink.place() as place:
        return body.read_into(place)


def _first(mend: str, errand: _Errand) -> bool:
    is_new = mend not in errand.mended
    errand.mended.add(mend)
    return is_new


def _follow(location: str, errand: _Errand) -> bool:
    """Go where the server points for this once: over the same scheme, and signed anew."""
    url, endpoint = urlsplit(urljoin(f"{errand.route.endpoint}{errand.target}", location)), errand.route.endpoint
    if url.scheme != endpoint.scheme or not url.hostname:
        return False
    there = replace(endpoint, host=url.hostname, port=url.port or DEFAULT_PORTS[endpoint.scheme])
    errand.route = replace(errand.route, endpoint=there)
    errand.target = f"{url.path}?{url.query}" if url.query else url.path
    return True


def _is_passing(error: OSError) -> bool:
    # A certificate that does not verify is a ValueError too, and will not verify the next time either.
    return not isinstance(error, (Overdue, ValueError))


def _unanswered(error: OSError, errand: _Errand, attempts: int) -> Unanswered:
    said = " ".join(str(error).split()) or type(error).__name__
    if errand.cuts:
        return Unanswered(f"the body was cut {errand.cuts} times, last by {said}")
    return Unanswered(f"{said} ({attempts} attempts)" if attempts > 1 else said)
