"""Measure one slice of 50 segments of 1000 lines, read in nine ways, in one run.

A real S3 server (SeaweedFS; a directory where there is none) with a fixed time added to each GET and 90 MB/s a
connection. The first way is DeepRecurse's, re-implemented from its behaviour: one blocking GET a segment, no cache.
"""

from __future__ import annotations

import json
import os
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish
from monocontext.stores import open_store
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, SeaweedServer, SlowStore, find_weed

SEGMENTS = 50
LINES = 1000
LINE_CHARACTERS = 100
BYTES_PER_SECOND = 90e6
VERSION = 1


@dataclass(frozen=True, slots=True)
class Row:
    """One way of reading."""

    way: str
    seconds: float
    """Median over the rounds."""
    gets: int
    bytes_read: int
    times_faster: float
    """Than the first row, in this run."""


@dataclass(frozen=True, slots=True)
class Way:
    """How to read the text: `prepare` is not timed and gives what is."""

    name: str
    store: Store
    prepare: Callable[[Store], Callable[[], object]]


def main(latency_seconds: float, rounds: int, json_path: Path | None = None) -> list[Row]:
    """Measure, print the table, check that all ways read the same text."""
    text = _text()
    with ExitStack() as stack:
        root, server = stack.enter_context(_server())
        stores = {name: open_store(f"{root}/{name}") for name in ("legacy", "many", "big", "ranges")}
        _upload(stores, text)
        if server == "SeaweedFS":
            stores["boto3"] = open_store(f"{root}/many", transport="boto3")
        rows: list[Row] = []
        for way in _ways(stores, latency_seconds):
            taken, counted = [], CountingStore(way.store)
            for _ in range(rounds):
                read = way.prepare(counted)
                counted.reset()
                began = time.perf_counter()
                found = read()
                taken.append(time.perf_counter() - began)
                if found != text:
                    raise AssertionError(f"{way.name}: read another text")
            seconds = statistics.median(taken)
            first = rows[0].seconds if rows else seconds
            rows.append(Row(way.name, seconds, counted.gets, counted.bytes_read, first / seconds))
    result = {
        "benchmark": "latency",
        "version": VERSION,
        "machine": describe_machine(),
        "server": server,
        "latency_seconds": latency_seconds,
        "bytes_per_second": BYTES_PER_SECOND,
        "text_bytes": len(text),
        "rounds": rounds,
        "rows": [asdict(row) for row in rows],
    }
    _print(result, rows)
    if json_path:
        json_path.write_text(json.dumps(result, indent=1) + "\n")
    return rows


def _text() -> str:
    """Lines of random words, each ended by a newline at LINE_CHARACTERS: they compress about as logs do."""
    dice = random.Random(7)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(5000)]
    lines = (f"{i:06d} {' '.join(dice.choices(words, k=30))}"[: LINE_CHARACTERS - 1] for i in range(SEGMENTS * LINES))
    return "\n".join(lines) + "\n"


@contextmanager
def _server() -> Iterator[tuple[str, str]]:
    if find_weed() is None:
        with tempfile.TemporaryDirectory() as folder:
            yield folder, "directory"
        return
    with SeaweedServer() as server, mock.patch.dict(os.environ, server.environment):
        yield f"s3://{server.bucket}", "SeaweedFS"


def _upload(stores: dict[str, Store], text: str) -> None:
    size = LINES * LINE_CHARACTERS
    manifest = []
    for i in range(SEGMENTS):
        name = f"segment_{i:06d}.log"
        stores["legacy"].put(name, text[i * size : (i + 1) * size].encode())
        manifest.append({"segment": name, "start_line": i * LINES, "line_count": LINES})
    stores["legacy"].put("manifest.json", json.dumps(manifest).encode())
    publish(text, stores["many"], frame_bytes=size, segment_bytes=size, codec="raw")
    publish(text, stores["big"])
    publish(text, stores["ranges"], codec="raw")


def _ways(stores: dict[str, Store], latency_seconds: float) -> Iterator[Way]:
    slow = {
        name: SlowStore(store, latency_seconds, bytes_per_second=BYTES_PER_SECOND) for name, store in stores.items()
    }
    yield Way("one after another (DeepRecurse's way)", slow["legacy"], _one_after_another)
    yield Way("DeepRecurse's manifest, read by us", slow["legacy"], lambda store: _slice(store, unit="lines"))
    yield Way("parallel: 50 segments", slow["many"], _slice)
    if "boto3" in slow:
        yield Way("the same, GETs by boto3", slow["boto3"], _slice)
    yield Way("bigger segments, zstd frames", slow["big"], _slice)
    yield Way("one object and byte ranges", slow["ranges"], _slice)
    yield Way("preload: opening with everything", slow["many"], _preload)
    yield Way("after a preload", slow["many"], _open_with_preload)
    yield Way("warm: the same slice again", slow["many"], _warm)


def _one_after_another(store: Store) -> Callable[[], object]:
    segments = json.loads(store.get("manifest.json").data)

    def read() -> str:
        parts = []
        for segment in segments:
            lines = store.get(segment["segment"]).data.decode().splitlines(keepends=True)
            parts.append("".join(lines[: segment["line_count"]]))
        return "".join(parts)

    return read


def _slice(store: Store, **options: Any) -> Callable[[], object]:
    context = Monocontext.open(store, **options)
    return lambda: context[0 : len(context)]


def _preload(store: Store) -> Callable[[], object]:
    return lambda: Monocontext.open(store, preload=True)[0 : SEGMENTS * LINES * LINE_CHARACTERS]


def _open_with_preload(store: Store) -> Callable[[], object]:
    context = Monocontext.open(store, preload=True)
    return lambda: context[0 : len(context)]


def _warm(store: Store) -> Callable[[], object]:
    context = Monocontext.open(store)
    context[0 : len(context)]
    return lambda: context[0 : len(context)]


def _print(result: dict[str, Any], rows: list[Row]) -> None:
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    print(
        f"One slice of {result['text_bytes']:,} bytes; {1000 * result['latency_seconds']:.0f} ms added to each GET, "
        f"90 MB/s a connection; {result['server']}; median of {result['rounds']}\n({machine})\n"
    )
    print("| way | seconds | GETs | bytes read | times faster |")
    print("|---|---:|---:|---:|---:|")
    for row in rows:
        print(f"| {row.way} | {row.seconds:.4f} | {row.gets} | {row.bytes_read:,} | {row.times_faster:,.1f} |")
