"""Measure the cost and the gain of search filters: `python -m benchmarks search --size 1G --corpora code,logs`.

For each text it measures publishing with and without filters, a search for each needle in a freshly opened context on a
distant store. A share is all bytes read (root, index pages,
filters and frames) divided by the stored bytes of the text alone. Every answer is checked against the text.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpora import NAMES, CorpusMissing, corpus, sha256, tiles
from benchmarks.machine import cpu_seconds, machine_line
from benchmarks.needles import Needle, choose
from benchmarks.options import Commands, amount, head_line, parse_list, row_line
from monocontext import Monocontext, publish, regex
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore, SlowStore
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

PUBLISH_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Plan:
    """The texts and searches of one run."""

    size_bytes: int = 1_000_000_000
    corpora: tuple[str, ...] = NAMES
    needles: int = 12
    """Needles of each kind."""
    seed: int = 4
    latency_seconds: float = 0.030
    """Before the first byte of each GET."""


@dataclass(frozen=True, slots=True)
class Search:
    """One search for one needle in a freshly opened context."""

    kind: str
    operation: str
    seconds: float
    share: float
    """Bytes read, divided by the stored bytes of the text."""


_OPERATIONS: dict[str, Callable[[Any, str], int]] = {
    "count": lambda text, query: int(text.count(query)),
    "in": lambda text, query: int(query in text),
    "finditer": lambda text, query: sum(1 for _ in regex.finditer(query, text)),
}
ASKED = (
    ("rare identifier", "count"),
    ("rare identifier", "in"),
    ("absent identifier", "in"),
    ("phrase", "count"),
    ("regex", "finditer"),
    ("word", "count"),
    ("common word", "count"),
)
"""Kinds of needles, each with an operation; `in` stops at the first place, the others find all."""


def add(commands: Commands) -> None:
    plan = Plan()
    command = commands.add_parser("search", help="cost and gain of search filters, by kind of needle")
    command.add_argument("--size", type=amount, default=plan.size_bytes, help="bytes of text, such as 64M or 1G")
    command.add_argument("--corpora", type=parse_list, default=plan.corpora, help=f"texts: {','.join(NAMES)}")
    command.add_argument("--needles", type=int, default=plan.needles, help="needles of each kind")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    """Measure and print; a text that cannot be made here is named and left out."""
    run(Plan(arguments.size, arguments.corpora, arguments.needles))
    return 0


def run(plan: Plan) -> dict[str, list[Search]]:
    """The figures of each text."""
    print(f"{plan}\n({machine_line()})")
    result = {}
    for name in plan.corpora:
        try:
            path = corpus(name, plan.size_bytes)
        except CorpusMissing as error:
            print(f"\n{name}: left out: {error}")
            continue
        result[name] = _measure(name, path, plan)
    return result


def _measure(name: str, path: Path, plan: Plan) -> list[Search]:
    times = tiles(name, plan.size_bytes)
    print(f"\n## {name}: {path.stat().st_size:,} bytes, {times} tiles, sha256 {sha256(path)[:16]}\n")
    with tempfile.TemporaryDirectory() as work:
        stored_bytes = _publish(path, Path(work))
        needles = choose(path.read_bytes(), times, plan.needles, plan.seed)
        searches = list(_searches(Path(work) / "filtered", needles, stored_bytes, plan.latency_seconds))
    _print_searches(searches)
    return searches


def _publish(path: Path, work: Path) -> int:
    """Publish both contexts in turns and print the least of the rounds; returns the stored bytes of the text."""
    path.read_bytes()  # into the page cache, else the first round would pay for it
    plain, filtered = work / "plain", work / "filtered"
    taken: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(PUBLISH_ROUNDS):
        for filters, place in ((False, plain), (True, filtered)):
            shutil.rmtree(place, ignore_errors=True)
            began, cpu_began = time.perf_counter(), cpu_seconds()
            with path.open("rb") as file:
                manifest = publish(iter(lambda: file.read(1 << 20), b""), place, filters=filters)
            taken[filters].append((time.perf_counter() - began, cpu_seconds() - cpu_began))
    seconds, cpu = (min(column) for column in zip(*taken[False], strict=True))
    filters_seconds, filters_cpu = (min(column) for column in zip(*taken[True], strict=True))
    text, stored = path.stat().st_size, manifest.stored_bytes
    extra = _size_bytes(filtered) - _size_bytes(plain)
    print(head_line("publish", "seconds", "CPU seconds", "bytes", "of the text"))
    print(row_line("without filters", f"{seconds:.2f}", f"{cpu:.2f}", f"{stored:,}", f"{stored / text:.1%}"))
    more = f"{filters_seconds - seconds:+.2f}", f"{filters_cpu - cpu:+.2f}"
    print(row_line("filters alone", *more, f"{extra:,}", f"{extra / text:.1%}"))
    print(f"\nCPU with filters: {filters_cpu / cpu:.2f} x of without\n")
    return stored


def _size_bytes(place: Path) -> int:
    return sum(info.size_bytes for info in LocalStore(place).list())


def _searches(place: Path, needles: Sequence[Needle], stored_bytes: int, latency_seconds: float) -> Iterator[Search]:
    """Each operation in a context of its own. Raises `AssertionError` for a wrong answer."""
    for kind, operation in ASKED:
        for needle in (item for item in needles if item.kind == kind):
            slow = SlowStore(LocalStore(place), latency_seconds, bytes_per_second=CONNECTION_BYTES_PER_SECOND)
            counted = CountingStore(slow)
            began = time.perf_counter()
            with Monocontext.open(counted) as context:
                result = _OPERATIONS[operation](context, needle.query)
            seconds = time.perf_counter() - began
            expected = min(needle.places, 1) if operation == "in" else needle.places
            if result != expected:
                raise AssertionError(f"{operation} of {needle}: {result}, expected {expected}")
            yield Search(kind, operation, seconds, counted.bytes_read / stored_bytes)


def _print_searches(searches: Sequence[Search]) -> None:
    print("Medians, and the worst needle; shares are of the stored bytes of the text.\n")
    print(head_line("needle", "operation", "share read", "worst", "ms", "worst"))
    for kind, operation in ASKED:
        rows = [search for search in searches if (search.kind, search.operation) == (kind, operation)]
        if not rows:
            continue
        shares, taken = [item.share for item in rows], [1000 * item.seconds for item in rows]
        cells = f"{statistics.median(shares):.2%}", f"{max(shares):.2%}", f"{statistics.median(taken):.0f}"
        print(row_line(f"{kind} ({len(rows)})", operation, *cells, f"{max(taken):.0f}"))
    print()
