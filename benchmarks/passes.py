"""Measure passes and short reads over a warm text, against the same calls on a `str` in memory, in the same run."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Callable
from typing import Any

from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish

CHARACTERS = 32 << 20
ROUNDS = 5

PASSES: dict[str, Callable[[Any], object]] = {
    'count("eta")': lambda text: text.count("eta"),
    "find of an absent needle": lambda text: text.find("zzzzqqq"),
    "rfind of an absent needle": lambda text: text.rfind("zzzzqqq"),
    'lines: for line in split("\\n")': lambda text: sum(1 for _ in text.split("\n")),
    "lines: for line in splitlines()": lambda text: sum(1 for _ in text.splitlines()),
    "words: for word in split()": lambda text: sum(1 for _ in text.split()),
    'lower().count("eta")': lambda text: text.lower().count("eta"),
    'lower().find("zzzz")': lambda text: text.lower().find("zzzz"),
    'upper().count("ETA")': lambda text: text.upper().count("ETA"),
    'replace("eta", "x").find("zzzz")': lambda text: text.replace("eta", "x").find("zzzz"),
    "characters: for c in text": lambda text: sum(1 for _ in text),
}


def main() -> None:
    """Measure and print the table."""
    text = _text()
    with tempfile.TemporaryDirectory() as folder:
        publish(text, folder)
        # Results above a million characters are lazy, so that the passes below stream instead of joining the text.
        context = Monocontext.open(folder, cache_bytes=1 << 30, preload=True, materialize_limit=1 << 20)
        machine = ", ".join(f"{name} {value}" for name, value in describe_machine().items())
        print(f"{len(text):,} characters in a directory store, everything cached; best of {ROUNDS}\n({machine})\n")
        print("| pass | str, ms | context, ms | ratio |")
        print("|---|---:|---:|---:|")
        for name, run in PASSES.items():
            mine, theirs = _best(run, context), _best(run, text)
            print(f"| {name} | {1000 * theirs:.1f} | {1000 * mine:.1f} | {mine / theirs:.2f} |")
        print("\n| short read, warm, median | str, us | context, us |\n|---|---:|---:|")
        near, far = [5000] * 20_000, random.Random(5).choices(range(len(text) - 100), k=20_000)
        for name, places in (("in the frame last read", near), ("anywhere", far)):
            for what, read in (("100-character slice", _slice), ("index", _index)):
                print(f"| {what} {name} | {_median(read, text, places):.2f} | {_median(read, context, places):.2f} |")


def _slice(text: Any, at: int) -> object:
    return text[at : at + 100]


def _index(text: Any, at: int) -> object:
    return text[at]


def _best(run: Callable[[Any], object], text: Any) -> float:
    taken = []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        run(text)
        taken.append(time.perf_counter() - began)
    return min(taken)


def _median(read: Callable[[Any, int], object], text: Any, places: list[int]) -> float:
    """Microseconds of one read, the call that measures it included."""
    taken = []
    for at in places:
        began = time.perf_counter_ns()
        read(text, at)
        taken.append(time.perf_counter_ns() - began)
    return statistics.median(taken) / 1000


def _text() -> str:
    dice = random.Random(3)
    words = ["".join(dice.choices("etaoinshrdlu", k=dice.randint(2, 9))) for _ in range(5000)]
    lines, size = [], 0
    while size < CHARACTERS:
        lines.append(" ".join(dice.choices(words, k=15)))
        size += len(lines[-1]) + 1
    return "\n".join(lines) + "\n"
