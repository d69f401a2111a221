"""Read the failures that endpoints report, as JSON of any shape, and make the matching `LLMError`.

`find_error` looks for a failure in an answer, `read_error` reads the body of one, `make_error` makes the exception.
"""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from rlm.context.excerpt import make_printable
from rlm.errors import LLMError, PromptTooLong, RateLimited, ReplyRefused
from rlm.models.too_long import sizes_of_too_long

WRONG_URL = "is base_url right? Most end in /v1"  # advice for an answer that does not come from an API
_DEEPEST = 8  # the deepest nesting of errors that is read
# Codes of errors that come without a status of their own: in a stream, or in a body with status 200.
_STATUS_OF_CODE = {
    "rate_limit": 429, "too_many_requests": 429, "throttl": 429, "resource_exhausted": 429, "quota": 429,
    "overloaded": 529, "unavailable": 503, "server_error": 500, "api_error": 500, "internal": 500, "timeout": 504,
    "upstream": 502, "bad_gateway": 502, "engine": 500, "network": 502, "deadline": 504,
    "authentication": 401, "unauthenticated": 401, "api_key": 401, "permission": 403, "not_found": 404,
    "billing": 402, "invalid": 400, "bad_request": 400, "unsupported": 400,
}  # fmt: skip
_STATUS_OF_WORDS = {
    429: re.compile(r"rate[ -]?limit|too many (?:concurrent )?requests|\bthrottl|resource exhausted", re.IGNORECASE),
    503: re.compile(
        r"\boverloaded\b|over capacity|\bupstream (?:busy|error)|(?:temporarily|service) unavailable"
        r"|(?:server|service|model|system) (?:is )?(?:currently |too )?busy|try again (?:later|in )",
        re.IGNORECASE,
    ),
}
"""Words of errors without a known code, such as `{"error": "rate limit exceeded"}` with status 200."""

_DECLINED = (  # codes and words of a filter that held back the request or the reply
    r"content_?filter|content_policy|content_management|responsible_?ai|data_inspection_failed|moderation_blocked"
    r"|content exists risk|invalid_prompt|prohibited_content|\bmoderation\b|flagged (?:as|for|by)|\bwas flagged\b"
)
_SPENT = ("insufficient_quota", "billing_hard_limit", "credit_balance", "insufficient_balance")
_MESSAGE_FIELDS = ("message", "msg", "detail", "error_description", "error_msg", "error_message", "errorMessage",
                   "Message", "title", "reason")  # fmt: skip
_REPLY_FIELDS = frozenset(("choices", "output", "content", "id", "object", "usage", "type"))
_CODE_FIELDS = ("code", "Code", "error_code", "type", "errorType", "__type", "status")
_STATUS_FIELDS = ("status_code", "statusCode", "http_status")

_PART = r"(\d{1,9}(?:\.\d{1,9})?) ?(milliseconds?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)"
_DURATION = re.compile(rf"(?:{_PART}[, ]*(?:and )?){{1,4}}", re.IGNORECASE)
_WAIT_WORDS = re.compile(  # such as "try again in 2m30s"
    rf"(?:(?:try|retry)(?:ing)?(?: again| your request)? (?:in|after)|retry[-_ ]?(?:after|delay)\W{{1,4}}"
    rf"|resets? (?:in|after)|wait(?: for)?|available in) ?(?:about |another |at least )?"
    rf"(?P<wait>{_DURATION.pattern})(?![a-z])",
    re.IGNORECASE,
)
_RESET_HEADER = re.compile(r"(?:x-|anthropic-)?ratelimit-(?:.+-)?reset(?:-.+)?", re.IGNORECASE)
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}  # of a unit, by its first letter
_EPOCH = 1e9  # a number this large is a time, in seconds since 1970; from 1,000 times this on, in milliseconds


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """A failure, as an endpoint describes it."""

    message: str  # one line
    code: str = ""  # the error's code and type, in lower case, separated by spaces; empty if it has none
    status: int | None = None  # the HTTP status in the body
    param: str = ""  # the field of the request at fault; empty if the body names none
    sizes: tuple[int | None, int | None] = (None, None)  # tokens of prompt and window, if the body has fields for them
    retry_after: object = None  # the seconds to wait, as the body gives them


