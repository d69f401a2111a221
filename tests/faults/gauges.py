"""Where the engine and the transport show what is under way: the one place here that knows their insides."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

from monocontext import Monocontext
from monocontext.stores.http.client import Client
from monocontext.stores.http.pool import Pool

_OPEN_FILES = "/proc/self/fd"


def transport(context: Monocontext, bucket: str = "bucket") -> Client | None:
    """What the context's GETs travel by; `None` where that is boto3, or no S3."""
    store: Any = context._opened.store  # type: ignore[union-attr]
    if not context.url.startswith("s3:"):
        return None
    found: Client | None = store._connection.transport(bucket)
    return found


def pool(context: Monocontext) -> Pool | None:
    """The sockets of the context's transport; `None` where there is none of ours."""
    found = transport(context)
    return found.pool if found else None


def scheduler(context: Monocontext) -> Any:
    reader: Any = context._reader
    return reader.fetcher.scheduler


def at_rest(reader: Any) -> bool:
    """Nothing of a reader's is under way, and nothing waits."""
    plan = reader.fetcher.scheduler
    return not (plan.running or plan.reserved_bytes or plan._by_key)


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
    while not at_rest(reader) or (sockets and sockets.lent):
        assert time.monotonic() < end, f"still under way: {reader!r}, {sockets!r}"
        time.sleep(0.001)
    assert reader.cache.used_bytes <= reader.cache.capacity_bytes


def watch_budget(context: Monocontext, budget_bytes: int) -> Callable[[], tuple[int, int]]:
    """Set a budget and have every step of the scheduler checked; what is returned gives the steps so far and the most
    bytes that were reserved, and fails where a step broke a rule.

    One request may be larger than the whole budget, and then it is alone. What is reserved is counted here a second
    time, from what was started and what ended.
    """
    reader: Any = context._reader
    plan = reader.fetcher.scheduler
    plan._budget_bytes = budget_bytes
    steps, most = 0, 0
    attempts: Counter[int] = Counter()
    sizes: dict[int, int] = {}
    alive: dict[int, Any] = {}  # so that no two have one id
    broken: list[str] = []

    def count(name: str, arguments: tuple[Any, ...], done: Any) -> None:
        if name == "restart_after_fork":
            attempts.clear()
        begun = done if name in ("start", "restart_after_fork") else arguments[:1] if name == "claim" else ()
        for fetch in begun:
            attempts[id(fetch)] += 1
            sizes[id(fetch)] = fetch.request.memory_bytes
            alive[id(fetch)] = fetch
        if name in ("finish", "leave"):
            attempts[id(arguments[0])] -= 1
            if not attempts[id(arguments[0])]:
                del attempts[id(arguments[0])], alive[id(arguments[0])]

    def checked(name: str, step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            nonlocal steps, most
            done = step(*arguments)  # under the reader's lock, as all steps are
            steps, most = steps + 1, max(most, plan.reserved_bytes)
            count(name, arguments, done)
            if not (
                plan.running == attempts.total()
                and plan.running <= plan.pressure.maximum
                and plan.reserved_bytes == sum(sizes[each] * times for each, times in attempts.items())
                and (plan.reserved_bytes <= plan._budget_bytes or plan.running == 1)
                and reader.cache.used_bytes <= reader.cache.capacity_bytes
            ):
                broken.append(f"after {name}: {plan!r}, counted {attempts.total()}, {reader.cache!r}")
            return done  # and nothing is raised here: it would end a worker, and all would wait

        return run

    for name in ("want", "start", "repeat", "finish", "leave", "claim", "release", "restart_after_fork", "drop_queued"):
        setattr(plan, name, checked(name, getattr(plan, name)))

    def told() -> tuple[int, int]:
        assert not broken, broken[:3]
        return steps, most

    return told
