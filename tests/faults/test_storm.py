"""64 threads that slice one text at random, through a cache that holds a fifth of it, from a server that errs a lot."""

from __future__ import annotations

import gc
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest
from begun_threads import begun_threads

from monocontext.errors import DamagedData, StoreFailure
from monocontext.testing.http_faults import (
    cut,
    error_in_200,
    flipped,
    internal_error,
    reset,
    shifted,
    short,
    slow_down,
    stall,
    whole,
    wrong_range,
)

from .faulted import TEXT, opened, serve
from .gauges import assert_idle, connections, open_sockets, pool, watch_budget

THREADS = 64
LENGTHS = (1, 100, 100, 1_000, 5_000, 60_000)
BUDGET_BYTES = 400_000
"""So that requests have to wait for each other."""
OFTEN = (
    *(cut(), cut(9_000), reset(), short(), shifted(), flipped()),
    *(wrong_range(), whole(), internal_error(), slow_down(), error_in_200()),
)
"""Each of them strikes one request in a hundred, so about one in ten is struck."""


@pytest.mark.parametrize(
    ("slices", "way"),
    [
        (12, "own"),
        pytest.param(80, "own", marks=pytest.mark.slow),
        pytest.param(1000, "own", marks=[pytest.mark.fuzz, pytest.mark.timeout(600)]),
        pytest.param(20, "boto3", marks=pytest.mark.slow),
    ],
)
def test_a_storm(slices: int, way: str) -> None:
    errors: Counter[str] = Counter()
    sockets_before = open_sockets()
    with begun_threads() as begun, serve() as server, opened(server, transport=way, cache_bytes=300 << 10) as context:
        for fault in OFTEN:
            server.faults.add(fault, share=0.01, times=None)
        server.faults.add(stall(5_000), share=0.002, times=5)
        budget = watch_budget(context, BUDGET_BYTES)

        def work(seed: int) -> None:
            random = Random(seed)
            for _ in range(slices):
                start = random.randrange(len(TEXT))
                stop = start + random.choice(LENGTHS)
                try:
                    answer = context[start:stop]
                except (DamagedData, StoreFailure) as error:  # the same part was struck again and again
                    errors[type(error).__name__] += 1
                else:
                    assert answer == TEXT[start:stop]

        with ThreadPoolExecutor(THREADS) as threads:
            for future in [threads.submit(work, seed) for seed in range(THREADS)]:
                future.result()
        assert_idle(context)
        sockets = pool(context)
        budget()
        struck, asked = server.faults.struck, server.requests
        server.faults.clear()
        assert "".join(context.chunks(50_000)) == TEXT
        assert_idle(context)
        budget()
        context.close()
        assert connections(sockets) == (0, 0)
        gc.collect()  # what boto3 broke off hangs in cycles, sockets and all
        end = time.monotonic() + 60
        while server._connections:
            assert time.monotonic() < end, server
            time.sleep(0.01)
        assert server.in_flight == 0
    end = time.monotonic() + 60
    while begun.alive() or open_sockets() > sockets_before:
        assert time.monotonic() < end, (begun.alive(), open_sockets(), sockets_before)
        time.sleep(0.01)
    assert struck > asked // 20
    assert errors.total() <= THREADS * slices // 20