def find_error(value: object) -> ErrorReport | None:
    """The failure that a JSON value with status 200 reports; None if it reports none."""
    if isinstance(value, list):
        return next((result for item in value[:1] if (result := find_error(item))), None)
    if not isinstance(value, dict):
        return None
    if value.get("error") or value.get("errors") or value.get("Error"):
        return read_error(value)
    if value.get("type") == "error" or value.get("object") == "error" or value.get("success") is False:
        return read_error(value)
    # Bodies of other providers, recognised by fields that a reply never lacks.
    base = value.get("base_resp")
    if (code := get(base, "status_code")) not in (0, None):
        return ErrorReport(one_line(get(base, "status_msg") or base), str(code))
    if _REPLY_FIELDS.isdisjoint(value):
        return read_error(value) if any(value.get(name) for name in _MESSAGE_FIELDS) else None
    # What has the fields of a chat completion, but no choice and no usage, may say why.
    if value.get("choices") or value.get("output") or value.get("content") or value.get("usage") or value.get("type"):
        return None
    has_message = any(isinstance(value.get(name), str) and value[name] for name in _MESSAGE_FIELDS)
    return read_error(value) if has_message and value.get("code") not in (0, "0", 200, "200") else None


def read_error(value: object, depth: int = 0) -> ErrorReport:
    """The failure in the body of an error: an object under `error`, a text, a list, or anything else."""
    if isinstance(value, list) and value and depth < _DEEPEST:
        reports = [read_error(item, depth + 1) for item in value[:3]]
        return replace(reports[0], message=one_line("; ".join(report.message for report in reports)))
    if not isinstance(value, dict) or depth >= _DEEPEST:
        return ErrorReport(one_line(value if value not in (None, "", [], {}) else "an error without words"))
    inner = _parsed(value.get("error") or value.get("errors") or value.get("Error") or value.get("detail"))
    if not isinstance(inner, (dict, list)):
        return _read_object(value, inner, depth)
    report, code = read_error(inner, depth + 1), value.get("code") or value.get("type")
    if report.code or not isinstance(code, (str, int)) or code == "error":
        return report
    return replace(report, code=str(code).lower(), status=report.status or _status(code))


def read_error_event(value: object) -> ErrorReport:
    """The failure in an event named `error`, JSON or a text. One without a known status has broken off the stream."""
    report = find_error(value) or find_error({"error": value}) or read_error(value or None)
    is_known = report.code or report.status or _guess_status(report)
    return report if is_known else replace(report, status=502)


def _read_object(value: Mapping[str, Any], inner: object, depth: int) -> ErrorReport:
    """The failure in the fields of an object. `inner`: its field `error`, a text, a number or None."""
    text = inner if isinstance(inner, str) else None
    words = _words(value, depth) or text or value
    codes = (
        *map(value.get, _CODE_FIELDS), inner if type(inner) is int else None,
        text if text and (words is not text or text.isidentifier()) else None,
        get(value, "innererror", "code"), get(value, "metadata", "error_type"),
    )  # fmt: skip
    named = [str(code).lower() for code in codes if isinstance(code, (str, int)) and code not in ("", "error")]
    statuses = map(_status, (*codes, *map(value.get, _STATUS_FIELDS)))
    location = ".".join(str(item) for item in _items(value.get("loc")) if item != "body")  # of FastAPI and pydantic
    field = value.get("param") or value.get("parameter") or location
    delays = (get(detail, "retryDelay") for detail in _items(value.get("details")))  # of Google
    wait = get(value, "metadata", "retry_after") or value.get("retry_after") or next(filter(None, delays), None)
    return ErrorReport(
        one_line(f"{location}: {words}" if location else words), " ".join(named), next(filter(None, statuses), None),
        field if isinstance(field, str) else "", (_number(value.get("n_prompt_tokens")), _number(value.get("n_ctx"))),
        wait or _wait_of_router(value),
    )  # fmt: skip


