"""Sign requests without a body by AWS Signature Version 4. Pure; equal to botocore's byte for byte (tested).

The key of a day is derived once: a signature costs 8 us instead of botocore's 130.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import time
from collections.abc import Mapping

from monocontext.records import dataclass, field

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()
_PLAIN = re.compile(r"[A-Za-z0-9/_.~-]*").fullmatch


@dataclass(frozen=True, slots=True)
class Credentials:
    """AWS credentials. No secret shows in a `repr`."""

    access_key: str
    secret_key: str = field(repr=False)
    token: str | None = field(default=None, repr=False)
    """Session token of temporary credentials."""


def encode_path(key: str) -> str:
    """A key as it is sent and signed: all UTF-8 bytes but letters, digits and `-_.~/` percent-encoded."""
    if _PLAIN(key):
        return key
    from urllib.parse import quote  # 2 ms to import, most of it IP addresses

    return quote(key, safe="/-_.~")


class Signer:
    """Signs for one pair of credentials, in one region. Safe for use by many threads."""

    def __init__(self, credentials: Credentials, region: str, service: str = "s3") -> None:
        self.credentials = credentials
        self.region = region
        self.service = service
        self._dated = ("", b"")
        self._stamped = (-1, "")

    def headers(
        self, method: str, host: str, path: str, query: str, headers: Mapping[str, str], now: float
    ) -> dict[str, str]:
        """`headers` with `host` and those that authenticate the request; all of them are signed.

        `path` and `query` are percent-encoded, as they are sent. `now` is in seconds since 1970.
        """
        second, stamp = self._stamped
        if second != int(now):
            second, stamp = self._stamped = int(now), time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
        sent = {name.lower(): value for name, value in headers.items()}
        sent |= {"host": host, "x-amz-content-sha256": EMPTY_SHA256, "x-amz-date": stamp}
        if self.credentials.token is not None:
            sent["x-amz-security-token"] = self.credentials.token
        names = sorted(sent)
        listed = "".join([f"{name}:{' '.join(sent[name].split())}\n" for name in names])
        signed = ";".join(names)
        canonical = f"{method}\n{path}\n{_sorted_query(query)}\n{listed}\n{signed}\n{EMPTY_SHA256}"
        scope = f"{stamp[:8]}/{self.region}/{self.service}/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._key(stamp[:8]), text.encode(), "sha256").hex()
        sent["authorization"] = (
            f"AWS4-HMAC-SHA256 Credential={self.credentials.access_key}/{scope}, "
            f"SignedHeaders={signed}, Signature={signature}"
        )
        return sent

    def _key(self, day: str) -> bytes:
        key_day, key = self._dated
        if key_day != day:
            key = f"AWS4{self.credentials.secret_key}".encode()
            for part in (day, self.region, self.service, "aws4_request"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._dated = (day, key)  # in one assignment: another thread sees the old pair or the new one
        return key


def _sorted_query(query: str) -> str:
    if not query:
        return ""
    pairs = sorted(pair.partition("=")[::2] for pair in query.split("&"))
    return "&".join(f"{name}={value}" for name, value in pairs)
