"""How often a server asked boto3 for fewer requests: botocore retries these answers itself, only a hook sees them."""

from __future__ import annotations

import threading
from typing import Any

from monocontext.transport import is_throttling

_EVENT = "needs-retry.s3.GetObject"
_NAME = "monocontext-refusals"


class Refusals:
    """Counts them for each thread: boto3 carries a request out, retries and all, in the thread that calls it."""

    def __init__(self) -> None:
        self._local = threading.local()

    def listen(self, client: Any) -> None:
        """Count those that `client` meets from now on; without effect on what it does. Idempotent."""
        events = getattr(getattr(client, "meta", None), "events", None)
        if events is not None:
            events.register(_EVENT, self._note, unique_id=_NAME)

    def take(self) -> int:
        """Refusals of this thread since the last call."""
        count: int = getattr(self._local, "count", 0)
        self._local.count = 0
        return count

    def _note(self, response: Any = None, **_: Any) -> None:
        """Asked by botocore after each answer whether to retry; says nothing to that."""
        if response is None:
            return
        http, parsed = response
        code = str(parsed.get("Error", {}).get("Code", ""))
        if is_throttling(http.status_code, code):
            self._local.count = getattr(self._local, "count", 0) + 1
