"""Send GETs with retries: sign each, receive its body in place, and request the missing rest after a fault.

| event | reaction |
|---|---|
| the server closed a pooled connection | send again at once, on a new connection |
| too few bytes, or none, arrive within the timeout | request the rest at once, on a new connection to another address |
| the connection breaks or cannot be opened | request the rest after a pause |
| 408, 429, 500, 502, 503, 504, or such an error in the body of a 200 | send again after a pause |
| 301, 302, 303, 307, 308 within the endpoint's domain; 301 or 400 that names a region | send again there, once each |
| expired token; a clock that differs from the server's | send again with new credentials or its clock, once each |
| any other response | raise `ErrorResponse`, which the store translates |

All GETs of a client share a budget of retries. When it is empty, the first failure is final, and the client waits
longer for a silent server. A retry is free if 16 KiB of a body arrived before the fault, so a read over an unreliable
line continues until the deadline. All of this runs in the thread of the caller.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from monocontext.errors import MonocontextError
from monocontext.records import dataclass, field
from monocontext.stores import log
from monocontext.stores.http.connection import BadResponse, Body, BodyCut, Connection, Peer, ResponseHead, request_head
from monocontext.stores.http.error_response import ErrorResponse
from monocontext.stores.http.pool import Pool
from monocontext.stores.http.route import Credentials, ForeignRedirect, Origin, Route, redirected
from monocontext.stores.http.timer import ExchangeTimer, Overdue, Pace
from monocontext.stores.protocol import one_line, uniform

DEADLINE_SECONDS = 60.0  # the time limit of one call with all its retries
_SECONDS_PER_BYTE = 1e-6  # the time that each requested byte adds to the limit, for slow lines: 1 s for each MB
_PROGRESS_BYTES = 16 << 10
"""A retry after this many bytes of a body is free: it requests only the rest, so it does not multiply the load."""
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 5.0
_HEADERS = {"user-agent": "monocontext", "accept-encoding": "identity"}
MAX_ERROR_BYTES = 64 << 10
"""The most bytes that are read of the body of an error response. Those of S3 have a few hundred."""


class Client:
    """Sends GETs to one origin. Safe for use by many threads, and after a fork; starts no thread."""

    def __init__(self, origin: Origin, pool: Pool, *, attempts: int, silence_seconds: float) -> None:
        """`attempts`: the most attempts without progress. `silence_seconds`: how long a server may be silent."""
        self.pool = pool
        self.budget = RetryBudget(time.monotonic)
        self.pace = Pace(silence_seconds)
        self._origin, self._attempts, self._silence_seconds = origin, attempts, silence_seconds
        self._server_ahead_seconds = 0.0  # how far the server's clock is ahead, known once a signature is refused

    def get(self, key: str, sink: Sink, expected_bytes: int = 0) -> None:
        """Read the object `key`, or the range in the headers of `sink`, into `sink` (1 GET, and 1 more per fault).

        `expected_bytes` is the length of the body, or 0 if it is unknown; it extends the deadline. Raises
        `ErrorResponse`, `NoResponse`, errors of `sink`, and the origin's error for missing credentials.
        """
        route = self._origin.route
        limit_seconds = DEADLINE_SECONDS + expected_bytes * _SECONDS_PER_BYTE
        call = _Call(key, route, time.monotonic() + limit_seconds, limit_seconds)
        while True:
            try:
                self._exchange(call, sink)
            except MonocontextError:  # of the sink; some are also an OSError
                raise
            except ErrorResponse as response:
                sink.refusals += response.is_throttling
                if not self._recover_from_response(response, call):
                    raise
            except OSError as error:
                if not self._recover_from_fault(error, call):
                    raise _no_response(error, call) from error
            else:
                self.budget.add_success()
                return

    def _exchange(self, call: _Call, sink: Sink) -> None:
        """Send one request and receive its response. Afterwards the connection is in the pool or closed."""
        call.body = None
        # The last attempt waits as long as it may, since it cannot be sent again.
        is_last = call.attempt >= self._attempts or not self.budget.can_pay()
        timer = ExchangeTimer(
            timeout_seconds=self._silence_seconds if is_last else self.pace.timeout_after(call.silences),
            longest_silence_seconds=self._silence_seconds,
            deadline=call.deadline,
            clock=time.monotonic,
            can_retry=self.budget.can_pay,
            pace=None if is_last else self.pace,
        )
        connection, head = self._send(call, sink, timer)
        body = Body(connection, head)
        error_body: bytes | None = None
        try:
            # Some gateways begin to respond before they know that they will fail: their 200 is XML without an ETag.
            is_error_in_200 = "etag" not in head.headers and "xml" in head.headers.get("content-type", "")
            if head.status != 206 and (head.status != 200 or is_error_in_200):
                error_body = body.read(MAX_ERROR_BYTES)
            else:
                sink.receive(head, body)
                timer.finish()
        except BaseException as error:
            call.failed_address = connection.address
            if body.is_accepted:
                call.body = body
                call.broken_bodies += isinstance(error, (BodyCut, BadResponse, ConnectionError))
            self.pool.discard(connection)
            raise
        if body.leaves_connection_usable:
            self.pool.give_back(connection)
        else:
            self.pool.discard(connection)
        if error_body is not None:
            raise ErrorResponse(head, error_body)

    def _send(self, call: _Call, sink: Sink, timer: ExchangeTimer) -> tuple[Connection, ResponseHead]:
        """Send the request and read the head. If the server had closed the pooled connection, use a new one."""
        request = self._request(call, sink)
        must_be_new = call.failed_address is not None
        while True:
            connection = self.pool.borrow(
                call.route.endpoint, timer, must_be_new=must_be_new, avoid=call.failed_address
            )
            try:
                began = time.monotonic()
                connection.send(request, timer)
                head = connection.read_head()
                self.pace.add_first_byte(time.monotonic() - began)
                return connection, head
            except BaseException as error:
                self.pool.discard(connection)
                call.failed_address, must_be_new = connection.address, True
                if connection.exchanges == 0 or isinstance(error, TimeoutError) or not isinstance(error, OSError):
                    raise
                _note(call, "the server closed an idle connection", "sent again", log.DEBUG)

    def _request(self, call: _Call, sink: Sink) -> bytes:
        """The head of a GET for the missing bytes, signed unless the route is for unsigned requests."""
        route = call.route
        endpoint, headers = route.endpoint, dict(sink.headers())
        host = endpoint.host_header
        target = call.target = call.target or route.path + quote(call.key, safe="/-_.~")
        if route.signed:
            now = time.time() + self._server_ahead_seconds
            headers, call.signed_by = self._origin.sign(route, host, target, headers, now)
        else:
            headers["host"] = host
        if endpoint.proxy and endpoint.scheme == "http":
            target = f"http://{host}{target}"
            if endpoint.proxy.authorization:
                headers["proxy-authorization"] = endpoint.proxy.authorization
        return request_head("GET", target, headers | _HEADERS)

    def _recover_from_response(self, response: ErrorResponse, call: _Call) -> bool:
        """Remove the cause of an error response, or pause; returns whether the request should be sent again."""
        received = f"HTTP {response.status} {response.code}"
        if self._remove_cause(response, call):
            _note(call, received, "sent again, its cause removed")
            return True
        if not response.is_transient or not self._may_retry(call):
            return False
        call.pause_seconds = next_pause(call.pause_seconds)
        _note(call, received, f"sent again in {call.pause_seconds:.2f} s")
        _begin_next_attempt(call)
        return True

    def _recover_from_fault(self, error: OSError, call: _Call) -> bool:
        """Pause after a fault, but not after a silence; returns whether the missing rest should be requested."""
        if call.body and call.body.read_bytes >= _PROGRESS_BYTES:  # this retry is free
            call.attempt, call.pause_seconds, call.silences = 0, 0.0, 0
        # A retry does not help against an invalid certificate, whose error is both an OSError and a ValueError.
        if isinstance(error, (Overdue, ValueError)) or not self._may_retry(call):
            return False
        if isinstance(error, TimeoutError):
            call.silences += 1
            call.pause_seconds = 0.0
        else:
            call.pause_seconds = next_pause(call.pause_seconds)
        reaction = "resumed" if call.body else "sent again"
        _note(call, one_line(error), f"{reaction} in {call.pause_seconds:.2f} s")
        _begin_next_attempt(call)
        return True

    def _may_retry(self, call: _Call) -> bool:
        """Whether another attempt is allowed. Pays for it from the budget, unless it is free (attempt 0)."""
        if call.attempt >= self._attempts or time.monotonic() >= call.deadline:
            return False
        return call.attempt == 0 or self.budget.take()

    def _remove_cause(self, response: ErrorResponse, call: _Call) -> bool:
        """Try to remove the cause of an error response, each once per call. Returns whether a retry may help."""
        if response.is_expired and call.signed_by and _is_first_try("credentials", call):
            self._origin.renew(call.signed_by)
            return True
        if response.is_skewed and response.server_clock and _is_first_try("clock", call):
            self._server_ahead_seconds = response.server_clock - time.time()
            return True
        if response.region and _is_first_try("region", call):
            new_route = self._origin.move_to_region(response.region)
            if new_route is None or new_route == call.route:
                return False
            call.route, call.target = new_route, ""
            return True
        if response.location and _is_first_try("location", call):
            try:
                call.route, call.target = redirected(call.route, call.target, response.location)
            except ForeignRedirect as foreign:
                response.refused_redirect = str(foreign)
                return False
            return True
        return False


class Sink(Protocol):
    """The receiver of the responses to one GET. It knows which bytes are still missing."""

    refusals: int
    """The number of throttling responses, counted by the client."""

    def headers(self) -> Mapping[str, str]:
        """The headers of a request for the missing bytes."""
        ...

    def receive(self, head: ResponseHead, body: Body) -> None:
        """Check a head, accept its body and read it.

        Raises an error if the response does not answer a request with `headers`, or if the body does not have the
        announced length. After an error of the body itself, another call receives the rest.
        """
        ...


class NoResponse(OSError):
    """No complete response arrived, in spite of retries."""


@dataclass(slots=True)
class _Call:
    """The state of one call of `Client.get`."""

    key: str
    route: Route
    deadline: float
    """On the monotonic clock, in seconds."""
    limit_seconds: float
    """The seconds from the beginning of the call to its deadline."""
    attempt: int = 1
    """The number of the attempt under way. Progress sets it to 0, which makes the next one free."""
    pause_seconds: float = 0.0
    """The last pause between two attempts."""
    target: str = ""
    """The path and query, percent-encoded; empty until the first request on this route."""
    tried_causes: set[str] = field(default_factory=set)
    """The causes of errors that `_remove_cause` has tried to remove."""
    silences: int = 0
    """The number of timeouts since the last progress."""
    broken_bodies: int = 0
    """The number of bodies that broke off."""
    signed_by: Credentials | None = None
    """The credentials of the last request."""
    failed_address: Peer | None = None
    """The address at which the last exchange failed; the next connection leads to another one if possible."""
    body: Body | None = None
    """The body of the last exchange, if the sink accepted it but it did not arrive whole."""


def _begin_next_attempt(call: _Call) -> None:
    """Pause before the next attempt, at most until the deadline."""
    call.attempt += 1
    if call.pause_seconds:
        time.sleep(min(call.pause_seconds, max(0.0, call.deadline - time.monotonic())))


def _is_first_try(cause: str, call: _Call) -> bool:
    """Whether the call has not tried to remove this cause before; marks it as tried."""
    is_first = cause not in call.tried_causes
    call.tried_causes.add(cause)
    return is_first


def _no_response(error: OSError, call: _Call) -> NoResponse:
    reason = one_line(error)
    if isinstance(error, Overdue):
        reason += f" of {call.limit_seconds:,.1f} s"
    if call.broken_bodies:
        times = "once" if call.broken_bodies == 1 else f"{call.broken_bodies} times"
        return NoResponse(f"the response body broke off {times}; the last error was: {reason}")
    return NoResponse(f"{reason} ({call.attempt} attempts)" if call.attempt > 1 else reason)


def _note(call: _Call, event: str, reaction: str, level: int = log.INFO) -> None:
    log.note(level, "%s of %s: %s; %s", call.key, call.route.endpoint.host, event, reaction)


RETRIES_PER_SUCCESS = 0.1  # few, so that retries cannot multiply the load of an outage
MOST_RETRIES = 64  # in a full budget: one for each connection, since all may break when a server restarts
RETRIES_PER_SECOND = 1.0  # so that a process with nothing but failures notices the end of an outage


class RetryBudget:
    """The retries that are left; successes and time add some. Threads share it without a lock; a race miscounts one."""

    def __init__(self, clock: Callable[[], float], most: float = MOST_RETRIES) -> None:
        self._most = self._retries = most
        self._clock = clock
        self._refilled_at = clock()

    def take(self) -> bool:
        """Take one retry from the budget; returns whether there was one."""
        can_pay = self.can_pay()
        if can_pay:
            self._retries -= 1
        return can_pay

    def can_pay(self) -> bool:
        """Whether `take` would succeed now."""
        now = self._clock()
        self._retries = min(self._most, self._retries + (now - self._refilled_at) * RETRIES_PER_SECOND)
        self._refilled_at = now
        return self._retries >= 1

    def add_success(self) -> None:
        """Add `RETRIES_PER_SUCCESS`, after a request that succeeded."""
        if self._retries < self._most:
            self._retries = min(self._most, self._retries + RETRIES_PER_SUCCESS)


def next_pause(last_seconds: float) -> float:
    """A random pause before the next attempt, of 0.05 to 5 seconds. `last_seconds`: the last pause, or 0.

    This is decorrelated jitter: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015.
    """
    longest_seconds = max(last_seconds, _SHORTEST_PAUSE_SECONDS) * 3
    return min(_LONGEST_PAUSE_SECONDS, uniform(_SHORTEST_PAUSE_SECONDS, longest_seconds))
