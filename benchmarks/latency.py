"""Print the table of the note that began this project: one slice of 50,000 lines over S3, read in five ways.

The server is the stand-in: 150 ms to the first byte of each GET, and 90 MB/s a connection.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from typing import NamedTuple
from unittest.mock import patch

from benchmarks.options import Commands, at_least_1, head_line, machine_line, row_line
from benchmarks.processes import KEYS
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import S3StandIn
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

SEGMENTS, LINES, LINE_BYTES = 50, 1000, 100  # lines of each segment, bytes of each line
SEGMENT_BYTES = LINES * LINE_BYTES
_ONE_BY_ONE = "one after another"
_CONTEXT_NAMES = {"parallel": "segments", "bigger segments": "bigger", "one object with byte ranges": "object"}
EXPECTED = {_ONE_BY_ONE: 7.5, "parallel": 0.3, "bigger segments": 0.15, "one object with byte ranges": 0.1}
"""The seconds that the note expected; none after a preload, or of a warm text."""


class Row(NamedTuple):
    """The cost of one read of the text."""

    seconds: float
    gets: int
    bytes_sent: int


def add(commands: Commands) -> None:
    command = commands.add_parser("latency", help="one slice over S3 at 150 ms, in the five ways of the original note")
    command.add_argument("--rounds", type=at_least_1, default=3, help="times of each way; the table shows medians")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    print(f"{SEGMENTS} segments of {LINES} lines, 150 ms; medians of {arguments.rounds}\n({machine_line()})\n")
    print(head_line("way", "the note, s", "seconds", "GETs", "bytes read"))
    for way, rows in run(arguments.rounds).items():
        seconds, gets, bytes_sent = (statistics.median(column) for column in zip(*rows, strict=True))
        print(row_line(way, EXPECTED.get(way, 0.0), f"{seconds:.3f}", f"{gets:.0f}", f"{bytes_sent:,.0f}"))
    return 0


def run(rounds: int, latency: str = "const_150") -> dict[str, list[Row]]:
    """The rows of each way, one for each round. Raises `AssertionError` if a way reads a wrong text."""
    text = "".join(f"{number:0{LINE_BYTES - 1}d}\n" for number in range(SEGMENTS * LINES))
    store = _store_with(text)
    results: dict[str, list[Row]] = defaultdict(list)
    server = S3StandIn(store, latency=latency, connection_bytes_per_second=CONNECTION_BYTES_PER_SECOND)
    with patch.dict(os.environ, KEYS), server:
        client = open_store(server.url(), endpoint=server.endpoint)
        for _ in range(rounds):
            results[_ONE_BY_ONE].append(_measure(partial(_read_one_by_one, client), text, server))
            for way, name in _CONTEXT_NAMES.items():
                with Monocontext.open(server.url(name), endpoint=server.endpoint, prefetch="off") as context:
                    results[way].append(_measure(partial(context.__getitem__, slice(None)), text, server))
            with Monocontext.open(server.url("segments"), endpoint=server.endpoint, preload=True) as context:
                results["preload and warm"].append(_measure(partial(context.__getitem__, slice(None)), text, server))
    return dict(results)


def _store_with(text: str) -> Store:
    """A store that holds the text as one object for each segment, and as contexts with segments of three sizes."""
    store = open_store("memory://latency")
    for number in range(SEGMENTS):
        store.put(f"lines/{number:02}", text[number * SEGMENT_BYTES :][:SEGMENT_BYTES].encode())
    for name, segments in {"segments": SEGMENTS, "bigger": SEGMENTS // 10, "object": 1}.items():
        publish(
            text, f"memory://latency/{name}", replace=True, codec="raw", filters=False,
            segment_bytes=len(text) // segments, frame_bytes=SEGMENT_BYTES,
        )  # fmt: skip
    return store


def _read_one_by_one(store: Store) -> str:
    return "".join(store.get(f"lines/{number:02}").data.decode() for number in range(SEGMENTS))


def _measure(read: Callable[[], object], text: str, server: S3StandIn) -> Row:
    server.reset_counts()
    began = time.perf_counter()
    slice_read = str(read())
    seconds = time.perf_counter() - began
    if slice_read != text:
        raise AssertionError("a read returned a text that differs from the published one")
    return Row(seconds, server.counts["GET"], server.bytes_sent)
