"""Compare monocontext with other ways to read on the wall clock: each plays one session in a process, in turns.

The server is the stand-in, with the latency of a profile and a shared link. A wrong answer ends the run.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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

Turn = dict[str, Any]
"""`think` seconds, the `code` that a model would stream, and `steps`: ["slice", start, stop], ["find", needle] or
["pause", seconds], which is a sub-call."""

SLICE_BYTES = 5_000_000
_LEAST_BYTES = SLICE_BYTES * 3 // 2  # the slice begins within the first third
_FIGURES = ("stall_seconds", "open_seconds", "requests", "bytes", "peak_bytes", "cpu_seconds")


@dataclass(frozen=True, slots=True)
class Plan:
    """The session, the server and the ways of one run."""

    size_bytes: int = 200_000_000
    profile: str = "far_150"
    link_bytes_per_second: float = 100e6
    rounds: int = 3
    think_seconds: float = 1.0
    ways: Sequence[str] = tuple(client.WAYS)


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
    print(f"{plan}\n({machine_line()})\n")
    rows = run(plan)
    print(head_line("way", "waiting, s", "open, s", "requests", "MB", "peak MiB", "CPU, s"))
    for row in sorted(rows, key=lambda row: float(row["stall_seconds"])):
        seconds = f"{row['stall_seconds']:.2f}", f"{row['open_seconds']:.2f}"
        sizes = f"{row['bytes'] / 1e6:.0f}", f"{row['peak_bytes'] / (1 << 20):.0f}"
        name = f"{row['way']} {row['version']}".strip()
        print(row_line(name, *seconds, f"{row['requests']:.0f}", *sizes, f"{row['cpu_seconds']:.1f}"))
    return 0


def run(plan: Plan) -> list[dict[str, Any]]:
    """The medians of each installed way. Raises `AssertionError` if one reads a wrong text."""
    data = make_incident(plan.size_bytes, 0.7)
    session = make_session(data, plan.think_seconds)
    with tempfile.TemporaryDirectory() as folder, _make_server(plan, data) as server:
        path = Path(folder) / "session.json"
        path.write_text(json.dumps({"size_bytes": len(data), "turns": session.turns}))
        (Path(folder) / client.TEXT).write_bytes(data)

        def measure(name: str) -> dict[str, Any] | None:
            server.reset_counts()
            result = run_client(client.__file__, name, path, endpoint=server.endpoint)
            if result is None:
                return None
            if result["answers"] != session.answers:
                raise AssertionError(f"{name} read {result['answers']}, expected {session.answers}")
            return result | {"requests": server.requests, "bytes": server.bytes_sent}

        runs_by_way = in_turns(plan.ways, plan.rounds, measure)
    return [
        {"way": name, "version": runs[0]["version"]}
        | {figure: statistics.median(run[figure] for run in runs) for figure in _FIGURES}
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


@dataclass(frozen=True, slots=True)
class Session:
    """The turns of a model over a text in ASCII, where a character is a byte."""

    turns: list[Turn]
    answers: list[int]  # the CRC-32 of each slice and the place that each search finds, in order


def make_session(data: bytes, think_seconds: float) -> Session:
    """A session of 13 turns, before each of which the model thinks for about `think_seconds`."""
    turns = list(_turns(data, Random("session 0"), think_seconds))
    answers = []
    for turn in turns:
        for step in turn["steps"]:
            match step:
                case "slice", start, stop:
                    answers.append(crc32(data[start:stop]))
                case "find", needle:
                    answers.append(data.find(needle.encode()))
    return Session(turns, answers)


def _turns(data: bytes, dice: Random, think_seconds: float) -> Iterator[Turn]:
    """Head and tail, a large slice, small slices, chunks with sub-calls, a search, and the text around its match."""
    size = len(data)

    def turn(code: str, *steps: list[Any]) -> Turn:
        return {"think": round(think_seconds * dice.uniform(0.7, 1.5), 3), "code": code + AFTER, "steps": list(steps)}

    yield turn("print(len(context))\nprint(context[:2000])\n", ["slice", 0, 2000])
    yield turn("print(context[-2000:])\n", ["slice", size - 2000, size])
    offset = dice.randrange(size // 4, size // 3)
    yield turn(f"part = context[{offset}:{offset + SLICE_BYTES}]\n", ["slice", offset, offset + SLICE_BYTES])
    zooms = [dice.randrange(size - 3000) for _ in range(12)]
    for first, second in zip(zooms[::2], zooms[1::2], strict=True):
        code = f"print(context[{first}:{first + 3000}])\nprint(context[{second}:{second + 3000}])\n"
        yield turn(code, ["slice", first, first + 3000], ["slice", second, second + 3000])
    chunk, chunks = 400_000, min(10, size // 400_000)
    steps: list[list[Any]] = []
    for start in range(0, chunks * chunk, chunk):
        steps += ["slice", start, start + chunk], ["pause", 0.3]
    code = f"for i in range(0, {chunks * chunk}, {chunk}):\n    notes.append(llm_query(context[i:i + {chunk}]))\n"
    yield turn(code, *steps)
    yield turn(f"at = context.find({NEEDLE!r})\nprint(at)\n", ["find", NEEDLE])
    hit = data.find(NEEDLE.encode())
    yield turn(f"print(context[{hit - 300}:{hit + 900}])\n", ["slice", hit - 300, hit + 900])
    again = "".join(f"print(context[{offset}:{offset + 3000}])\n" for offset in zooms[:4])
    yield turn(again, *(["slice", offset, offset + 3000] for offset in zooms[:4]))
