"""Count how often a server asks boto3 for fewer requests: botocore retries such responses; only a hook sees them."""

from __future__ import annotations

import threading
from typing import Any

from monocontext.stores.http.responses import is_throttling

_EVENT = "needs-retry.s3.GetObject"
_NAME = "monocontext-refusals"


class ThrottleCounter:
    """Counts for each thread: boto3 sends a request with its retries in the thread that calls it."""

    def __init__(self) -> None:
        self._local = threading.local()

    def register(self, client: Any) -> None:
        """Count the responses that `client` gets from now on; the client behaves as before. Idempotent."""
        events = getattr(getattr(client, "meta", None), "events", None)
        if events is not None:
            events.register(_EVENT, self._count, unique_id=_NAME)

    def take(self) -> int:
        """The count of this thread since its last call."""
        count: int = getattr(self._local, "count", 0)
        self._local.count = 0
        return count

    def _count(self, response: Any = None, **_: Any) -> None:
        """Handle botocore's question after each response whether to retry; leaves the decision to botocore."""
        if response is None:
            return
        http, parsed = response
        code = str(parsed.get("Error", {}).get("Code", ""))
        if is_throttling(http.status_code, code):
            self._local.count = getattr(self._local, "count", 0) + 1
