"""Measure ten thousand appends of 1 KB, and reads of 100 TB of text on a virtual clock; each row has a limit.

At 100 TB, the answers to the real engine's requests are simulated: each takes 30 ms, and its bytes arrive at 600 MB/s.
"""

from __future__ import annotations

import argparse
import statistics
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from benchmarks.options import Commands, head_line, row_line
from monocontext import Monocontext
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import CountingStore
from monocontext.writing.publish import append, publish
from tests.simulated import SimulatedWorkers
from tests.virtual import VirtualStore, virtual_context

APPENDS = 10_000
PIECE_BYTES = 1024
COMPARED = 100  # the last appends, whose median time is compared with that of as many after the 10th

TERABYTES = 100
LINE = "2026-11-22T02:19:24.117Z INFO  worker-07 request served status=200 bytes=5120 duration=17ms path=/api/items\n"
FRAME = LINE * ((256 << 10) // len(LINE))
NEEDLE = "3f0c1d4e-7a52-4b8e-9c61-0d2f5b7a9e13"
ROUND_TRIP_SECONDS = 0.030
BYTES_PER_SECOND = 600e6
GET_DOLLARS = 0.4e-6  # the price of S3 within its region, where traffic costs nothing


def add(commands: Commands) -> None:
    command = commands.add_parser("growth", help="the cost of many appends, and of 100 TB")
    command.add_argument("parts", nargs="*", help=f"parts to measure: {', '.join(PARTS)}; default: all")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Print the table of each part; returns 1 if a row is not within its limit."""
    if unknown := [name for name in arguments.parts if name not in PARTS]:
        raise SystemExit(f"no part {unknown[0]!r}: choose from {', '.join(PARTS)}")
    all_within = True
    for name in arguments.parts or PARTS:
        print(f"\n{name}\n{head_line('what', 'limit', 'measured', 'within')}")
        for row in PARTS[name]():
            print(row_line(row.what, row.limit, row.measured, "yes" if row.is_within else "NO"), flush=True)
            all_within = all_within and row.is_within
    return 0 if all_within else 1


@dataclass(frozen=True, slots=True)
class Row:
    """One measured figure and its limit."""

    what: str
    limit: str
    measured: str
    is_within: bool


def append_rows() -> Iterator[Row]:
    """Measure many appends, then the opening and a scan of the text that they made."""
    name = uuid.uuid4().hex
    store, dice, seconds = CountingStore(MemoryStore(name, "context")), Random(1), list[float]()
    words = ["".join(dice.choices("abcdefghijklmnopqrstuvwxyz", k=dice.randrange(2, 10))) for _ in range(5000)]
    root = publish(_piece(dice, words), store)
    for _ in range(APPENDS):
        piece = _piece(dice, words)
        began = time.process_time()
        root = append(piece, store)
        seconds.append(time.process_time() - began)
        store.reset()
    yield from _time_rows(seconds)
    stored_bytes = sum(info.size_bytes for info in store.list())
    measured = f"{stored_bytes / root.text_bytes:.1f} x text of {root.text_bytes / 1e6:.1f} MB"
    yield Row("stored, all generations", "40 x", measured, stored_bytes <= 40 * root.text_bytes)
    store.reset()
    with Monocontext.open(store, cache_bytes=0) as context:
        opened = len(store.log)
        yield Row("open", "1 GET", f"{opened}", opened == 1)
        is_whole = sum(len(piece) for piece in context.chunks()) == root.characters
        gets = len(store.log) - opened
        yield Row("a scan", "60 GETs", f"{gets}", gets <= 60 and is_whole)
    forget(name)


def _time_rows(seconds: list[float]) -> Iterator[Row]:
    early, late = statistics.median(seconds[10 : 10 + COMPARED]), statistics.median(seconds[-COMPARED:])
    measured = f"{late / early:.1f} x ({late * 1e3:.2f} ms)"
    yield Row("processor time of the last append", "3 x the 10th", measured, late <= 3 * early)
    ordered, growth = sorted(seconds), sum(seconds[-1000:]) / sum(seconds[1000:2000])
    slowest = f"99 % within {ordered[-len(ordered) // 100] * 1e3:.1f} ms, slowest {ordered[-1] * 1e3:.0f} ms"
    yield Row("all appends", "last 1,000 <= 2 x the second", f"{growth:.1f} x; {slowest}", growth <= 2)


def _piece(dice: Random, words: list[str]) -> str:
    piece = ""
    while len(piece) < PIECE_BYTES:
        piece += dice.choice(words) + " "
    return piece[: PIECE_BYTES - 1] + "\n"


def huge_text(terabytes: float) -> tuple[VirtualStore, list[int]]:
    """A store with this much text, and the numbers of the three frames that hold the needle."""
    frames = int(terabytes * 1e12 / len(FRAME))
    middle = len(FRAME) // 2 // len(LINE) * len(LINE)
    planted = f"{FRAME[:middle]}2026-11-22 ERROR request {NEEDLE} failed\n{FRAME[middle:]}"
    needle_frames = [frames // 5, frames // 2, frames - 7]
    return virtual_context(frames, FRAME, dict.fromkeys(needle_frames, planted), filters=True), needle_frames


def simulated_workers() -> SimulatedWorkers:
    """The workers of one machine, on a virtual clock that starts at 0."""
    return SimulatedWorkers(lambda request: ROUND_TRIP_SECONDS + request.stored_bytes / BYTES_PER_SECOND)


def scale_rows(terabytes: float = TERABYTES) -> Iterator[Row]:
    """Measure the opening, a slice and a search of a text of this size."""
    stored_text, needle_frames = huge_text(terabytes)
    root_bytes = stored_text.head("manifest.json").size_bytes
    store, workers = CountingStore(stored_text), simulated_workers()
    context = Monocontext.open(store, workers=workers)
    prefix = f"{terabytes:g} TB, virtual"
    yield Row(f"{prefix}: root", "<= 64 KB", f"{root_bytes / 1000:.1f} KB", root_bytes <= 64 << 10)
    yield Row(f"{prefix}: open", "1 GET", f"{store.gets} GET", store.gets == 1)
    store.reset()
    began = workers.now()
    context[len(context) // 3 :][:500]
    waited = workers.now() - began
    measured = f"{store.gets} GETs, {store.bytes_read / 1e6:.2f} MB, {waited * 1000:.0f} ms"
    yield Row(f"{prefix}: a slice", "<= 4 rounds", measured, store.gets <= 4)
    store.reset()
    began, cpu_began = workers.now(), time.process_time()
    offset = context.find(NEEDLE)
    seconds, cpu_seconds = workers.now() - began, time.process_time() - cpu_began
    measured = f"{store.gets:,} GETs, {store.bytes_read / 1e6:,.0f} MB, {seconds:.1f} s, {cpu_seconds:.0f} CPU s"
    measured += f", ${store.gets * GET_DOLLARS:.3f}"
    is_found = offset // len(FRAME) == needle_frames[0]
    yield Row(f"{prefix}: find a rare needle", "printed: it is at a fifth", measured, is_found)


PARTS = {"appends": append_rows, "scale": scale_rows}
