"""Measure the first second: from a cold process to the first answer, against reading the whole object into a `str`.

Rounds are counted on a virtual clock, where each request takes one. Seconds are of real clients, each in a new process,
in turns, against the stand-in: 150 ms to the first byte, 90 MB/s a connection and for the whole link.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from benchmarks import first_second_client as client
from benchmarks.logs import NEEDLE, make_incident, make_logs
from benchmarks.machine import machine_line
from benchmarks.options import Commands, amount, head_line, parse_list, row_line
from benchmarks.processes import run_client
from monocontext import Monocontext, publish
from monocontext.engine.fetch.scheduler import RangeRequest
from monocontext.stores import open_store
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, S3StandIn, SimulatedWorkers, VirtualClock, WrappedStore, virtual_context
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND

AT = 0.8
LATENCIES_SECONDS = (0.01, 0.05, 0.15)
SIZES = ("1MB", "5MB", "20MB", "100MB")
ROUNDS_ASKED = {"10 KB": 1, "5 MB": 2, "20 MB": 2, "1 GB": 4}
FRAME_BYTES = 256 << 10
Look = Callable[[Monocontext], object]


def text(size_bytes: int) -> str:
    """A log with the needle at 80 %."""
    return make_incident(size_bytes, AT).decode("ascii")


def gigabyte() -> Store:
    """A virtual context of 4,000 frames with the line in one of them, as `publish` would write it."""
    filler = b"".join(make_logs(FRAME_BYTES, 6)).decode("ascii")
    planted = {int(4000 * AT): f"{filler[:100_000]}{NEEDLE}{filler[100_000:]}"}
    return virtual_context(4000, filler, planted, filters=True)


def find(context: Monocontext) -> int:
    at = context.find(NEEDLE)
    if at < 0:
        raise AssertionError("the planted line is not found")
    return at


def window(context: Monocontext) -> None:
    at = find(context)
    if NEEDLE not in context[max(at - client.WINDOW, 0) : at + client.WINDOW]:
        raise AssertionError("the window is another text")


def head(context: Monocontext) -> None:
    if len(context[:500]) != 500:
        raise AssertionError("the head is another text")


class SlowRoot(WrappedStore):
    """A store whose roots take as long as everything else."""

    def __init__(self, store: Store, clock: VirtualClock, seconds: float) -> None:
        super().__init__(store)
        self._clock, self._seconds = clock, seconds

    def get(self, key: str, *, most_bytes: int | None = None) -> Blob:
        self._clock.advance(self._seconds)
        return super().get(key, most_bytes=most_bytes)


def rounds(
    store: Store, *looks: Look, seconds: float = 0.15, bytes_per_second: float | None = None
) -> tuple[list[float], int]:
    """Requests in a row of opening, and of each look; and GETs of all."""
    clock = VirtualClock()
    counting = CountingStore(SlowRoot(store, clock, seconds))

    def answer(request: RangeRequest) -> float:
        return seconds + (request.stored_bytes / bytes_per_second if bytes_per_second else 0.0)

    context = Monocontext.open(counting, workers=SimulatedWorkers(answer, clock), hedge=None)
    taken, began = [clock.now() / seconds], clock.now()
    for look in looks:
        look(context)
        taken.append(round((clock.now() - began) / seconds, 3))
        began = clock.now()
    return taken, counting.gets


def count_rounds() -> None:
    """Print the table of rounds, at each latency."""
    stores: dict[str, tuple[Store, Sequence[Look]]] = {}
    for name, size in (("10 KB", 10_000), ("5 MB", 5_000_000), ("20 MB", 20_000_000)):
        store = open_store(f"memory://first-second-{size}/context")
        publish(text(size), store, replace=True)
        stores[name] = store, (str,) if name == "10 KB" else (find, window)
    stores["1 GB"] = gigabyte(), (head, find, window)
    print(head_line("text", "asked", *(f"{1000 * each:.0f} ms" for each in LATENCIES_SECONDS), "GETs"))
    for name, (store, looks) in stores.items():
        found = [rounds(store, *looks, seconds=each) for each in LATENCIES_SECONDS]
        print(row_line(name, ROUNDS_ASKED[name], *(f"{sum(taken):g}" for taken, _ in found), found[-1][1]))


def add(commands: Commands) -> None:
    """Add the sub-command."""
    command = commands.add_parser("first_second", help="from a cold process to the first answer, beside GET whole")
    command.add_argument("--samples", type=int, default=5, help="processes of each way; the least counts")
    command.add_argument("--sizes", type=parse_list, default=SIZES, help="of text, as 1MB,100MB")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Count rounds, measure seconds, print both tables; losing rows too."""
    print("Requests in a row until the answer (virtual clock):\n")
    count_rounds()
    print(f"\nSeconds to the window around the needle; 150 ms, 90 MB/s; least of {arguments.samples} processes")
    print(f"({machine_line()})\n")
    print(head_line("text", "way", "cold", "warm", "CPU"))
    for size in arguments.sizes:
        for way, found in _measure(amount(size), arguments.samples).items():
            print(row_line(size, way, *(f"{found[kind]:.3f}" for kind in ("cold", "warm", "cpu"))), flush=True)
    return 0


def _measure(size: int, samples: int) -> dict[str, dict[str, float]]:
    """The least by way, since others use this machine too; a way whose package is not here is left out and named."""
    taken: dict[str, list[dict[str, float]]] = defaultdict(list)
    missing: set[str] = set()
    with _server(size) as endpoint:
        for _ in range(samples):
            for way in (way for way in client.WAYS if way not in missing):
                found = run_client(client.__file__, way, "ctx", NEEDLE, endpoint=endpoint, ours=True)
                if found is None:
                    missing.add(way)
                    print(f"(not installed here: {way})")
                else:
                    taken[way].append(found)
    return {way: {kind: min(run[kind] for run in runs) for kind in runs[0]} for way, runs in taken.items()}


@contextmanager
def _server(size: int) -> Iterator[str]:
    """The endpoint of a stand-in with the text, twice, as an object and as a context."""
    name, data = f"memory://first-second-wall-{size}", text(size)
    for prefix in ("ctx", "ctx-again"):
        open_store(name).put(f"{prefix}/{client.TEXT}", data.encode())
        publish(data, f"{name}/{prefix}", replace=True)
    with S3StandIn(
        open_store(name),
        bucket=client.BUCKET,
        latency="const_150",
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
    ) as server:
        yield server.endpoint
