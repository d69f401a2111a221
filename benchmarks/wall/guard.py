"""Decide whether a wall clock can be trusted here: what the stand-in itself costs, and the load of the machine."""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path
from typing import Any

from monocontext.stores import open_store
from monocontext.testing import S3StandIn

GETS = 60
BODY_BYTES = 8 << 20
BODIES = 12


def measure() -> dict[str, float]:
    """Overhead of a GET with nothing to wait for, speed of the loopback, load and stolen time."""
    stolen, passed = _stolen()
    with S3StandIn({"body": os.urandom(BODY_BYTES)}) as server:
        store = open_store(server.url(), endpoint=server.endpoint, anonymous=True)
        taken = []
        for _ in range(GETS):
            began = time.perf_counter()
            store.get_range("body", 0, 1024)
            taken.append(time.perf_counter() - began)
        began = time.perf_counter()
        for _ in range(BODIES):
            store.get_range("body", 0, BODY_BYTES)
        speed = BODIES * BODY_BYTES / (time.perf_counter() - began)
        store.close()
    after, then = _stolen()
    return {
        "overhead_seconds": statistics.median(taken),
        "loopback_bytes_per_second": speed,
        "load": os.getloadavg()[0],
        "steal": (after - stolen) / max(then - passed, 1),
    }


def may_judge(guard: dict[str, float], latency_seconds: float, nic_bytes_per_second: float) -> bool:
    """Whether the stand-in is quick enough for what it plays."""
    return (
        guard["overhead_seconds"] <= 0.2 * latency_seconds
        and guard["loopback_bytes_per_second"] >= 2 * nic_bytes_per_second
    )


def _stolen() -> tuple[int, int]:
    """Ticks that the hypervisor gave to others, and all ticks; zeros where the system does not say."""
    path = Path("/proc/stat")
    if not path.exists():
        return 0, 0
    ticks: list[Any] = path.read_text().split("\n", 1)[0].split()[1:]
    return int(ticks[7]), sum(map(int, ticks[:8]))
