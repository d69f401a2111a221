"""Names that stand around a hit are looked up while the model thinks, and rows in memory spare look-ups."""

from __future__ import annotations

import re
from functools import cache
from random import Random

from monocontext import Monocontext, regex
from monocontext.engine.prefetch.hits import LOOK_UPS, MOST_NAMES, names_in
from monocontext.stores.memory import MemoryStore
from monocontext.testing import CountingStore
from monocontext.writing.publish import publish
from tests.simulated import SimulatedWorkers

FRAME = 64 << 10
LATENCY_SECONDS = 0.15
HOPS = ("Nightjar", "Alkonost", "Veridian", "Quillon9", "Obsidian")


@cache
def text() -> str:
    """4 MB of words, with a chain of names through it, and a symbol that is defined once and used three times."""
    dice = Random(3)
    words = ["".join(dice.choices("etaoinshrdlu", k=3 + n % 7)) for n in range(400)]
    lines = [" ".join(dice.choices(words, k=12)) + "\n" for _ in range(60_000)]
    for number, name in enumerate(HOPS):
        then = f"see {HOPS[number + 1]}" if number + 1 < len(HOPS) else "no more"
        lines[(number * 7 + 3) % 11 * 5_000 + 100] = f"on the record of {name} this is known: {then} !\n"
    lines[20_000] = "def reticulate_splines(order):\n"
    for place in (9_000, 33_000, 51_000):
        lines[place] = "    total += reticulate_splines(order)\n"
    return "".join(lines)


@cache
def stored() -> MemoryStore:
    store = MemoryStore("names", "text")
    publish(text(), store, frame_bytes=FRAME, codec="raw", filters=True)
    return store


def opened(prefetch: str) -> tuple[Monocontext, CountingStore, SimulatedWorkers]:
    workers, store = SimulatedWorkers(lambda _: LATENCY_SECONDS), CountingStore(stored())
    return Monocontext.open(store, workers=workers, prefetch=prefetch), store, workers  # type: ignore[arg-type]


def filter_gets(store: CountingStore) -> int:
    return sum(request.key.startswith("filters/") for request in store.log)


def test_names_of_a_passage() -> None:
    passage = "on the record of project Nightjar all is known: see warehouse Alkonost, sum_7 or ab12cd34"
    frame = (passage + " project record" * 3).encode()
    assert names_in(passage, frame) == ["Nightjar", "Alkonost", "ab12cd34", "warehouse"]
    assert names_in("see 燈塔名為黑龍江 or 北京", "見燈塔名為黑龍江".encode()) == ["燈塔名為黑龍江"]
    many = " ".join(f"req=ab{number:04d}cd" for number in range(MOST_NAMES + 1))
    assert names_in(many, many.encode()) == []


def test_a_chain_of_names_waits_for_its_first_link_alone() -> None:
    waits = {}
    for prefetch in ("off", "all"):
        context, store, workers = opened(prefetch)
        waits[prefetch] = []
        for name in HOPS:
            before = context.stats.wait_seconds
            needle = f"record of {name}"
            at = context.find(needle)
            assert at == text().find(needle)
            waits[prefetch].append(context.stats.wait_seconds - before)
            with context.thinking():
                workers.pass_time(1.0)
        context.close()
    assert waits["off"][0] >= 2 * LATENCY_SECONDS  # the rows, then the frame
    assert sum(waits["off"][1:]) >= 4 * LATENCY_SECONDS
    assert sum(waits["all"][1:]) <= 0.5 * sum(waits["off"][1:])
    moved = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
    assert moved <= 2 * context.stats.bytes_used


def test_names_that_nobody_searches_for_are_few() -> None:
    context, store, workers = opened("all")
    asked = []
    for name in HOPS:
        with context.thinking():
            workers.pass_time(1.0)
        asked.append(filter_gets(store))
        context.find("record of " + name if not asked[1:] else "known: see " + name)
        asked[-1] = filter_gets(store) - asked[-1]
        with context.thinking():
            workers.pass_time(1.0)
    looked_up = filter_gets(store) - sum(asked)
    assert 0 < looked_up <= LOOK_UPS * 8
    context.close()


def test_what_was_found_is_looked_up_elsewhere() -> None:
    context, store, workers = opened("all")
    assert context.find("def reticulate_splines") == text().find("def reticulate_splines")
    before = context.stats.prefetch.bytes_used, filter_gets(store)
    with context.thinking():
        workers.pass_time(1.0)
    assert filter_gets(store) - before[1] <= LOOK_UPS * 8
    found = [match.start() for match in regex.finditer(r"reticulate_splines\(", context)]
    assert found == [match.start() for match in re.finditer(r"reticulate_splines\(", text())]
    assert context.stats.prefetch.bytes_used > before[0]
    moved = sum(request.length or 0 for request in store.log if request.key.startswith("segments/"))
    assert moved <= 2 * context.stats.bytes_used
    context.close()


def test_rows_in_memory_spare_a_round_trip() -> None:
    context, store, _ = opened("off")
    assert context.find("def reticulate_splines") == text().find("def reticulate_splines")
    before = filter_gets(store)
    at, places = -1, []
    while (at := context.find("reticulate_splines(", at + 1)) >= 0:
        places.append(at)
    assert places == [found.start() for found in re.finditer(r"reticulate_splines\(", text())]
    assert filter_gets(store) == before
    assert context.find("reticulate_spline_") == -1  # another ending: what is in memory leaves nothing, or is asked for
    context.close()
