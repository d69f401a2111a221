"""Read from response headers when a call may be tried again. Pure, but for the clock."""

from __future__ import annotations

import time
from collections.abc import Mapping


def retry_after_seconds(headers: Mapping[str, str]) -> float | None:
    """The seconds that the headers of a response ask to wait; None where they ask for none or cannot be read."""
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        value = headers.get(name)
        if value is None:
            continue
        try:
            return max(0.0, float(value) * unit)
        except ValueError:
            from email.utils import parsedate_to_datetime  # 8 ms, for a date
        try:
            return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
        except ValueError:
            continue
    return None
