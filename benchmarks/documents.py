"""Measure a context of many documents: upload, open, find by name, loops over it, a pass.

Each part runs in a process of its own, which says what it held. GETs are those of a store that counts; seconds are of
the CPU, all threads together, since the machine may be busy with other work. Loops stand beside the same loop over a
list in memory, of documents made in the same way.
"""

from __future__ import annotations

import multiprocessing
import random
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from benchmarks import results
from benchmarks.machine import cpu_seconds

SEED = 18
NEEDLE = "3f0c1d4e-7a52-4b1c-9c1f-0d2f6a9b8e11"
CACHE_BYTES = 64 << 20
_POOL_CHARACTERS = 16 << 20
Row = dict[str, Any]


def items(count: int, characters: int) -> Iterator[tuple[str, str, dict[str, int]]]:
    """Documents of words, three of which hold the needle; making one takes a microsecond."""
    choice = random.Random(SEED)
    words = [f"{choice.getrandbits(28):x}" for _ in range(20_000)]
    pool = " ".join(choice.choices(words, k=_POOL_CHARACTERS // 8))
    hits = {count // 7, count // 2, count - 3}
    for i in range(count):
        at = choice.randrange(len(pool) - characters)
        body = pool[at : at + characters - 10]
        yield f"doc/{i:09}", f"{i:08x} {NEEDLE if i in hits else ''}{body}\n", {"row": i}


def upload(place: str, count: int, characters: int) -> list[Row]:
    from monocontext import documents, publish

    given, begun = time.process_time(), 0.0
    for _ in items(count, characters):
        pass
    making = time.process_time() - given
    before, held = cpu_seconds(), peak_mib()
    root = publish(documents(items(count, characters)), place)
    begun = cpu_seconds() - before - making
    return [
        {
            "what": "upload", "MB": round(root.text_bytes / 1e6), "cpu_seconds": round(begun, 1),
            "MB_per_cpu_second": round(root.text_bytes / 1e6 / begun, 1), "resident_MiB": peak_mib(),
            "resident_before_MiB": held, "stored_MB": round(root.stored_bytes / 1e6),
        }
    ]  # fmt: skip


def lookups(place: str, count: int, characters: int) -> list[Row]:
    with _Reading(place, "text") as reading:
        rows = [reading.row("open", lambda: None)]
        rows.append(reading.row("len(documents)", lambda: len(reading.context.documents)))
        rows.append(reading.row("documents[name]", lambda: len(reading.context.documents[f"doc/{count // 3:09}"])))
    with _Reading(place, "list") as reading:
        reading.row("open", lambda: None)
        rows.append(reading.row("len(texts)", lambda: len(reading.context)))
    return rows


def loop(place: str, count: int, characters: int) -> list[Row]:
    with _Reading(place, "list") as reading:
        reading.row("open", lambda: None)
        found = reading.row("[d for d in texts if uuid in d]", lambda: len([d for d in reading.context if NEEDLE in d]))
    assert found["gave"] == 3
    return [found | {"us_per_document": round(1e6 * found["cpu_seconds"] / count, 2)}]


def loop_of_regex(place: str, count: int, characters: int) -> list[Row]:
    from monocontext import regex as re

    with _Reading(place, "dict") as reading:
        reading.row("open", lambda: None)
        found = reading.row(
            "{k: v for k, v in texts.items() if re.search(uuid, v)}",
            lambda: len({k: v for k, v in reading.context.items() if re.search(NEEDLE, v)}),
        )
    assert found["gave"] == 3
    return [found | {"us_per_document": round(1e6 * found["cpu_seconds"] / count, 2)}]


def whole_pass(place: str, count: int, characters: int) -> list[Row]:
    with _Reading(place, "list", cache_bytes=CACHE_BYTES) as reading:
        held = peak_mib()
        reading.row("open", lambda: None)
        row = reading.row(
            "a pass: sum(d.count(' ') for d in texts)", lambda: sum(d.count(" ") for d in reading.context)
        )
    row |= {"resident_MiB": peak_mib(), "resident_before_MiB": held, "cache_MiB": CACHE_BYTES >> 20}
    return [row | {"us_per_document": round(1e6 * row["cpu_seconds"] / count, 2)}]


def in_memory(place: str, count: int, characters: int) -> list[Row]:
    few = min(count, 100_000)
    texts = [text for _, text, _ in items(few, characters)]
    began = time.process_time()
    gave = len([d for d in texts if NEEDLE in d])
    seconds = time.process_time() - began
    row = {"what": "the same over a list in memory", "documents": few, "gave": gave, "cpu_seconds": round(seconds, 3)}
    return [row | {"us_per_document": round(1e6 * seconds / few, 2)}]


class _Reading:
    """An open context over a store that counts; `row` measures one step."""

    def __init__(self, place: str, shape: str, **options: Any):
        from monocontext import Monocontext
        from monocontext.stores import open_store
        from monocontext.testing import CountingStore

        self.store = CountingStore(open_store(place))
        self.context: Any = Monocontext.open(self.store, shape=shape, **options)  # type: ignore[call-overload]
        whole = self.context if shape == "text" else self.context.text
        self._stored_bytes = whole._reader.manifest.stored_bytes

    def row(self, what: str, step: Callable[[], object]) -> Row:
        before = cpu_seconds()
        gave = step()
        row = {"what": what, "gave": gave, "cpu_seconds": round(cpu_seconds() - before, 3), "GETs": self.store.gets}
        row["stored_share_percent"] = round(100 * self.store.bytes_read / self._stored_bytes, 3)
        self.store.reset()
        return row

    def __enter__(self) -> _Reading:
        return self

    def __exit__(self, *_: object) -> None:
        self.context.close()


def peak_mib() -> int:
    """The most that this process has held so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


PARTS: tuple[Callable[[str, int, int], list[Row]], ...] = (upload, lookups, loop, loop_of_regex, whole_pass, in_memory)


def main(count: int, characters: int, json_path: Path | None = None) -> list[Row]:
    rows: list[Row] = []
    with (
        tempfile.TemporaryDirectory() as place,
        multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool,
    ):
        for part in PARTS:
            for row in pool.apply(part, (place, count, characters)):
                print(*(f"{name}={value}" for name, value in row.items()), sep="  ", flush=True)
                rows.append(row)
    if json_path:
        setting = {"documents": count, "characters": characters}
        results.write(results.make("documents", SEED, setting, rows), json_path)
    return rows
