"""Where the engine and the transport show what is under way: the one place here that knows their insides."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from monocontext import Monocontext
from monocontext.transport import Client, Pool


def transport(context: Monocontext, bucket: str = "bucket") -> Client | None:
    """What the context's GETs travel by; `None` where that is boto3."""
    store: Any = context._opened.store  # type: ignore[union-attr]
    found: Client | None = store._connection.transport(bucket)
    return found


def pool(context: Monocontext) -> Pool | None:
    """The sockets of the context's transport; `None` where boto3 has them."""
    found = transport(context)
    return found.pool if found else None


def scheduler(context: Monocontext) -> Any:
    reader: Any = context._reader
    return reader._scheduler


def assert_idle(context: Monocontext, seconds: float = 5.0) -> None:
    """Every gauge goes back to zero, if not at once then within some seconds."""
    plan, sockets = scheduler(context), pool(context)
    end = time.monotonic() + seconds
    while plan.running or plan.reserved_bytes or plan._by_key or (sockets and sockets.lent):
        assert time.monotonic() < end, f"still under way: {plan!r}, {sockets!r}"
        time.sleep(0.001)
    assert context._reader.cache.used_bytes <= context._reader.cache.capacity_bytes  # type: ignore[union-attr]


def watch_budget(context: Monocontext, budget_bytes: int) -> Callable[[], tuple[int, int]]:
    """Set a budget and have every step of the scheduler checked; what is returned gives the steps so far and the most
    bytes that were reserved, and fails where a step broke a rule.

    One request may be larger than the whole budget, and then it is alone.
    """
    plan = scheduler(context)
    plan._budget_bytes = budget_bytes
    steps, most = 0, 0
    broken: list[str] = []

    def checked(step: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any) -> Any:
            nonlocal steps, most
            done = step(*arguments)  # under the reader's lock, as all steps are
            steps, most = steps + 1, max(most, plan.reserved_bytes)
            if not (
                0 <= plan.running <= plan._max_running
                and plan.reserved_bytes >= 0
                and (plan.reserved_bytes <= plan._budget_bytes or plan.running == 1)
                and (plan.running > 0 or plan.reserved_bytes == 0)
            ):
                broken.append(repr(plan))  # raised here it would end a worker, and all would wait
            return done

        return run

    for name in ("want", "start", "finish", "release"):
        setattr(plan, name, checked(getattr(plan, name)))

    def told() -> tuple[int, int]:
        assert not broken, broken[:3]
        return steps, most

    return told
