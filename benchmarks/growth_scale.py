"""Measure 100 TB on a virtual store and clock: the root, an open, a slice, and a search for a rare needle.

The real engine sends the requests. Each takes 30 ms, plus its bytes at the 600 MB/s of its machine.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from typing import Any

from monocontext import Monocontext
from monocontext.testing import CountingStore, VirtualStore, virtual_context
from tests.simulated import SimulatedWorkers, VirtualClock

TERABYTES = 100
WORKERS = 64
LINE = "2026-11-22T02:19:24.117Z INFO  worker-07 request served status=200 bytes=5120 duration=17ms path=/api/items\n"
FRAME = LINE * ((256 << 10) // len(LINE))
NEEDLE = "3f0c1d4e-7a52-4b8e-9c61-0d2f5b7a9e13"
ROUND_TRIP_SECONDS = 0.030
BYTES_PER_SECOND = 600e6
GET_DOLLARS = 0.4e-6
"""The price of S3 within its region, where traffic costs nothing."""
WORKER_DOLLARS_PER_HOUR = 0.10


def text_of(terabytes: float) -> tuple[VirtualStore, list[int]]:
    """A store with this much text, and the three frames that hold the needle."""
    frames = int(terabytes * 1e12 / len(FRAME))
    middle = len(FRAME) // 2 // len(LINE) * len(LINE)
    planted = f"{FRAME[:middle]}2026-11-22 ERROR request {NEEDLE} failed\n{FRAME[middle:]}"
    places = [frames // 5, frames // 2, frames - 7]
    return virtual_context(frames, FRAME, dict.fromkeys(places, planted), filters=True), places


def simulated() -> SimulatedWorkers:
    """The workers of one machine, with a clock of its own."""
    return SimulatedWorkers(
        lambda request: ROUND_TRIP_SECONDS + request.stored_bytes / BYTES_PER_SECOND, VirtualClock()
    )


class SimulatedExecutor(Executor):
    """Runs each part on the machine that is free first. Each machine has its own clock, and opens the text itself, as a
    worker process would."""

    def __init__(self, store: CountingStore, workers: int):
        self._store = store
        self._free = [(0.0, number) for number in range(workers)]
        self._texts: dict[int, tuple[SimulatedWorkers, Monocontext]] = {}
        self.seconds = 0.0
        """The time at which the last part is done."""
        self.cpu_seconds = 0.0

    def submit(self, work: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        at, number = heapq.heappop(self._free)
        if number not in self._texts:
            machine = simulated()
            self._texts[number] = machine, Monocontext.open(self._store, workers=machine, cache_bytes=64 << 20)
            machine.clock.advance(ROUND_TRIP_SECONDS)  # for the root
        machine, text = self._texts[number]
        began, cpu = machine.now(), time.process_time()
        future: Future[Any] = Future()
        function = getattr(work, "func", work)
        future.set_result(function(text, *work.args[1:], *args))  # type: ignore[attr-defined]
        self.cpu_seconds += time.process_time() - cpu
        done = at + machine.now() - began
        self.seconds = max(self.seconds, done)
        heapq.heappush(self._free, (done, number))
        return future


def rows(terabytes: float = TERABYTES) -> Iterator[tuple[str, str, str, bool]]:
    """What was measured, its limit, the figure, and whether it is within the limit."""
    made, places = text_of(terabytes)
    root_bytes = made.head("manifest.json").size_bytes
    store = CountingStore(made)
    here = simulated()
    context = Monocontext.open(store, workers=here)
    size = f"{terabytes:g} TB, virtual"
    yield f"{size}: root", "<= 64 KB", f"{root_bytes / 1000:.1f} KB", root_bytes <= 64 << 10
    yield f"{size}: open", "1 GET", f"{store.gets} GET", store.gets == 1
    store.reset()
    began = here.now()
    context[len(context) // 3 :][:500]
    waited = here.now() - began
    measured = f"{store.gets} GETs, {store.bytes_read / 1e6:.2f} MB, {waited * 1000:.0f} ms"
    yield f"{size}: a slice", "<= 4 rounds", measured, store.gets <= 4
    for name, search, workers in (("find", _find, 1), ("grep", _grep, WORKERS)):
        store.reset()
        found, seconds, cpu = search(context, here, store)
        cost = store.gets * GET_DOLLARS + workers * seconds / 3600 * WORKER_DOLLARS_PER_HOUR
        measured = (
            f"{store.gets:,} GETs, {store.bytes_read / 1e6:,.0f} MB, {seconds:.1f} s, {cpu:.0f} CPU s of all workers, "
            f"${cost:.3f}"
        )
        asked = "printed: one process, first hit at a fifth" if workers == 1 else f"printed: {workers} workers"
        right = places if workers > 1 else places[:1]
        yield f"{size}: {name} a rare needle", asked, measured, [at // len(FRAME) for at in found] == right


def _find(context: Monocontext, here: SimulatedWorkers, store: CountingStore) -> tuple[list[int], float, float]:
    began, cpu = here.now(), time.process_time()
    return [context.find(NEEDLE)], here.now() - began, time.process_time() - cpu


def _grep(context: Monocontext, here: SimulatedWorkers, store: CountingStore) -> tuple[list[int], float, float]:
    began = here.now()
    executor = SimulatedExecutor(store, WORKERS)
    found = [hit.offset for hit in context.grep(NEEDLE, fixed=True, executor=executor)]
    return found, here.now() - began + executor.seconds, executor.cpu_seconds
