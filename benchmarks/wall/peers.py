"""Compare monocontext with other ways to read on the wall clock: each plays one session in a process, in turns.

The server is the stand-in, with the latency of a profile and a shared link. A wrong answer ends the run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from random import Random
from typing import Any
from zlib import crc32

from benchmarks.logs import NEEDLE, make_incident
from benchmarks.options import Commands, amount, at_least_1, head_line, machine_line, row_line
from benchmarks.processes import in_turns, run_client
from benchmarks.virtual.play import AFTER
from benchmarks.wall import client
from monocontext import publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

SLICE_BYTES = 5_000_000  # the large slice
ZOOM_BYTES = 3000  # each of the small slices at random offsets
CHUNK_BYTES = 400_000  # each slice for a sub-call
SUB_CALL_SECONDS = 0.3
_LEAST_BYTES = SLICE_BYTES * 3 // 2  # the large slice begins within the first third of the text


@dataclass(frozen=True, slots=True)
class Plan:
    """The session, the server and the ways of one run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    link_bytes_per_second: float = 100e6
    rounds: int = 3
    think_seconds: float = 1.0  # the model thinks for about so long before each turn
    ways: Sequence[str] = tuple(client.WAYS)


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of one way."""

    way: str
    version: str  # of its library; empty for none
    stall_seconds: float  # spent waiting for the reads of a session
    open_seconds: float
    requests: float
    bytes: float  # that the server sent
    peak_bytes: float  # of memory
    cpu_seconds: float


def add(commands: Commands) -> None:
    plan = Plan()
    command = commands.add_parser("peers", help="this library against others, one session each, on the wall clock")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="size of the text, such as 200MB")
    command.add_argument("--rounds", type=at_least_1, default=plan.rounds, help="runs of each way; medians are shown")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Measure and print the table, the fastest way first."""
    if arguments.size < _LEAST_BYTES:
        raise SystemExit(f"--size must be at least {_LEAST_BYTES:,} bytes for a slice of {SLICE_BYTES:,} bytes")
    plan = Plan(arguments.size, rounds=arguments.rounds)
    print(f"{plan.size_bytes / 1e6:g} MB, {plan.profile}; medians of {plan.rounds}\n({machine_line()})\n")
    print(head_line("way", "waiting, s", "open, s", "requests", "MB", "peak MiB", "CPU, s"))
    for row in sorted(run(plan), key=lambda row: row.stall_seconds):
        seconds = f"{row.stall_seconds:.2f}", f"{row.open_seconds:.2f}"
        sizes = f"{row.bytes / 1e6:.0f}", f"{row.peak_bytes / (1 << 20):.0f}"
        name = f"{row.way} {row.version}".strip()
        print(row_line(name, *seconds, f"{row.requests:.0f}", *sizes, f"{row.cpu_seconds:.1f}"))
    return 0


def run(plan: Plan) -> list[Row]:
    """The medians of each installed way. Raises `AssertionError` if one reads a wrong text."""
    data = make_incident(plan.size_bytes, 0.7)
    turns = list(_turns(data, Random("session 0"), plan.think_seconds))
    expected = [_expected_answer(data, step) for turn in turns for step in turn["steps"] if step[0] != "pause"]
    with tempfile.TemporaryDirectory() as folder, _make_server(plan, data) as server:
        path = Path(folder) / "session.json"
        path.write_text(json.dumps({"size_bytes": len(data), "turns": turns}))
        path.with_name(client.TEXT).write_bytes(data)

        def measure(name: str) -> dict[str, Any] | None:
            server.reset_counts()
            result = run_client(client.__file__, name, path, endpoint=server.endpoint)
            if result is None:
                return None
            if result["answers"] != expected:
                raise AssertionError(f"{name} read {result['answers']}, expected {expected}")
            return result | {"requests": server.requests, "bytes": server.bytes_sent}

        runs_by_way = in_turns(plan.ways, plan.rounds, measure)
    figures = [field.name for field in fields(Row) if field.name not in ("way", "version")]
    return [
        Row(name, runs[0]["version"], **{figure: statistics.median(run[figure] for run in runs) for figure in figures})
        for name, runs in runs_by_way.items()
    ]


def _make_server(plan: Plan, data: bytes) -> S3StandIn:
    """A server that holds the text as one object and as a context."""
    open_store("memory://peers").put(client.TEXT, data)
    publish(data.decode("ascii"), f"memory://peers/{client.CONTEXT}", replace=True)
    return S3StandIn(
        open_store("memory://peers"), bucket=client.BUCKET, latency=plan.profile,
        connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND, link_bytes_per_second=plan.link_bytes_per_second,
    )  # fmt: skip


def _expected_answer(data: bytes, step: client.Step) -> int:
    """The CRC-32 of a slice, or the offset that a search finds. The text is ASCII, so a character is a byte."""
    kind, *values = step
    return crc32(data[slice(*values)]) if kind == "slice" else data.find(values[0].encode())


def _turns(data: bytes, random: Random, think_seconds: float) -> Iterator[client.Turn]:
    """Head and tail, a large slice, small slices, chunks with sub-calls, a search, and the text around its match."""
    size = len(data)

    def turn(code: str, *steps: client.Step) -> client.Turn:
        seconds = round(think_seconds * random.uniform(0.7, 1.5), 3)
        return {"think_seconds": seconds, "code": code + AFTER, "steps": list(steps)}

    def print_slices(*slices: tuple[int, int]) -> client.Turn:
        code = "".join(f"print(context[{start}:{stop}])\n" for start, stop in slices)
        return turn(code, *(["slice", start, stop] for start, stop in slices))

    yield print_slices((0, 2000))
    yield print_slices((size - 2000, size))
    offset = random.randrange(size // 4, size // 3)
    yield turn(f"part = context[{offset}:{offset + SLICE_BYTES}]\n", ["slice", offset, offset + SLICE_BYTES])
    starts = (random.randrange(size - ZOOM_BYTES) for _ in range(12))
    zooms = [(start, start + ZOOM_BYTES) for start in starts]
    yield from (print_slices(*pair) for pair in zip(zooms[::2], zooms[1::2], strict=True))
    end = min(10, size // CHUNK_BYTES) * CHUNK_BYTES
    steps: list[client.Step] = []
    for start in range(0, end, CHUNK_BYTES):
        steps += ["slice", start, start + CHUNK_BYTES], ["pause", SUB_CALL_SECONDS]
    loop = f"for i in range(0, {end}, {CHUNK_BYTES}):\n    notes.append(llm_query(context[i:i + {CHUNK_BYTES}]))\n"
    yield turn(loop, *steps)
    yield turn(f"at = context.find({NEEDLE!r})\nprint(at)\n", ["find", NEEDLE])
    match = data.find(NEEDLE.encode())
    yield print_slices((match - 300, match + 900))
    yield print_slices(*zooms[:4])
