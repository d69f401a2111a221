"""A process that forks while it reads: `python -m faults.forked ENDPOINT STATE TRANSPORT`. Ends with 0 if all is right.

Each fork is made three times: the parent reads on, the child does, both do at the same time.
"""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from random import Random
from typing import Any

from faults.faulted import NEEDLE, TEXT
from faults.gauges import assert_idle, fetcher, open_sockets, transport, watch_budget
from monocontext import Monocontext

BUDGET_BYTES = 400_000
"""So that requests have to wait for each other."""
LIMIT_SECONDS = 15
"""After which a process that reads is taken to hang, and ends itself."""


def compare(context: Monocontext, seed: int) -> None:
    """Some reads that are not all cached."""
    random = Random(seed)
    for _ in range(4):
        start = random.randrange(len(TEXT))
        stop = start + random.choice((10, 5_000, 200_000))
        assert context[start:stop] == TEXT[start:stop], (start, stop)
    assert context.find(NEEDLE) == TEXT.find(NEEDLE)


@contextmanager
def idle(context: Monocontext) -> Iterator[None]:
    """Threads and connections are there, and nothing is under way."""
    assert_idle(context)
    yield


@contextmanager
def reading(context: Monocontext) -> Iterator[None]:
    """Four threads wait for bodies all the time."""
    stopping = threading.Event()

    def read(seed: int) -> None:
        while not stopping.is_set():
            compare(context, seed := seed + 4)

    threads = [threading.Thread(target=read, args=(100 + n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    while not fetcher(context).under_way()[0]:
        time.sleep(0.001)
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


@contextmanager
def holding(context: Monocontext) -> Iterator[None]:
    """Another thread holds every lock that a read takes, but the one that the library itself takes before a fork."""
    store: Any = context._opened.store  # type: ignore[union-attr]
    state = store._connection._process_state
    client: Any = transport(context)
    locks = [state.lock]
    if client:
        locks += [client.pool._lock, client.pool._tls_lock, client._origin._lock]
    taken, over = threading.Event(), threading.Event()

    def hold() -> None:
        with ExitStack() as stack:
            for lock in locks:
                stack.enter_context(lock)
            taken.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    taken.wait()
    try:
        yield
    finally:
        over.set()
        thread.join()


STATES = {"idle": idle, "reading": reading, "holding": holding}


def fork(
    context: Monocontext, budget: Callable[[], object], state: str, child_reads: bool, parent_reads: bool, seed: int
) -> None:
    """Right texts in both processes, every gauge back at zero in both, and at no step more than the budget."""
    with STATES[state](context):
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT_SECONDS)
            code = 1
            try:
                for offset in range(2 if child_reads else 0):
                    compare(context, seed + offset)
                if child_reads:
                    assert_idle(context)
                budget()
                code = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
    if parent_reads:
        compare(context, seed + 7)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"the child of {state} ended with {status}, {child_reads=}, {parent_reads=}"
    compare(context, seed + 9)
    assert_idle(context)
    budget()


def main(endpoint: str, state: str, way: str) -> None:
    sockets_before = open_sockets()
    context = Monocontext.open("s3://bucket/ctx", endpoint=endpoint, transport=way, cache_bytes=200 << 10)
    assert isinstance(context, Monocontext)
    budget = watch_budget(context, BUDGET_BYTES)
    compare(context, 1)
    for seed, (child_reads, parent_reads) in enumerate(((True, False), (False, True), (True, True))):
        fork(context, budget, state, child_reads, parent_reads, 1000 * seed)
    signal.alarm(0)
    context.close()
    gc.collect()  # what boto3 broke off hangs in cycles, sockets and all
    end = time.monotonic() + 60
    while threading.active_count() > 1 or open_sockets() > sockets_before:
        assert time.monotonic() < end, (threading.enumerate(), open_sockets(), sockets_before)
        time.sleep(0.01)


if __name__ == "__main__":
    signal.alarm(4 * LIMIT_SECONDS)
    main(*sys.argv[1:])
