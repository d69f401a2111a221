"""Send a GET: sign it, receive the body in place, and request the missing rest after a fault.

| event | reaction |
|---|---|
| the server closed a pooled connection | send again at once, on a new connection |
| no byte, or too few, arrive within the timeout | request the rest at once, on a new connection to another address |
| the connection breaks or cannot be opened | request the rest after a pause |
| 408, 429, 500, 502, 503, 504, or an error in a 200 | send again after a pause |
| 301, 302, 303, 307, 308 within the endpoint's domain; 301 or 400 that names a region | send again there, once each |
| expired token; a clock that differs from the server's | send again with new credentials or its clock, once each |
| any other response | raise `ErrorResponse`, which the store translates |

All GETs of a client share a budget of retries. When it is empty, the first failure is final, and the client waits
longer for a silent server. A retry is free if the exchange received 16 KiB before it failed, so a read over an
unreliable line continues until the deadline. All of this runs in the thread of the caller.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Mapping
from typing import Protocol
from urllib.parse import quote

from monocontext.errors import MonocontextError
from monocontext.records import dataclass, field
from monocontext.stores import log
from monocontext.stores.http.connection import (
    Address,
    BadReply,
    Body,
    BodyCut,
    Connection,
    ExchangeTimer,
    Overdue,
    Pace,
    ResponseHead,
    request_head,
)
from monocontext.stores.http.pool import Pool
from monocontext.stores.http.route import Credentials, ForeignRedirect, Origin, Route, redirected
from monocontext.stores.protocol import one_line, uniform

DEADLINE_SECONDS = 60.0
"""The time limit of one call with all its retries."""
_SECONDS_PER_BYTE = 1e-6
"""The time that each requested byte adds to the limit, for slow lines: 1 s for each MB."""
_PROGRESS_BYTES = 16 << 10
"""After an exchange of this size a retry is free: it requests only the rest, so it does not multiply the load."""
SHARE = 0.1
"""The retries that each success adds to the budget. As they are few, retries cannot multiply the load of an outage."""
FLOOR = 64
"""The retries in a full budget: when a server restarts, all connections may break at once."""
REFILL_PER_SECOND = 1.0
"""The retries that each second adds, so that a process with nothing but failures notices the end of an outage."""
_SHORTEST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 5.0
_HEADERS = {"user-agent": "monocontext", "accept-encoding": "identity"}
MAX_ERROR_BYTES = 64 << 10
"""The most that is read of the body of an error. Errors of S3 have a few hundred bytes."""
_TRANSIENT_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_TRANSIENT_CODE = frozenset(
    {"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "ThrottlingException"}
)
_THROTTLING_STATUS = frozenset({429, 503})
_THROTTLING_CODE = frozenset({"RequestLimitExceeded", "ServiceUnavailable", "SlowDown", "ThrottlingException"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_SKEWED = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
OTHER_REGION = frozenset({"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"})
REDIRECTS = frozenset({301, 302, 303, 307, 308})

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH_DAYS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
_DATE = rf"[A-Z][a-z]{{2}}, (\d\d) ({'|'.join(_MONTHS)}) ([12]\d{{3}}) ([01]\d|2[0-3]):([0-5]\d):([0-5]\d) GMT"
_LEAP_DAYS_BEFORE_1970 = 477
"""Since the year 1 of the Gregorian calendar."""
_ENTITIES = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}
"""The entities of XML. The other references are numbers."""


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


class NoAnswer(OSError):
    """No complete response arrived, in spite of retries."""


@dataclass(slots=True)
class _Call:
    """The state of one call of `Client.get`."""

    key: str
    route: Route
    until: float
    """The deadline, on the monotonic clock."""
    limit_seconds: float
    """The time from the beginning of the call to its deadline."""
    target: str = ""
    """The path and query, percent-encoded; empty until the first request on this route."""
    repaired: set[str] = field(default_factory=set)
    """The causes of errors that were removed, each at most once."""
    silences: int = 0
    """The number of timeouts since the last progress."""
    cuts: int = 0
    """The number of bodies that broke off."""
    signed_by: Credentials | None = None
    """The credentials of the last request."""
    avoid: Address | None = None
    """The address at which the last exchange failed."""
    in_body: bool = False
    """Whether the last exchange reached a body that answers the request."""
    read_bytes: int = 0
    """The number of bytes of that body that arrived."""


class Client:
    """Sends GETs to one origin. Safe for use by many threads, and after a fork; starts no thread."""

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
        self.budget = RetryBudget(time.monotonic)
        self.pace = Pace(silence_seconds)
        self._origin, self._attempts = origin, attempts
        self._silence_seconds, self._deadline_seconds = silence_seconds, deadline_seconds
        self._wall_clock = wall_clock
        self._server_ahead_seconds = 0.0

    def __repr__(self) -> str:
        return f"<Client {self.pool!r}, {self.budget!r}, timeout {self.pace.seconds:.1f} s>"

    def get(self, key: str, sink: Sink, expected_bytes: int = 0) -> None:
        """Read the object `key`, or the range in the headers of `sink`, into `sink` (1 GET, and 1 more for each fault).

        `expected_bytes`: the length of the answer as far as it is known; it extends the deadline. Raises
        `ErrorResponse`, `NoAnswer`, errors of `sink`, and the origin's error for missing credentials.
        """
        route = self._origin.route
        limit_seconds = self._deadline_seconds + expected_bytes * _SECONDS_PER_BYTE
        call = _Call(key, route, time.monotonic() + limit_seconds, limit_seconds)
        attempt, pause = 1, 0.0
        while True:
            try:
                self._exchange(call, sink, is_last=attempt >= self._attempts)
            except MonocontextError:  # some are also an OSError
                raise
            except ErrorResponse as response:
                if response.is_throttling:
                    sink.refusals += 1
                if self._repair(response, call):
                    _note(call, f"HTTP {response.status} {response.code}", "sent again, its cause removed")
                    continue
                if not response.is_transient or not self._may_retry(attempt, call):
                    raise
                pause = next_pause(pause, uniform)
                _note(call, f"HTTP {response.status} {response.code}", f"sent again in {pause:.2f} s")
            except OSError as error:
                if call.in_body and call.read_bytes >= _PROGRESS_BYTES:  # this retry is free
                    attempt, pause, call.silences = 0, 0.0, 0
                if not _is_transient(error) or not self._may_retry(attempt, call):
                    raise _no_answer(error, call, attempt) from error
                call.silences += isinstance(error, TimeoutError)
                pause = 0.0 if isinstance(error, TimeoutError) else next_pause(pause, uniform)
                _note(call, one_line(error), f"{'resumed' if call.in_body else 'sent again'} in {pause:.2f} s")
            else:
                self.budget.add_success()
                return
            attempt += 1
            if pause:
                time.sleep(min(pause, max(0.0, call.until - time.monotonic())))

    def close(self) -> None:
        """Close idle connections. Idempotent; a later `get` opens new ones."""
        self.pool.close()

    def _may_retry(self, attempt: int, call: _Call) -> bool:
        """Whether another attempt is allowed; takes it from the budget unless it is free."""
        may = attempt < self._attempts and time.monotonic() < call.until
        return may and (attempt == 0 or self.budget.take())

    def _exchange(self, call: _Call, sink: Sink, is_last: bool) -> None:
        """Send one request and receive its response. Afterwards the connection is in the pool or closed."""
        call.in_body, call.read_bytes = False, 0
        is_patient = is_last or not self.budget.can_pay()
        seconds = self._silence_seconds if is_patient else self.pace.for_attempt(call.silences)
        pace = None if is_patient else self.pace
        timer = ExchangeTimer(seconds, self._silence_seconds, call.until, time.monotonic, self.budget.can_pay, pace)
        connection, head, body = self._send(call, sink, timer)
        error_response: ErrorResponse | None = None
        try:
            # Some gateways begin to respond before they know that they will fail: their 200 is XML without an ETag.
            is_disguised = "etag" not in head.headers and "xml" in head.headers.get("content-type", "")
            if head.status != 206 and (head.status != 200 or is_disguised):
                error_response = ErrorResponse(head, body.read(MAX_ERROR_BYTES))
            else:
                sink.receive(head, body)
                timer.finish()
        except BaseException as error:
            call.avoid = connection.address
            if body.is_accepted:
                call.in_body, call.read_bytes = True, body.read_bytes
                call.cuts += isinstance(error, (BodyCut, BadReply, ConnectionError))
            self.pool.discard(connection)
            raise
        if body.leaves_connection_usable:
            self.pool.give_back(connection)
        else:
            self.pool.discard(connection)
        if error_response:
            raise error_response

    def _send(self, call: _Call, sink: Sink, timer: ExchangeTimer) -> tuple[Connection, ResponseHead, Body]:
        """Send the request and read the head. If the server had closed the pooled connection, use a new one."""
        request = self._request(call, sink)
        fresh = call.avoid is not None
        while True:
            connection = self.pool.borrow(call.route.endpoint, timer, fresh=fresh, avoid=call.avoid)
            try:
                began = time.monotonic()
                connection.send(request, timer)
                head = connection.read_head()
                self.pace.learn(time.monotonic() - began)
                return connection, head, Body(connection, head)
            except BaseException as error:
                self.pool.discard(connection)
                call.avoid, fresh = connection.address, True
                if not connection.exchanges or isinstance(error, TimeoutError) or not isinstance(error, OSError):
                    raise
                _note(call, "the server closed an idle connection", "sent again", log.DEBUG)

    def _request(self, call: _Call, sink: Sink) -> bytes:
        route = call.route
        endpoint, headers = route.endpoint, dict(sink.headers())
        host = endpoint.host_header
        target = call.target = call.target or route.path + quote(call.key, safe="/-_.~")
        if route.signed:
            now = self._wall_clock() + self._server_ahead_seconds
            headers, call.signed_by = self._origin.sign(route, host, target, headers, now)
        else:
            headers["host"] = host
        if endpoint.proxy and endpoint.scheme == "http":
            target = f"http://{host}{target}"
            if endpoint.proxy.authorization:
                headers["proxy-authorization"] = endpoint.proxy.authorization
        return request_head("GET", target, headers | _HEADERS)

    def _repair(self, response: ErrorResponse, call: _Call) -> bool:
        """Remove the cause of an error response; returns whether the request should be sent again."""
        if response.is_expired and call.signed_by and _is_first_repair("credentials", call):
            self._origin.renew(call.signed_by)
            return True
        if response.is_skewed and _is_first_repair("clock", call):
            server_clock = response.server_clock
            if server_clock is not None:
                self._server_ahead_seconds = server_clock - self._wall_clock()
                return True
        if response.region and _is_first_repair("region", call):
            new_route = self._origin.move(response.region)
            if new_route is None or new_route == call.route:
                return False
            call.route, call.target = new_route, ""
            return True
        if response.location and _is_first_repair("location", call):
            try:
                call.route, call.target = redirected(call.route, call.target, response.location)
            except ForeignRedirect as foreign:
                response.elsewhere = str(foreign)
                return False
            return True
        return False


def _is_first_repair(repair: str, call: _Call) -> bool:
    is_new = repair not in call.repaired
    call.repaired.add(repair)
    return is_new


def _is_transient(error: OSError) -> bool:
    # The error for a certificate that cannot be verified is also a ValueError, and a retry does not help.
    return not isinstance(error, (Overdue, ValueError))


def _no_answer(error: OSError, call: _Call, attempts: int) -> NoAnswer:
    reason = one_line(error)
    if isinstance(error, Overdue):
        reason += f" of {call.limit_seconds:,.1f} s"
    if call.cuts:
        times = "once" if call.cuts == 1 else f"{call.cuts} times"
        return NoAnswer(f"the response body broke off {times}; the last error was: {reason}")
    return NoAnswer(f"{reason} ({attempts} attempts)" if attempts > 1 else reason)


def _note(call: _Call, event: str, reaction: str, level: int = log.INFO) -> None:
    log.note(level, "%s of %s: %s; %s", call.key, call.route.endpoint.host, event, reaction)


class RetryBudget:
    """A number of retries that successes and time refill. Threads share it without a lock: a race miscounts by one."""

    def __init__(self, clock: Callable[[], float], tokens: float = FLOOR) -> None:
        self._most = self._tokens = tokens
        self._clock = clock
        self._refilled_at = clock()

    def __repr__(self) -> str:
        return f"<RetryBudget {self._tokens:.1f} of {self._most:g} retries>"

    def take(self) -> bool:
        """Take one retry from the budget; returns whether there was one."""
        has_one = self.can_pay()
        if has_one:
            self._tokens -= 1
        return has_one

    def can_pay(self) -> bool:
        """Whether `take` would succeed now."""
        now = self._clock()
        self._tokens = min(self._most, self._tokens + (now - self._refilled_at) * REFILL_PER_SECOND)
        self._refilled_at = now
        return self._tokens >= 1

    def add_success(self) -> None:
        """Add `SHARE` of a retry, after a success."""
        if self._tokens < self._most:
            self._tokens = min(self._most, self._tokens + SHARE)


def next_pause(last_seconds: float, uniform: Callable[[float, float], float]) -> float:
    """Seconds to wait before the next attempt, given the last wait or 0: 50 ms to 5 s, with decorrelated jitter as in
    Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015."""
    longest = max(last_seconds, _SHORTEST_PAUSE_SECONDS) * 3
    return min(_LONGEST_PAUSE_SECONDS, uniform(_SHORTEST_PAUSE_SECONDS, longest))


# -- error responses ---------------------------------------------------------------------------------------------------


class ErrorResponse(Exception):
    """A response with an error or a redirect instead of the object."""

    def __init__(self, head: ResponseHead, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        self.status = head.status
        self.code = _element(text, "Code")
        self.message = _element(text, "Message")
        self.object_bytes = _element(text, "ActualObjectSize")
        """The length of an object that ends before the requested range; empty if the server does not send it."""
        self.head = head
        self.elsewhere = ""
        """The reason why a redirect was not followed; the client sets it."""
        self._region = head.headers.get("x-amz-bucket-region") or _element(text, "Region")
        super().__init__(f"HTTP {self.status} {self.code}: {self.message}")

    @property
    def is_transient(self) -> bool:
        """Whether the same request may succeed later. The status counts too, since the body may be anything."""
        return self.status in _TRANSIENT_STATUS or self.code in _TRANSIENT_CODE

    @property
    def is_throttling(self) -> bool:
        """Whether the server throttles. The status counts too, since some gateways send no XML."""
        return is_throttling(self.status, self.code)

    @property
    def is_expired(self) -> bool:
        return self.code in _EXPIRED

    @property
    def is_skewed(self) -> bool:
        return self.code in _SKEWED

    @property
    def server_clock(self) -> float | None:
        """The time of the response by the clock of the server, in seconds since 1970; `None` if it is missing."""
        return parse_http_date(self.head.headers.get("date")) or None

    @property
    def region(self) -> str | None:
        """The region of the bucket, if the request went to another one."""
        if self.status == 301 or self.code in OTHER_REGION:
            return self._region or None
        return None

    @property
    def location(self) -> str | None:
        """The target of a redirect, an absolute or relative URL."""
        return self.head.headers.get("location") if self.status in REDIRECTS else None


def is_throttling(status: int, code: str) -> bool:
    """Whether a response asks the client to send fewer requests."""
    return status in _THROTTLING_STATUS or code in _THROTTLING_CODE


def _element(text: str, name: str) -> str:
    """The text of an XML element in one line; empty if there is none."""
    match = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    if match is None:
        return ""
    return " ".join(re.sub(r"&(#\d{1,7}|#x[0-9a-fA-F]{1,6}|\w+);", _unescape, match[1]).split())


def _unescape(reference: re.Match[str]) -> str:
    """The character that a reference such as `&lt;` or `&#39;` stands for; any other reference stays as it is."""
    name = reference[1]
    if not name.startswith("#"):
        return _ENTITIES.get(name, reference[0])
    code = int(name[2:], 16) if name.startswith("#x") else int(name[1:])
    is_shown = code <= sys.maxunicode and (chr(code).isprintable() or chr(code).isspace())
    return chr(code) if is_shown else reference[0]


def parse_http_date(date: str | None) -> float:
    """An HTTP date in seconds since 1970; 0 for a missing or invalid date."""
    if not date:
        return 0.0
    if match := re.fullmatch(_DATE, date):
        # By hand: `datetime` takes 1 ms to import, which each process would pay for its first object.
        month = _MONTHS.index(match[2])
        day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
        is_leap_year = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        if not 1 <= day <= _MONTH_DAYS[month] + (month == 1 and is_leap_year):
            return 0.0
        leap_days = (year - 1) // 4 - (year - 1) // 100 + (year - 1) // 400 + (month > 1 and is_leap_year)
        days = (year - 1970) * 365 + leap_days - _LEAP_DAYS_BEFORE_1970 + sum(_MONTH_DAYS[:month]) + day - 1
        return days * 86_400.0 + hour * 3600 + minute * 60 + second
    from email.utils import parsedate_to_datetime  # 8 ms that dates of the usual form need not pay

    try:
        return parsedate_to_datetime(date).timestamp()
    except ValueError:
        return 0.0
