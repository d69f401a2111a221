"""Peers side by side: each goes through the same session in a process of its own, in turns, over some rounds.

The server is the stand-in, calibrated by a profile and a link. Wrong answers end the run.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import machine_line
from benchmarks.options import Commands, amount, head_line, parse_list, row_line
from benchmarks.processes import in_turns, run_client
from benchmarks.wall import client
from benchmarks.wall.session import session, text
from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.link import CONNECTION_BYTES_PER_SECOND

OURS = ("monocontext", "str in memory")
_FIGURES = ("stall_seconds", "open_seconds", "requests", "bytes", "peak_bytes", "cpu_seconds")


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    nic_bytes_per_second: float = 100e6
    rounds: int = 3
    think_seconds: float = 1.0
    ways: Sequence[str] = tuple(client.WAYS)
    seed: int = 0


def add(commands: Commands) -> None:
    """Add the sub-command."""
    plan = Plan()
    command = commands.add_parser("peers", help="this library beside others, one session each, on the wall clock")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="of the text, as 200MB")
    command.add_argument("--rounds", type=int, default=plan.rounds, help="of each way; medians count")
    command.add_argument("--way", type=parse_list, default=("",), help="parts of the names of the ways to measure")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Measure and print the table, the quickest way first."""
    ways = [name for name in client.WAYS if any(part in name for part in arguments.way)]
    plan = Plan(arguments.size, rounds=arguments.rounds, ways=ways)
    print(f"{plan}\n({machine_line()})\n")
    rows = run(plan)
    print(head_line("reader", "waiting, s", "open, s", "requests", "MB", "peak MiB", "CPU, s"))
    for each in sorted(rows, key=lambda each: float(each["stall_seconds"])):
        seconds = f"{each['stall_seconds']:.2f}", f"{each['open_seconds']:.2f}"
        sizes = f"{each['bytes'] / 1e6:.0f}", f"{each['peak_bytes'] / (1 << 20):.0f}"
        name = f"{each['way']} {each['version']}".strip()
        print(row_line(name, *seconds, f"{each['requests']:.0f}", *sizes, f"{each['cpu_seconds']:.1f}"))
    return 0


def run(plan: Plan) -> list[dict[str, Any]]:
    """The medians of each way that is installed. Raises `AssertionError` where one read another text."""
    data = text(plan.size_bytes)
    played = session(data, plan.seed, plan.think_seconds)
    with tempfile.TemporaryDirectory() as folder, _server(plan, data) as server:
        path = Path(folder) / "session.json"
        path.write_text(played.to_json())
        (Path(folder) / client.TEXT).write_bytes(data)

        def measure(name: str) -> dict[str, Any] | None:
            server.reset_counts()
            found = run_client(client.__file__, name, path, endpoint=server.endpoint, ours=name.startswith(OURS))
            if found is not None and found["found"] != played.answers:
                raise AssertionError(f"{name}: gave {found['found']}, expected {played.answers}")
            return found and found | {"requests": server.requests, "bytes": server.bytes_sent}

        taken = in_turns(plan.ways, plan.rounds, measure)
    return [
        {"way": name, "version": runs[0]["version"]}
        | {figure: statistics.median(run[figure] for run in runs) for figure in _FIGURES}
        for name, runs in taken.items()
    ]


@contextmanager
def _server(plan: Plan, data: bytes) -> Iterator[S3StandIn]:
    """With the text as one object for those who read ranges, and as a context for us."""
    open_store("memory://peers").put(client.TEXT, data)
    publish(data.decode("ascii"), f"memory://peers/{client.CONTEXT}", replace=True)
    with S3StandIn(
        open_store("memory://peers"),
        bucket=client.BUCKET,
        latency=plan.profile,
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND,
        link_bytes_per_second=plan.nic_bytes_per_second,
        seed=plan.seed,
    ) as server:
        yield server
