"""GETs over our own HTTP/1.1: signed, pooled, received in place, and resumed where they broke off.

    client   one GET, whatever comes between
    |-- route, signing, refusal      where, who, and what a server says instead of an object; pure
    |-- retry, patience, pace        when to ask again, how long to wait, how slow is too slow; pure
    |-- pool -> dial -> connection   sockets: kept, opened, used
    `-- body -> http11, landing      bytes off the wire and into their place

It knows neither S3's verbs nor botocore: a store brings an `Origin` (routes and credentials) and a `Sink` (what must be
true of an answer). No dependency beside the standard library, no thread, no lock that is held while it waits.
Not covered: HTTP/2, requests with a body, compressed transfer, proxies that are spoken to over TLS.
"""

from __future__ import annotations

from monocontext.transport.client import Client, Sink, Unanswered
from monocontext.transport.dial import Dialler
from monocontext.transport.http11 import Head
from monocontext.transport.landing import Landing
from monocontext.transport.pool import MAX_IDLE, Pool
from monocontext.transport.refusal import Refused, is_throttling
from monocontext.transport.route import DEFAULT_PORTS, Endpoint, Origin, Proxy, Route
from monocontext.transport.signing import Credentials

__all__ = [
    "DEFAULT_PORTS",
    "MAX_IDLE",
    "Client",
    "Credentials",
    "Dialler",
    "Endpoint",
    "Head",
    "Landing",
    "Origin",
    "Pool",
    "Proxy",
    "Refused",
    "Route",
    "Sink",
    "Unanswered",
    "is_throttling",
]
