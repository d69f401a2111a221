"""Read a response to a GET that is an error or a redirect: its code and message, and whether a retry may help."""

from __future__ import annotations

import re

from monocontext.stores.http.connection import ResponseHead, parse_http_date

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
_REFERENCES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&#34;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}
"""The XML references that servers send. `&amp;` is replaced last, since `&amp;lt;` stands for `&lt;`."""


class ErrorResponse(Exception):
    """A response with an error or a redirect instead of the object."""

    def __init__(self, head: ResponseHead, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        self.status = head.status
        self.code = _element(text, "Code")
        self.message = _element(text, "Message")
        self.object_bytes = _element(text, "ActualObjectSize")
        """The length, in digits, of an object that ends before the requested range; empty if it is not sent."""
        self.is_transient = self.status in _TRANSIENT_STATUS or self.code in _TRANSIENT_CODE
        """Whether the same request may succeed later. The status counts too, since the body may be anything."""
        self.is_throttling = is_throttling(self.status, self.code)
        self.is_expired = self.code in _EXPIRED
        self.is_skewed = self.code in _SKEWED
        self.server_clock = parse_http_date(head.headers.get("date"))
        """The time of the response by the clock of the server, in seconds since 1970; 0 if it is missing."""
        is_other_region = self.status == 301 or self.code in OTHER_REGION
        region = head.headers.get("x-amz-bucket-region") or _element(text, "Region")
        self.region = region if is_other_region else ""
        """The region of the bucket, if the request went to another one; else empty."""
        self.location = head.headers.get("location") if self.status in REDIRECTS else None
        """The target of a redirect, an absolute or relative URL; `None` for other responses."""
        self.refused_redirect = ""
        """The reason why a redirect was not followed, which the client sets; else empty."""
        super().__init__(describe_error(self.status, self.code, self.message))


def describe_error(status: int, code: str, message: str) -> str:
    """An error response in one line; `code` and `message` are empty if the body was not XML."""
    return f"HTTP {status} {code}".rstrip() + (f": {message}" if message else "")


def is_throttling(status: int, code: str) -> bool:
    """Whether a response asks the client to send fewer requests."""
    return status in _THROTTLING_STATUS or code in _THROTTLING_CODE


def _element(text: str, name: str) -> str:
    """The text of an XML element in one line; empty if there is none."""
    match = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    content = match[1] if match else ""
    for reference, character in _REFERENCES.items():
        content = content.replace(reference, character)
    return " ".join(content.split())
