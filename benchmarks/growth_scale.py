"""Measure 100 TB on a virtual store and clock: the root, an open, a slice, and a search for a rare needle.

The real engine sends the requests. Each takes 30 ms, plus its bytes at the 600 MB/s of its machine.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from monocontext import Monocontext
from monocontext.testing import CountingStore, VirtualStore, virtual_context
from tests.simulated import SimulatedWorkers, VirtualClock

TERABYTES = 100
LINE = "2026-11-22T02:19:24.117Z INFO  worker-07 request served status=200 bytes=5120 duration=17ms path=/api/items\n"
FRAME = LINE * ((256 << 10) // len(LINE))
NEEDLE = "3f0c1d4e-7a52-4b8e-9c61-0d2f5b7a9e13"
ROUND_TRIP_SECONDS = 0.030
BYTES_PER_SECOND = 600e6
GET_DOLLARS = 0.4e-6
"""The price of S3 within its region, where traffic costs nothing."""


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
    store.reset()
    began, cpu = here.now(), time.process_time()
    offset = context.find(NEEDLE)
    seconds, cpu_seconds = here.now() - began, time.process_time() - cpu
    measured = f"{store.gets:,} GETs, {store.bytes_read / 1e6:,.0f} MB, {seconds:.1f} s, {cpu_seconds:.0f} CPU s"
    measured += f", ${store.gets * GET_DOLLARS:.3f}"
    yield f"{size}: find a rare needle", "printed: it is at a fifth", measured, offset // len(FRAME) == places[0]
