"""Where the engine and the transport show what is under way: the one place here that knows their insides."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from monocontext import Monocontext
from monocontext.engine.fetch.workers import LOCK, MAX_RUNNING
from monocontext.stores.http.client import Client
from monocontext.stores.http.pool import Pool

_OPEN_FILES = "/proc/self/fd"


def transport(context: Monocontext, bucket: str = "bucket") -> Client | None:
    """What the context's GETs travel by; `None` where that is boto3, or no S3."""
    store: Any = context._opened.store  # type: ignore[union-attr]
    if not context.url.startswith("s3:"):
        return None
    result: Client | None = store._connection.transport(bucket)
    return result


def pool(context: Monocontext) -> Pool | None:
    """The sockets of the context's transport; `None` where there is none of ours."""
    result = transport(context)
    return result.pool if result else None


def connections(sockets: Pool | None) -> tuple[int, int]:
    """How many connections of a pool are idle, and how many are lent."""
    idle = sum(map(len, sockets._idle.values())) if sockets else 0
    return idle, len(sockets._open) - idle if sockets else 0


def fetcher(context: Monocontext) -> Any:
    reader: Any = context._reader
    return reader.fetcher


def at_rest(reader: Any) -> bool:
    """Nothing of a reader's is under way, and nothing waits."""
    return "0 running, 0 queued" in repr(reader.fetcher)


def open_sockets() -> int:
    """Sockets of this process; 0 where the system does not tell."""
    return len([*_sockets()])


def _sockets() -> Iterator[str]:
    for number in os.listdir(_OPEN_FILES) if os.path.isdir(_OPEN_FILES) else []:
        with suppress(OSError):  # the one of the listing is closed by now
            if (name := os.readlink(f"{_OPEN_FILES}/{number}")).startswith("socket:"):
                yield name


def assert_idle(context: Monocontext, seconds: float = 60.0) -> None:
    """Every gauge goes back to zero, if not at once then soon; only a hang reaches the limit."""
    reader, sockets = context._reader, pool(context)
    assert reader is not None
    end = time.monotonic() + seconds
    while not at_rest(reader) or connections(sockets)[1]:
        assert time.monotonic() < end, f"still under way: {reader!r}, {sockets!r}"
        time.sleep(0.001)
    assert reader.cache.used_bytes <= reader.cache.capacity_bytes


def watch_budget(context: Monocontext, budget_bytes: int) -> Callable[[], tuple[int, int]]:
    """Set a window and have every request that starts checked; what is returned gives the requests so far and the most
    bytes under way, and fails where one broke a rule. One request may be larger than the whole window, and is alone."""
    reader: Any = context._reader
    watched = reader.fetcher
    watched.window_bytes = budget_bytes
    starts, most = 0, 0
    broken: list[str] = []
    step = watched.next_request

    def checked() -> Any:
        nonlocal starts, most
        with LOCK:
            request = step()
            running, size_bytes = watched.under_way()
            starts, most = starts + (request is not None), max(most, size_bytes)
            fits = size_bytes <= watched.window_bytes or running == 1
            if running > MAX_RUNNING or not fits or reader.cache.used_bytes > reader.cache.capacity_bytes:
                broken.append(f"{watched!r}, {size_bytes:,} bytes, {reader.cache!r}")
        return request  # and nothing is raised here: it would end a worker, and all would wait

    watched.next_request = checked

    def told() -> tuple[int, int]:
        assert not broken, broken[:3]
        return starts, most

    return told
