"""Decide who may call our HTTP servers, by address and bearer token.

By default a server is reached only from this machine. The token is the only protection and is sent in the clear: for
callers on other machines, put TLS in front of the server.
"""

from __future__ import annotations

import hmac
import secrets

from monocontext.errors import AccessDenied
from monocontext.page.loopback import is_loopback

EXPECTED_HEADER = "expected the header Authorization: Bearer <token>"


def choose_token(token: str | None, host: str) -> str:
    """The token of a server on `host`: a new one for None. With an empty token, callers need none.

    Raises `AccessDenied` for an empty token beyond this machine, and for a token that cannot be sent in a header.
    """
    chosen = secrets.token_urlsafe(24) if token is None else token
    if not chosen and not is_loopback(host):
        raise AccessDenied(f"serving on {host} without a token would open it to everyone who reaches it")
    if not (chosen.isascii() and chosen.isprintable()):
        raise AccessDenied("a token must be printable ASCII: it is sent in a header")
    return chosen


def holds_token(header: bytes, token: str) -> bool:
    """Whether an `Authorization` header has the token; takes the same time for each wrong one."""
    kind, _, value = header.partition(b" ")
    return hmac.compare_digest(value.strip(), token.encode()) and kind.lower() == b"bearer"
