"""Decide who may call our HTTP servers, by address and bearer token.

A server listens on this machine by default. The token is the only protection and is sent in the clear: beyond one
machine, put TLS in front of it.
"""

from __future__ import annotations

import hmac
import secrets

from monocontext.errors import AccessDenied
from monocontext.page.loopback import is_loopback

EXPECTED = "expected the header Authorization: Bearer <token>"


def choose_token(token: str | None, host: str) -> str:
    """The token of a server on `host`: a new one for None; with an empty one, callers need none.

    Raises `AccessDenied` for an empty one beyond this machine, and for one that a header cannot hold.
    """
    chosen = secrets.token_urlsafe(24) if token is None else token
    if not chosen and not is_loopback(host):
        raise AccessDenied(f"serving on {host} without a token would open it to everyone who reaches it")
    if not (chosen.isascii() and chosen.isprintable()):
        raise AccessDenied("a token is printable ASCII: it travels in a header")
    return chosen


def holds_token(header: bytes, token: str) -> bool:
    """Whether the value of an `Authorization` header holds the token; takes the same time for each wrong one."""
    kind, _, given = header.partition(b" ")
    return hmac.compare_digest(given.strip(), token.encode()) and kind.lower() == b"bearer"
