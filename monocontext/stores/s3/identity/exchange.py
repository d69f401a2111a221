"""One HTTP exchange with a source of keys, within a time that is given: 1 request, no retry."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from monocontext.stores.http.body import Body
from monocontext.stores.http.connector import Connector
from monocontext.stores.http.http11 import request_head
from monocontext.stores.http.route import DEFAULT_PORTS, Endpoint, Proxy
from monocontext.stores.http.timeouts import ExchangeTimer

if TYPE_CHECKING:
    from ssl import SSLContext

_MAX_ANSWER_BYTES = 1 << 20


def exchange(
    url: str,
    seconds: float,
    tls: Callable[[], SSLContext],
    *,
    method: str = "GET",
    headers: Mapping[str, str] | None = None,
    body: bytes | None = None,
    proxy: Proxy | None = None,
) -> tuple[int, str]:
    """Status and text of the answer. Raises `OSError`, after `seconds` at the latest.

    The system's look-up of a name is not under this limit; addresses of metadata services need none.
    """
    parts = urlsplit(url)
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    endpoint = Endpoint(scheme, parts.hostname or "", parts.port or DEFAULT_PORTS[scheme], proxy)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    sent = {"host": endpoint.host_header, "user-agent": "monocontext", "connection": "close"}
    if proxy and scheme == "http":
        target = f"http://{endpoint.host_header}{target}"
        if proxy.authorization:
            sent["proxy-authorization"] = proxy.authorization
    if body is not None:
        sent |= {"content-length": str(len(body)), "content-type": "application/x-www-form-urlencoded"}
    elif method == "PUT":
        sent["content-length"] = "0"
    timer = ExchangeTimer(seconds, seconds, time.monotonic() + seconds, time.monotonic, lambda: False)
    connection = Connector(tls).open(endpoint, timer)
    try:
        connection.begin(timer)
        connection.send(request_head(method, target, {**sent, **(headers or {})}) + (body or b""))
        head = connection.read_head()
        return head.status, Body(connection, head).read(_MAX_ANSWER_BYTES).decode("utf-8", "replace")
    finally:
        connection.close()
