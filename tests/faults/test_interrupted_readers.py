"""Interrupts at random moments of readers beside the usual one: with a cache on disk, of DeepRecurse, served.

What comes after an interrupt is right, as in `test_interrupts`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.engine.remote import ServedReader
from monocontext.stores import open_store
from monocontext.stores.disk.cache import TEMPORARY
from monocontext.stores.memory import forget
from monocontext.testing import S3StandIn
from monocontext.text import served_text
from monocontext.text.deeprecurse import open_deeprecurse_lines

from .interrupting import WAYS
from .test_interrupts import READS, TEXT, Opened, Reads, campaign, interrupted

ALL_LINES = TEXT.splitlines(keepends=True)


def _lines(text: Any, start: int, stop: int) -> str:
    return "".join(ALL_LINES[start:stop]) if text is TEXT else str(text[start:stop])


LINE_READS: Reads = {
    "lines": lambda text, random: _lines(text, offset := random.randrange(4_000), offset + random.randrange(1, 50)),
    "many lines": lambda text, random: _lines(text, offset := random.randrange(2_000), offset + 1_500),
    "all lines": lambda text, random: list(ALL_LINES if text is TEXT else text),
}


@contextmanager
def disk_cached(folder: Path) -> Iterator[Opened]:
    """The cache takes no more than half of the text: room is made all the time."""
    with S3StandIn({}) as server:
        url = server.url("ctx")
        publish(TEXT, url, store_options={"endpoint": server.endpoint}, codec="raw", frame_bytes=4_000)
        place = folder / "kept"
        options: dict[str, Any] = {"endpoint": server.endpoint, "cache_bytes": 60_000}
        with Monocontext.open(url, **options, cache_dir=place, cache_dir_bytes=100_000) as context:
            yield Opened(context, READS)
        until = time.monotonic() + 30  # a thread of the last read, which was struck, may still be writing
        while len(left := list(place.rglob(f"{TEMPORARY}*"))) > 1 and time.monotonic() < until:
            time.sleep(0.1)
        assert len(left) <= 1, left  # of what was struck twice, in giving its file up


@contextmanager
def deeprecurse(folder: Path) -> Iterator[Opened]:
    name = f"interrupted-{time.time_ns()}"
    store = open_store(f"memory://{name}")
    rows, offset = [], 0
    for number, start in enumerate(range(0, len(ALL_LINES), 100)):
        piece = ALL_LINES[start : start + 100]
        key = f"segment_{number:06d}.log"
        store.put(key, "".join(piece).encode())
        rows.append({"segment": key, "start_line": offset, "line_count": len(piece)})
        offset += len(piece)
    store.put("manifest.json", json.dumps(rows).encode())
    lines = open_deeprecurse_lines(store, cache_bytes=60_000)
    try:
        yield Opened(lines, LINE_READS)
    finally:
        lines.close()
        forget(name)


@contextmanager
def served(folder: Path) -> Iterator[Opened]:
    name = f"interrupted-{time.time_ns()}"
    publish(TEXT, f"memory://{name}", codec="raw", frame_bytes=4_000)
    with Monocontext.open(f"memory://{name}") as context:
        text = served_text(ServedReader(context.serve().answer, cache_bytes=30_000))
        yield Opened(text, READS)
    forget(name)


KINDS: dict[str, Callable[[Path], AbstractContextManager[Opened]]] = {
    "disk cache": disk_cached,
    "deeprecurse": deeprecurse,
    "served": served,
}


@pytest.mark.slow
@pytest.mark.parametrize("interrupts", [12, pytest.param(90, marks=[pytest.mark.fuzz, pytest.mark.timeout(1200)])])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_next_read_is_right(kind: str, way: str, tmp_path: Path, interrupts: int) -> None:
    interrupted(KINDS[kind](tmp_path), way, lambda here: campaign(here, way, interrupts, seed=1))