class EndpointError(Exception):
    """An endpoint reported a failure. Raised inside a backend; `SDKModel` turns it into an `LLMError`."""

    def __init__(
        self, report: ErrorReport, status: int | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(report.message)
        self.report, self.status, self.headers = report, status, headers


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The model and endpoint of a call, for error messages."""

    model: str
    where: object  # the URL of the endpoint, or the name of a provider

    def __str__(self) -> str:
        location = str(self.where)
        return f"model {self.model!r} {'at' if '://' in location else 'by' if ' ' in location else 'of'} {location}"


def make_error(
    report: ErrorReport, target: CallTarget, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> LLMError:
    """The error for a failure; its message is one line. The status decides whether the error is transient. For a
    failure in a stream or in a body with status 200, the status follows from the code or the words of the report."""
    status = status or report.status or _guess_status(report)
    if status == 400 and "throttl" in report.code:  # AWS
        status = 429
    line = f"{target}: {report.message}"
    if (sizes := sizes_of_too_long(report.message, report.code, status)) is not None:
        tokens, window = (own or read for own, read in zip(report.sizes, sizes, strict=True))
        return PromptTooLong(line, tokens=tokens, window_tokens=window)
    if status in (None, 400, 403, 422, 451) and re.search(_DECLINED, f"{report.code} {report.message}", re.IGNORECASE):
        return ReplyRefused(line, reason="content_filter")
    if status in (401, 403):
        return LLMError(f"{target.where} refuses this API key: {report.message}")
    if status in (404, 405):
        if "model" in report.message.lower():
            return LLMError(f"no model {target.model!r} at {target.where}: {report.message}")
        return LLMError(f"no API at {target.where}: {report.message} ({WRONG_URL})")
    if status == 429:
        line = f"{target.where} is rate limited, or its quota is spent: {report.message}"
        if any(item in report.code for item in _SPENT):
            return LLMError(line)
        wait = retry_after_seconds(headers or {}, report.retry_after, report.message)
        return RateLimited(line, retry_after_seconds=wait)
    return LLMError(line, transient=status is not None and (status in (408, 409, 425) or status >= 500))


def retry_after_seconds(headers: Mapping[str, str], field: object = None, message: str = "") -> float | None:
    """The seconds to wait, by the headers, by a `field` of the body or by the message; None if none says so. A wait for
    the next call (`Retry-After`) goes before the resets of all limits (`x-ratelimit-reset-*`), of which those of spent
    limits count, or all if the headers do not say which are spent."""
    milliseconds = headers.get("retry-after-ms")
    for text in (f"{milliseconds}ms" if milliseconds else None, headers.get("retry-after"), field):
        seconds = None if text is None else read_wait(str(text))
        if seconds is not None:
            return seconds
    if words := _WAIT_WORDS.search(message):
        return read_wait(words["wait"])
    if spent := re.search(r"\b(?:t|reset)=(\d+)", headers.get("ratelimit", "")):  # the header of the IETF's draft
        return float(spent[1])
    of_spent: list[float] = []
    of_others: list[float] = []
    for name, value in headers.items():
        seconds = read_wait(value) if _RESET_HEADER.fullmatch(name) else None
        if seconds is not None:
            remaining = headers.get(name.lower().replace("reset", "remaining"), "")
            waits = of_spent if remaining.strip() in ("0", "0.0") else of_others
            waits.append(seconds)
    return max(of_spent or of_others, default=None)


def read_wait(text: str) -> float | None:
    """The seconds in a number, a duration (`6m0s`, `2 minutes`), a date or a time since 1970; None for other text."""
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if number >= _EPOCH:
        number = (number if number < 1000 * _EPOCH else number / 1000) - time.time()
    if not math.isnan(number):
        return max(0.0, number)
    if _DURATION.fullmatch(text):
        return sum(
            float(count) * (0.001 if unit.lower().startswith(("ms", "mil")) else _SECONDS[unit[0].lower()])
            for count, unit in re.findall(_PART, text, re.IGNORECASE)
        )
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        from email.utils import parsedate_to_datetime  # 8 ms, for a date of HTTP

        try:
            when = parsedate_to_datetime(text)
        except ValueError:
            return None
    return max(0.0, (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() - time.time())


def get(value: object, *names: str) -> Any:
    """The value at a path of names in nested objects; None if the path breaks off."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def one_line(message: object) -> str:
    """A message of an endpoint as one line of at most 300 characters."""
    return make_printable(" ".join(str(message).split())[:300], terminal=False)


def _words(value: Mapping[str, Any], depth: int) -> object:
    """The message of an error; for a router's error, with the message of the provider."""
    words: object = None
    for name in _MESSAGE_FIELDS:
        if (message := value.get(name)) not in (None, "", [], {}):
            words = read_error(message, depth + 1).message if isinstance(message, (dict, list)) else message
            break
    if (raw := get(value, "metadata", "raw")) in (None, "", [], {}):
        return words
    message = read_error(_parsed(raw), depth + 1).message
    return f"{words}: {message}" if words else message


def _wait_of_router(value: Mapping[str, Any]) -> float | None:
    """The wait by the headers of the provider that the error of a router holds."""
    headers = get(value, "metadata", "headers")
    if not isinstance(headers, dict):
        return None
    return retry_after_seconds({name.lower(): str(headers[name]) for name in headers})


def _parsed(value: Any) -> Any:
    """The object or list in a text of JSON; any other value as it is."""
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except (ValueError, RecursionError):
        return value


def _status(code: object) -> int | None:
    if isinstance(code, str) and code.strip().isascii() and code.strip().isdigit() and len(code) < 6:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else None


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _number(value: object) -> int | None:
    return value if type(value) is int and 0 < value < 10**9 else None


def _guess_status(report: ErrorReport) -> int | None:
    """The status for the code of a report; without a known code, the status for its words."""
    by_code = next((status for part, status in _STATUS_OF_CODE.items() if part in report.code), None)
    if by_code is not None:
        return by_code
    return next((status for status, words in _STATUS_OF_WORDS.items() if words.search(report.message)), None)
