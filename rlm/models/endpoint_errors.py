"""Read the failures that endpoints report, in JSON of any shape, and make the matching `LLMError`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rlm.context.excerpt import make_printable
from rlm.errors import LLMError, PromptTooLong, RateLimited, ReplyRefused
from rlm.models.lm import sum_tokens
from rlm.models.retry_wait import retry_after_seconds
from rlm.models.too_long import read_too_long

WRONG_URL = "is base_url right? Most end in /v1"  # advice for an answer that does not come from an API
# Parts of the codes of errors that come without a status: in a stream, or in a body with status 200.
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

_FILTERED = (  # codes and words of a filter, such as "content_filter" and "your prompt was flagged by moderation"
    r"content_?filter|content_policy|content_management|responsible_?ai|data_inspection_failed|moderation_blocked"
    r"|content exists risk|invalid_prompt|prohibited_content|\bmoderation\b|flagged (?:as|for|by)|\bwas flagged\b"
)
_QUOTA_SPENT = ("insufficient_quota", "billing_hard_limit", "credit_balance", "insufficient_balance")
_MESSAGE_FIELDS = ("message", "msg", "detail", "error_description", "error_msg", "error_message", "errorMessage",
                   "Message", "title", "reason")  # fmt: skip
_REPLY_FIELDS = frozenset(("choices", "output", "content", "id", "object", "usage", "type"))  # a reply has one of them
_EMPTY: tuple[object, ...] = (None, "", [], {})  # values of a field that holds no message
_CODE_FIELDS = ("code", "Code", "error_code", "type", "errorType", "__type", "status")
_STATUS_FIELDS = ("status_code", "statusCode", "http_status")


@dataclass(frozen=True, slots=True)
class ErrorReport:
    """A failure, as an endpoint describes it."""

    message: str  # one line
    code: str = ""  # the error's code and type, in lower case, separated by spaces; empty if it has none
    status: int | None = None  # the HTTP status in the body
    param: str = ""  # the field of the request at fault; empty if the body names none
    tokens: int | None = None  # the size of a prompt that is too long, if the body has a field for it
    window_tokens: int | None = None  # the window of the model, if the body has a field for it
    retry_after: object = None  # the time to wait, as the body gives it: a number, a duration or a date


def find_error(value: object) -> ErrorReport | None:
    """The failure that a JSON value with status 200 reports; None if it reports none."""
    if isinstance(value, list):
        return find_error(value[0]) if value else None
    if not isinstance(value, dict):
        return None
    has_error = value.get("error") or value.get("errors") or value.get("Error") or value.get("success") is False
    if has_error or "error" in (value.get("type"), value.get("object")):
        return read_error(value)
    # Bodies of other providers, recognised by fields that a reply never lacks.
    outcome = value.get("base_resp")  # of MiniMax, in replies too: code 0
    if (code := get(outcome, "status_code")) not in (0, None):
        return ErrorReport(one_line(get(outcome, "status_msg") or outcome), str(code))
    if _REPLY_FIELDS.isdisjoint(value):
        return read_error(value) if any(value.get(name) for name in _MESSAGE_FIELDS) else None
    # What has the fields of a chat completion, but no choice and no usage, may say why.
    if any(value.get(name) for name in ("choices", "output", "content", "usage", "type")):
        return None
    has_message = any(isinstance(value.get(name), str) and value[name] for name in _MESSAGE_FIELDS)
    return read_error(value) if has_message and value.get("code") not in (0, "0", 200, "200") else None


def read_error(value: object) -> ErrorReport:
    """The failure that the body of an error describes: an object, a list of them, a text, or any other JSON value."""
    if isinstance(value, list) and value:
        reports = [read_error(item) for item in value[:3]]
        return replace(reports[0], message=one_line("; ".join(report.message for report in reports)))
    if not isinstance(value, dict):
        return ErrorReport(one_line(value if value not in _EMPTY else "an error without a message"))
    inner = _parse_json(value.get("error") or value.get("errors") or value.get("Error") or value.get("detail"))
    if not isinstance(inner, (dict, list)):
        return _read_fields(value, inner)
    report = read_error(inner)
    code = value.get("code") or value.get("type")
    if report.code or not isinstance(code, (str, int)) or code == "error":
        return report
    return replace(report, code=str(code).lower(), status=report.status or _status_of(code))


def read_error_event(value: object) -> ErrorReport:
    """The failure in an event named `error`, a JSON value or a text. Its status is 502 if none is known."""
    report = find_error(value) or find_error({"error": value}) or read_error(value or None)
    is_known = report.code or report.status or _guess_status(report)
    return report if is_known else replace(report, status=502)


def _read_fields(value: Mapping[str, Any], inner: object) -> ErrorReport:
    """The failure in the fields of an object. `inner`: its field `error`, a text, a number or None."""
    text = inner if isinstance(inner, str) else None
    message = _read_message(value) or text or value
    location = ".".join(str(item) for item in _items(value.get("loc")) if item != "body")  # of FastAPI and pydantic
    param = value.get("param") or value.get("parameter") or location
    codes = [*map(value.get, _CODE_FIELDS), get(value, "innererror", "code"), get(value, "metadata", "error_type")]
    is_code = type(inner) is int or (text and (message is not text or text.isidentifier()))
    if is_code:  # the field `error` holds a code, not the message
        codes.insert(len(_CODE_FIELDS), inner)
    statuses = map(_status_of, (*codes, *map(value.get, _STATUS_FIELDS)))
    return ErrorReport(
        one_line(f"{location}: {message}" if location else message),
        " ".join(str(code).lower() for code in codes if isinstance(code, (str, int)) and code not in ("", "error")),
        next(filter(None, statuses), None), param if isinstance(param, str) else "",
        tokens=sum_tokens(value.get("n_prompt_tokens")) or None, window_tokens=sum_tokens(value.get("n_ctx")) or None,
        retry_after=_read_retry_after(value),
    )  # fmt: skip


def _read_retry_after(value: Mapping[str, Any]) -> object:
    """The time to wait that an error gives, in a field, its provider's headers or Google's details; None without."""
    delays = (get(detail, "retryDelay") for detail in _items(value.get("details")))
    wait = get(value, "metadata", "retry_after") or value.get("retry_after") or next(filter(None, delays), None)
    headers = get(value, "metadata", "headers")
    if wait or not isinstance(headers, dict):
        return wait or None
    return retry_after_seconds({name.lower(): str(headers[name]) for name in headers})


@dataclass(eq=False)
class EndpointError(Exception):
    """An endpoint reported a failure. Raised inside a backend; `SDKModel` turns it into an `LLMError`."""

    report: ErrorReport
    status: int | None = None  # of the answer; None in a stream
    headers: Mapping[str, str] | None = None  # of the answer; None in a stream


@dataclass(frozen=True, slots=True)
class CallTarget:
    """The model and endpoint of a call, for error messages."""

    model: str
    endpoint: object  # its URL, or the name of a provider

    def __str__(self) -> str:
        return f"model {self.model!r} {'at' if '://' in str(self.endpoint) else 'of'} {self.endpoint}"


def make_error(
    report: ErrorReport, target: CallTarget, *, status: int | None = None, headers: Mapping[str, str] | None = None
) -> LLMError:
    """The error for a failure; its message is one line. `status` and `headers` are those of the answer. Without a
    status, as in a stream, the code or the words of the report give it. It decides whether the error is transient."""
    status = status or report.status or _guess_status(report)
    if status == 400 and "throttl" in report.code:  # AWS
        status = 429
    line = f"{target}: {report.message}"
    if sizes := read_too_long(report.message, report.code, status):
        window_tokens = report.window_tokens or sizes.window_tokens
        return PromptTooLong(line, tokens=report.tokens or sizes.tokens, window_tokens=window_tokens)
    if status in (None, 400, 403, 422, 451) and re.search(_FILTERED, f"{report.code} {report.message}", re.IGNORECASE):
        return ReplyRefused(line, reason="content_filter")
    if status in (401, 403):
        return LLMError(f"{target.endpoint} refuses this API key: {report.message}")
    if status in (404, 405):
        if "model" in report.message.lower():
            return LLMError(f"no model {target.model!r} at {target.endpoint}: {report.message}")
        return LLMError(f"no API at {target.endpoint}: {report.message} ({WRONG_URL})")
    if status == 429:
        line = f"{target.endpoint} is rate limited, or its quota is spent: {report.message}"
        if any(item in report.code for item in _QUOTA_SPENT):
            return LLMError(line)
        wait = retry_after_seconds(headers or {}, report.retry_after, report.message)
        return RateLimited(line, retry_after_seconds=wait)
    return LLMError(line, transient=status is not None and (status in (408, 409, 425) or status >= 500))


def get(value: object, *names: str) -> Any:
    """The value at a path of names in nested objects; None if the path breaks off."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def one_line(message: object) -> str:
    """A message of an endpoint as one line of at most 300 characters."""
    return make_printable(" ".join(str(message).split())[:300], terminal=False)


