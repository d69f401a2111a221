"""Print the table of the note that this project was created from: one slice of 50,000 lines over S3, read in five ways.

The server is the stand-in: 150 ms to the first byte of each GET, and 90 MB/s a connection. The note expected, for 50
segments of 1000 lines: 7.5 s one after another, 0.3 in parallel, 0.15 in bigger segments, 0.1 by byte ranges of one
object, and none after a preload.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

from benchmarks.options import Commands, head_line, machine_line, row_line
from benchmarks.processes import KEYS
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

SEGMENTS, LINES = 50, 1000
LINE_BYTES = 100
SEGMENT_BYTES = LINES * LINE_BYTES
EXPECTED = {"one after another": 7.5, "parallel": 0.3, "bigger segments": 0.15, "one object with byte ranges": 0.1}
"""The seconds in the note. After a preload, or warm, it expected none."""


def add(commands: Commands) -> None:
    command = commands.add_parser("latency", help="one slice behind 150 ms, in the ways of the original note")
    command.add_argument("--rounds", type=int, default=3, help="times of each way; the table shows medians")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    print(f"{SEGMENTS} segments of {LINES} lines, 150 ms; medians of {arguments.rounds}\n({machine_line()})\n")
    print(head_line("way", "the note, s", "seconds", "GETs", "bytes read"))
    for way, rows in run(arguments.rounds).items():
        seconds, gets, size = (statistics.median(column) for column in zip(*rows, strict=True))
        print(row_line(way, EXPECTED.get(way, 0.0), f"{seconds:.3f}", f"{gets:.0f}", f"{size:,.0f}"))
    return 0


def run(rounds: int, latency: str = "const_150") -> dict[str, list[tuple[float, int, int]]]:
    """Seconds, GETs and bytes of each round of each way. Raises `AssertionError` if one reads another text."""
    text = "".join(f"{number:0{LINE_BYTES - 1}d}\n" for number in range(SEGMENTS * LINES))
    store = open_store("memory://latency")
    parts = [text[start : start + SEGMENT_BYTES] for start in range(0, len(text), SEGMENT_BYTES)]
    for number, part in enumerate(parts):
        store.put(f"lines/{number:02}", part.encode())
    for name, segments in {"segments": SEGMENTS, "bigger": SEGMENTS // 10, "object": 1}.items():
        publish(
            text, f"memory://latency/{name}", replace=True, codec="raw", filters=False,
            segment_bytes=len(text) // segments, frame_bytes=SEGMENT_BYTES,
        )  # fmt: skip
    results: dict[str, list[tuple[float, int, int]]] = {}
    server = S3StandIn(store, latency=latency, connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND)
    with patch.dict(os.environ, KEYS), server:

        def measure(way: str, read: Callable[[], object]) -> None:
            server.reset_counts()
            began = time.perf_counter()
            slice_read = str(read())
            seconds = time.perf_counter() - began
            if slice_read != text:
                raise AssertionError(f"{way}: another text")
            results.setdefault(way, []).append((seconds, server.counts["GET"], server.bytes_sent))

        def opened(name: str) -> Monocontext:
            return Monocontext.open(server.url(name), endpoint=server.endpoint, prefetch="off")

        def one_after_another() -> str:
            return "".join(s3.get(f"lines/{number:02}").data.decode() for number in range(SEGMENTS))

        s3 = open_store(server.url(), endpoint=server.endpoint)
        for _ in range(rounds):
            measure("one after another", one_after_another)
            for way, name in {
                "parallel": "segments",
                "bigger segments": "bigger",
                "one object with byte ranges": "object",
            }.items():
                with opened(name) as context:
                    measure(way, lambda context=context: context[:])  # type: ignore[misc]
            with Monocontext.open(server.url("segments"), endpoint=server.endpoint, preload=True) as context:
                measure("preload and warm", lambda context=context: context[:])  # type: ignore[misc]
    return results
