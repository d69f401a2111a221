"""What a server says instead of an object, and what can be done about it. Pure."""

from __future__ import annotations

import re
from email.utils import mktime_tz, parsedate_tz
from html import unescape

from monocontext.transport.http11 import Head

MAX_ERROR_BYTES = 64 << 10
"""Read of an error's body; S3's take a few hundred bytes."""
_PASSING_STATUS = frozenset({408, 429, 500, 502, 503, 504})
_PASSING_CODE = frozenset({"InternalError", "RequestTimeout", "ServiceUnavailable", "SlowDown", "ThrottlingException"})
_THROTTLING_STATUS = frozenset({429, 503})
_THROTTLING_CODE = frozenset({"RequestLimitExceeded", "ServiceUnavailable", "SlowDown", "ThrottlingException"})
_EXPIRED = frozenset({"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired"})
_SKEWED = frozenset({"RequestTimeTooSkewed", "RequestExpired"})
_ELSEWHERE = frozenset({"AuthorizationHeaderMalformed", "IllegalLocationConstraintException", "PermanentRedirect"})


class Refused(Exception):
    """The server answered, and not with the object."""

    def __init__(self, head: Head, body: bytes) -> None:
        text = body.decode("utf-8", "replace")
        self.status = head.status
        self.code = _element(text, "Code")
        self.message = _element(text, "Message")
        self.object_bytes = _element(text, "ActualObjectSize")
        """Of an object that ends before the range begins; empty when not said."""
        self.head = head
        self._region = head.headers.get("x-amz-bucket-region") or _element(text, "Region")
        super().__init__(f"HTTP {self.status} {self.code}: {self.message}")

    @property
    def passes(self) -> bool:
        """Whether the same request may succeed a little later. By status where there is one: bodies may be anything."""
        return self.status in _PASSING_STATUS or self.code in _PASSING_CODE

    @property
    def is_throttling(self) -> bool:
        """Whether the server wants fewer requests. By status too: the bodies of some gateways are no XML."""
        return is_throttling(self.status, self.code)

    @property
    def is_expired(self) -> bool:
        return self.code in _EXPIRED

    @property
    def is_skewed(self) -> bool:
        return self.code in _SKEWED

    @property
    def server_clock(self) -> float | None:
        """Seconds since 1970 when this was said, by the server's clock."""
        parsed = parsedate_tz(self.head.headers.get("date", ""))
        return mktime_tz(parsed) if parsed else None

    @property
    def region(self) -> str | None:
        """The region to ask in, when that is what is wrong."""
        if self.status == 301 or self.code in _ELSEWHERE:
            return self._region or None
        return None

    @property
    def location(self) -> str | None:
        """The URL to ask at this once."""
        return self.head.headers.get("location") if self.status in (302, 307, 308) else None


def is_throttling(status: int, code: str) -> bool:
    """Whether an answer asks for fewer requests."""
    return status in _THROTTLING_STATUS or code in _THROTTLING_CODE


def is_disguised(head: Head) -> bool:
    """Whether a 200 is an error in disguise: some gateways begin to answer before they know that they will fail."""
    return head.status == 200 and "etag" not in head.headers and "xml" in head.headers.get("content-type", "")


def _element(text: str, name: str) -> str:
    found = re.search(f"<{name}>(.*?)</{name}>", text, re.DOTALL)
    return " ".join(unescape(found[1]).split()) if found else ""