def _read_message(value: Mapping[str, Any]) -> object:
    """The message of an error; for a router, its own message and then that of its provider."""
    message = next((value[name] for name in _MESSAGE_FIELDS if value.get(name) not in _EMPTY), None)
    if isinstance(message, (dict, list)):
        message = read_error(message).message
    if (raw := get(value, "metadata", "raw")) in _EMPTY:
        return message
    of_provider = read_error(_parse_json(raw)).message
    return f"{message}: {of_provider}" if message else of_provider


def _parse_json(value: Any) -> Any:
    """The object or list that a JSON text holds; any other value unchanged."""
    try:
        return json.loads(value) if isinstance(value, str) and value.lstrip()[:1] in ("{", "[") else value
    except (ValueError, RecursionError):
        return value


def _status_of(code: object) -> int | None:
    """The HTTP status in a field such as 429 or "429"; None for anything else."""
    if isinstance(code, str) and code.strip().isascii() and code.strip().isdigit() and len(code) < 6:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code < 600 else None


def _items(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _guess_status(report: ErrorReport) -> int | None:
    """The status for the code of a report, else for its words; None if neither is known."""
    by_code = next((status for part, status in _STATUS_OF_CODE.items() if part in report.code), None)
    if by_code is not None:
        return by_code
    return next((status for status, words in _STATUS_OF_WORDS.items() if words.search(report.message)), None)
