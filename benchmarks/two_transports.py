"""Measure the client CPU of one GET of 256 KiB through each transport of `s3://`, in turns, in one process.

    python -m benchmarks.two_transports

The server is the stand-in of `benchmarks.transport`, in a process of its own. Both ways are stores of ours: the same
checks of version and length, the same `Blob`. CPU is that of all threads of this process; medians of rounds count.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib.metadata import version
from typing import Any

from benchmarks.machine import describe_machine
from benchmarks.transport import _server
from benchmarks.transport_client import ACCESS, BUCKET, KEY, OBJECT_BYTES, SECRET
from monocontext.stores import open_store
from monocontext.stores.protocol import Store

LENGTH_BYTES = 256 << 10


def main(gets: int, rounds: int, threads: tuple[int, ...]) -> None:
    """Measure and print the table."""
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_REGION": "us-east-1"}
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    print(f"CPU of one GET of 256 KiB, {gets} GETs a round, medians of {rounds} rounds\n({machine}, load {_load()})\n")
    print("| threads | ours, ms (best) | obstore, ms (best) | times ours: median of the rounds, least to most |")
    print("|---:|---:|---:|---:|")
    with _server(None) as endpoint:
        stores = {name: _open(endpoint, name) for name in ("own", "obstore")}
        for count in threads:
            with ThreadPoolExecutor(count) as pool:
                for store in stores.values():
                    _measure(store, pool, 4 * count)
                taken = [{name: _measure(store, pool, gets) for name, store in stores.items()} for _ in range(rounds)]
            ratios = [each["obstore"] / each["own"] for each in taken]
            cells = []
            for name in stores:
                seconds = [each[name] for each in taken]
                cells.append(f"{1e3 * statistics.median(seconds):.3f} ({1e3 * min(seconds):.3f})")
            print(f"| {count} | {' | '.join(cells)} | {statistics.median(ratios):.2f}, {_span(ratios)} |")
    print(f"\nobstore {version('obstore')}, load {_load()}")


def _open(endpoint: str, name: str) -> Store:
    options: dict[str, Any] = {"endpoint": endpoint, "transport": name}
    return open_store(f"s3://{BUCKET}", **options)


def _measure(store: Store, pool: ThreadPoolExecutor, gets: int) -> float:
    starts = [number * 65_537 % (OBJECT_BYTES - LENGTH_BYTES) for number in range(gets)]
    began = time.process_time()
    for _ in pool.map(partial(_read, store), starts):
        pass
    return (time.process_time() - began) / gets


def _read(store: Store, start: int) -> None:
    if len(store.get_range(KEY, start, LENGTH_BYTES).data) != LENGTH_BYTES:
        raise AssertionError(f"{store.url}: expected {LENGTH_BYTES:,} bytes")


def _span(ratios: list[float]) -> str:
    return f"{min(ratios):.2f} to {max(ratios):.2f}"


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.two_transports", description=__doc__)
    parser.add_argument("--gets", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=9)
    arguments = parser.parse_args()
    main(arguments.gets, arguments.rounds, (1, 8))
