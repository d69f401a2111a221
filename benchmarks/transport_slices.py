"""One slice over 50 objects: 50 MiB into one `str`, and 5 MB far away. Ours, boto3 and obstore, in turns, in one run.

    python -m benchmarks.transport_slices [--peers PYTHON]

`--peers` is the interpreter of an environment with obstore; without it those rows are left out. The server is a
stand-in in a process of its own; each way of reading is a process as well. Rounds take turns, medians count.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks import transport_slices_client as client
from benchmarks.machine import describe_machine
from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn, profile
from monocontext.testing.profiles import Part, Profile

_PREFIX = "text"
_REPEATS = 3
"""Timed reads of one process."""


@dataclass(frozen=True, slots=True)
class Case:
    """What is read, over what distance, in which ways."""

    name: str
    object_bytes: int
    latency: Profile
    connection_bytes_per_second: float | None
    ways: tuple[str, ...]
    mallocs: tuple[str, ...] = ("plain",)

    @property
    def text_bytes(self) -> int:
        return client.OBJECTS * self.object_bytes


CASES = {
    "large": Case(
        "50 x 1 MiB into one str, raw, 30 ms a GET, all warm",
        1 << 20,
        Profile("const_30", (Part(1, 0.030, 0),)),
        None,
        ("ours", "obstore, joined", "obstore, in place", "boto3"),
        ("mallopt", "plain"),
    ),
    "far": Case(
        "50 x 100 KB, const_150, 90 MB/s a connection",
        100_000,
        profile("const_150"),
        90e6,
        ("ours, cold", "ours", "obstore, joined", "boto3", "boto3, one by one"),
    ),
}


@dataclass(slots=True)
class Taken:
    """Seconds of wall time and of CPU, of all rounds."""

    walls: list[float]
    cpus: list[float]


def main(names: Sequence[str], rounds: int, peers: Path | None) -> None:
    """Measure and print one table a case."""
    for name in names:
        case, taken = CASES[name], dict[tuple[str, str], Taken]()
        with _server(name) as endpoint:
            for _ in range(rounds):
                for malloc in case.mallocs:
                    for way in case.ways:
                        found = _measure(way, endpoint, case, malloc, peers)
                        if found:
                            each = taken.setdefault((way, malloc), Taken([], []))
                            each.walls += [wall for wall, _ in found]
                            each.cpus += [cpu for _, cpu in found]
        _print(case, taken, rounds)


def _measure(way: str, endpoint: str, case: Case, malloc: str, peers: Path | None) -> list[tuple[float, float]] | None:
    """Wall and CPU seconds of the reads of one process; `None` where the client is not installed."""
    python = peers if way.startswith("obstore") else Path(sys.executable)
    if python is None:
        return None
    script = Path(client.__file__)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_") and not k.lower().endswith("_proxy")}
    environment |= {"AWS_ACCESS_KEY_ID": client.ACCESS, "AWS_SECRET_ACCESS_KEY": client.SECRET}
    environment |= {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull}
    environment["PYTHONPATH"] = str(script.parents[1])
    repeats = 1 if way == "boto3, one by one" else _REPEATS
    command = [python, script, way, endpoint, _PREFIX, case.text_bytes, repeats, malloc]
    done = subprocess.run([str(each) for each in command], env=environment, capture_output=True, text=True, timeout=300)
    if done.returncode:
        print(f"{way}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        return None
    found: list[tuple[float, float]] = json.loads(done.stdout)
    return found


def _print(case: Case, taken: dict[tuple[str, str], Taken], rounds: int) -> None:
    machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
    print(f"{case.name}; {rounds} rounds in turns\n({machine})\n")
    print("| way | malloc | wall, ms | best | CPU, ms | times ours |")
    print("|---|---|---:|---:|---:|---:|")
    for (way, malloc), each in taken.items():
        ours = statistics.median(taken[case.ways[0], malloc].walls)
        wall = statistics.median(each.walls)
        cells = f"{1e3 * wall:.0f} | {1e3 * min(each.walls):.0f} | {1e3 * statistics.median(each.cpus):.0f}"
        print(f"| {way} | {malloc} | {cells} | {wall / ours:.2f} |")
    print()


@contextmanager
def _server(case: str) -> Iterator[str]:
    command = [sys.executable, "-m", "benchmarks.transport_slices", "--serve", case]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def _serve(case: Case) -> None:
    """The text as a context, and as plain objects beside it."""
    dice = random.Random(5)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(5000)]
    text = " ".join(dice.choices(words, k=case.text_bytes // 4))[: case.text_bytes]
    size = case.object_bytes
    publish(text, open_store(f"memory://slices/{_PREFIX}"), frame_bytes=size, segment_bytes=size, codec="raw")
    store = open_store("memory://slices")
    for i in range(client.OBJECTS):
        store.put(f"{_PREFIX}-plain/{i:02d}", text[i * size : (i + 1) * size].encode())
    with S3StandIn(store, latency=case.latency, connection_bytes_per_second=case.connection_bytes_per_second) as server:
        print(server.endpoint, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.transport_slices", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=[*CASES])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peers", type=Path, help="interpreter of an environment with obstore")
    parser.add_argument("--serve", choices=CASES, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve:
        _serve(CASES[arguments.serve])
    main(arguments.cases, arguments.rounds, arguments.peers)
