"""A response to a GET that is an error or a redirect: what it says, and whether the same GET may succeed later."""

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
"""The references that servers write for characters of XML; `&` is last, since `&amp;lt;` stands for `&lt;`."""


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
    content = match[1] if match else ""
    for reference, character in _REFERENCES.items():
        content = content.replace(reference, character)
    return " ".join(content.split())
