"""Measure the first second: from a cold process to the first answer, against reading the whole object into a `str`.

Rounds are counted on a virtual clock, where each request takes one. Seconds are of real clients, each in a new process,
in turns, against the stand-in: 150 ms to the first byte, 90 MB/s a connection and for the whole link.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from benchmarks import first_second_client as client
from benchmarks.logs import Logs
from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish
from monocontext.engine.fetch.requests import RangeRequest
from monocontext.format import inline
from monocontext.stores import open_store
from monocontext.stores.protocol import Blob, Store
from monocontext.testing import CountingStore, S3StandIn, SimulatedWorkers, VirtualClock, WrappedStore, virtual_context
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND

NEEDLE = "incident-4711 volume vol-93 detached"
AT = 0.8
LATENCIES_SECONDS = (0.01, 0.05, 0.15)
SIZES = (1_000_000, 5_000_000, 20_000_000, 100_000_000)
ROUNDS_ASKED = {"10 KB": 1, "5 MB": 2, "20 MB": 2, "1 GB": 4}
FRAME_BYTES = 256 << 10
Look = Callable[[Monocontext], object]


def text(size_bytes: int) -> str:
    """A log with one planted line at 80 %."""
    lines = b"".join(Logs(size_bytes, 6, {})).decode("ascii")
    at = lines.index("\n", int(size_bytes * AT)) + 1
    return f"{lines[:at]}2026-03-01T12:00:00 ERROR {NEEDLE}\n{lines[at:]}"


def gigabyte() -> Store:
    """A virtual context of 4,000 frames with the line in one of them, as `publish` would write it."""
    filler = b"".join(Logs(FRAME_BYTES, 6, {})).decode("ascii")
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


def count_rounds(told: Callable[[str], object] = print) -> list[dict[str, Any]]:
    """The table of rounds, at each latency."""
    stores: dict[str, tuple[Store, Sequence[Look]]] = {}
    for name, size in (("10 KB", 10_000), ("5 MB", 5_000_000), ("20 MB", 20_000_000)):
        store = open_store(f"memory://first-second-{size}/context")
        publish(text(size), store, replace=True)
        stores[name] = store, (str,) if name == "10 KB" else (find, window)
    stores["1 GB"] = gigabyte(), (head, find, window)
    rows = []
    told("| text | asked | " + " | ".join(f"{1000 * each:.0f} ms" for each in LATENCIES_SECONDS) + " | GETs |")
    told("|---|---:|" + "---:|" * (len(LATENCIES_SECONDS) + 1))
    for name, (store, looks) in stores.items():
        found = [rounds(store, *looks, seconds=each) for each in LATENCIES_SECONDS]
        sums = [sum(taken) for taken, _ in found]
        rows.append({"text": name, "asked": ROUNDS_ASKED[name], "rounds": sums, "gets": found[-1][1]})
        told(f"| {name} | {ROUNDS_ASKED[name]} | {' | '.join(f'{each:g}' for each in sums)} | {found[-1][1]} |")
    return rows


def seconds_on_the_wire(size_bytes: int) -> tuple[float, float, int]:
    """What requests and bytes alone take at 150 ms and 90 MB/s for the whole link: of opening, finding and looking
    around, and of reading the object whole; and GETs."""
    store = open_store(f"memory://first-second-{size_bytes}/context")
    data = text(size_bytes)
    publish(data, store, replace=True)
    clock = VirtualClock()
    counting = CountingStore(SlowRoot(store, clock, LATENCIES_SECONDS[-1]))
    workers = SimulatedWorkers(lambda request: LATENCIES_SECONDS[-1], clock)
    window(Monocontext.open(counting, workers=workers, hedge=None))
    ours = clock.now() + counting.bytes_read / CONNECTION_BYTES_PER_SECOND
    return ours, LATENCIES_SECONDS[-1] + len(data) / CONNECTION_BYTES_PER_SECOND, counting.gets


def main(samples: int, sizes: Sequence[int] = SIZES, json_path: Path | None = None) -> list[dict[str, Any]]:
    """Count rounds, measure seconds, print both tables; losing rows too."""
    print("Requests in a row until the answer (virtual clock):\n")
    counted = count_rounds()
    print("\nSeconds of requests and bytes alone, at 150 ms and 90 MB/s:\n")
    print("| text | ours | GET whole | times | GETs |\n|---|---:|---:|---:|---:|")
    for size in sizes:
        took, downloading, gets = seconds_on_the_wire(size)
        print(f"| {size / 1e6:g} MB | {took:.3f} | {downloading:.3f} | {took / downloading:.2f} | {gets} |")
    machine = describe_machine()
    print(f"\nSeconds to the window around the needle; 150 ms, 90 MB/s; least of {samples} processes\n({machine})\n")
    print("| text | way | cold | warm | CPU | cold, of GET whole | warm, of GET whole |")
    print("|---|---|---:|---:|---:|---:|---:|")
    rows = []
    for size in sizes:
        taken = _measure(size, samples)
        whole = [way for way in taken if way.startswith("GET")]
        best = {kind: min(taken[way][kind] for way in whole) for kind in ("cold", "warm")}
        for way, found in taken.items():
            times = {f"{kind}_times": found[kind] / best[kind] for kind in ("cold", "warm")}
            rows.append({"size_bytes": size, "way": way} | found | times)
            print(
                f"| {size / 1e6:g} MB | {way} | {found['cold']:.3f} | {found['warm']:.3f} | {found['cpu']:.3f} | "
                f"{times['cold_times']:.2f} | {times['warm_times']:.2f} |"
            )
    if json_path:
        result = {"benchmark": "first_second", "version": 1, "machine": machine, "rounds": counted, "rows": rows}
        json_path.write_text(json.dumps(result, indent=1) + "\n")
    return rows


def _measure(size: int, samples: int) -> dict[str, dict[str, float]]:
    """The least by way, since others use this machine too; a way whose package is not here is left out and named."""
    taken: dict[str, list[dict[str, float]]] = defaultdict(list)
    missing: set[str] = set()
    with _server(size) as environment:
        for _ in range(samples):
            for way in client.WAYS:
                if way in missing:
                    continue
                command = [sys.executable, client.__file__, way, "ctx", NEEDLE]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)
                if "ModuleNotFoundError" in done.stderr:
                    missing.add(way)
                    print(f"(not installed here: {way})")
                    continue
                if done.returncode:
                    raise AssertionError(f"{way}: {done.stderr.strip().splitlines()[-1]}")
                taken[way].append(json.loads(done.stdout))
    return {way: {kind: min(run[kind] for run in runs) for kind in runs[0]} for way, runs in taken.items()}


@contextmanager
def _server(size: int) -> Iterator[dict[str, str]]:
    name, data = f"memory://first-second-wall-{size}", text(size)
    for prefix in ("ctx", "ctx-again"):
        open_store(name).put(f"{prefix}/{client.TEXT}", data.encode())
        publish(data, f"{name}/{prefix}", replace=True)
    bound = inline.MOST_TEXT_BYTES
    inline.MOST_TEXT_BYTES = inline.MOST_GROWN_BYTES  # as if the root had no more than 64 KiB of text
    try:
        for prefix in (f"ctx-{client.APART}", f"ctx-again-{client.APART}"):
            publish(data, f"{name}/{prefix}", replace=True)
    finally:
        inline.MOST_TEXT_BYTES = bound
    with S3StandIn(
        open_store(name),
        bucket=client.BUCKET,
        latency="const_150",
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
    ) as server:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith("AWS_") and not name.lower().endswith("_proxy")
        }
        yield environment | {
            "PYTHONPATH": str(Path(__file__).parents[1]),
            "AWS_ACCESS_KEY_ID": "access",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_ENDPOINT_URL_S3": server.endpoint,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }
