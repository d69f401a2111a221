"""Measure patterns on a text against `re` on the same text as a `str`: `python -m benchmarks.regex_speed [megabytes]`.

The text lies in a store in memory and is in the cache before timing starts, so the figures are those of the engine and
of the way around it. Both sides iterate `finditer` to the end, in turns, and the best of the rounds counts.
"""

from __future__ import annotations

import random
import re
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish, regex
from monocontext.stores.memory import forget

ROUNDS = 3

PATTERNS = [
    r"\s+",
    r"\w+",
    r"\d+",
    r"error",
    r"(?i)error",
    r"(?i)\bdisk failure\b",
    r"\bdisk\b",
    r"ERROR (\w+)",
    r"host-(\d+) INFO",
    r"\d+ ms",
    r"(?m)^ERROR.*$",
    r"(?m)^.*timeout.*$",
    r".{0,300}quota.{0,300}",
    r".{0,50}failed.{0,50}",
    r"label:\s*(.+)",
    r"(?s)Graph:\s*(\[.*?\])",
    r"(?s)BEGIN(.*?)END",
    r"(?s)label:(.*?)(?=\n\n|$)",
    r"\([^)]+\)",
    r"\[[^\]]*\]",
    r'"(\w+)":\s*"([^"]*)"',
    r"(?P<key>\w+)\s*=\s*(?P<value>\S+)",
    r"[\w.+-]+@[\w-]+\.[\w.-]+",
    r"https?://\S+",
    r"\d{4}-\d{2}-\d{2}",
    r"error|timeout|refused",
    r"(?i)bfs\s+at\s+depth",
    r"(\w)\1\1",
    r"\b([A-Z]\w+)\s+([A-Z]\w+)\b",
    r"\n\n+",
]


@dataclass(frozen=True, slots=True)
class Row:
    """One pattern."""

    pattern: str
    hits: int
    seconds_re: float
    seconds_ours: float

    @property
    def ratio(self) -> float:
        return self.seconds_ours / self.seconds_re


def main(megabytes: float = 16) -> list[Row]:
    """Measure and print, the slowest against `re` last; characters are ASCII, so a megabyte is a million of them."""
    text = make_text(int(megabytes * 1e6))
    publish(text, "memory://regex-speed", replace=True)
    try:
        with Monocontext.open("memory://regex-speed", cache_bytes=4 * len(text) + (64 << 20), preload=True) as context:
            rows = sorted((measure(pattern, text, context) for pattern in PATTERNS), key=lambda row: row.ratio)
    finally:
        forget("regex-speed")
    print(describe_machine())
    print(f"{len(text):,} characters, finditer to the end, best of {ROUNDS}\n")
    print(f"{'pattern':38} {'hits':>9} {'re MB/s':>9} {'ours MB/s':>10} {'ratio':>6}")
    for row in rows:
        speeds = (len(text) / 1e6 / seconds for seconds in (row.seconds_re, row.seconds_ours))
        print(f"{row.pattern:38} {row.hits:9,} {next(speeds):9.1f} {next(speeds):10.1f} {row.ratio:6.2f}")
    ratios = [row.ratio for row in rows]
    slower = sum(ratio > 4 for ratio in ratios)
    print(f"\nmedian {statistics.median(ratios):.2f}, largest {max(ratios):.2f}, {slower} of {len(rows)} above 4")
    return rows


def measure(pattern: str, text: str, context: Monocontext) -> Row:
    """Both sides in turns; they must find equally much."""
    best = [float("inf"), float("inf")]
    hits = [0, 0]
    sides: list[tuple[Callable[..., Any], Any]] = [(re.finditer, text), (regex.finditer, context)]
    for _ in range(ROUNDS):
        for side, (find, subject) in enumerate(sides):
            began = time.perf_counter()
            hits[side] = sum(1 for _ in find(pattern, subject))
            best[side] = min(best[side], time.perf_counter() - began)
    if hits[0] != hits[1]:
        raise AssertionError(f"{pattern}: re finds {hits[0]:,}, we find {hits[1]:,}")
    return Row(pattern, hits[0], best[0], best[1])


def make_text(characters: int) -> str:
    """Log lines with now and then a label, a graph, an address, a paragraph."""
    dice = random.Random(5)
    words = ["".join(dice.choices("etaoinshrdlucmf", k=dice.randint(2, 9))) for _ in range(3000)]
    rare: list[Callable[[], str]] = [
        lambda: "label: entity",
        lambda: f"Graph: [{', '.join(map(str, range(dice.randint(3, 30))))}]\n",
        lambda: "disk failure on /dev/sda",
        lambda: "quota failed (hard limit)",
        lambda: "bob.smith@example.org",
        lambda: "see https://example.org/a/b?c=d",
        lambda: '"name": "John Smith"',
        lambda: "key = value",
        lambda: "error: timeout, connection refused",
        lambda: "\n\nBEGIN of a part\n",
        lambda: "END\n",
    ]
    lines = []
    size = 0
    while size < characters:
        level = dice.choices(["INFO", "WARN", "ERROR"], weights=[90, 8, 2])[0]
        line = f"{level} 2024-05-{dice.randint(1, 28):02d} host-{dice.randint(1, 99)} INFO {dice.randint(1, 5000)} ms "
        line += " ".join(dice.choices(words, k=8))
        if dice.random() < 0.05:
            line += " " + dice.choice(rare)()
        lines.append(line)
        size += len(line) + 1
    return "\n".join(lines)[:characters]


if __name__ == "__main__":
    main(*map(float, sys.argv[1:2]))
