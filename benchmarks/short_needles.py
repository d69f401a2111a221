"""Measure what needles of 3 to 6 characters read: `python -m benchmarks short_needles --size 64M`.

Needles that stand in at most 1 % of the frames: every second one a word, the others any stretch of a line, drawn by a
seed. Each is counted in the text by a reader without a cache. Its share is that of the stored bytes of the text, the
rows of filters included; opening is not.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpus
from monocontext import Monocontext, publish
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.generations import find_root
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore

NEEDLES = 200
MOST_SHARE = 0.01
"""Of the frames that a needle stands in."""
LENGTHS = range(3, 7)
_SEED = 5
_TRIES = 40_000
_TOO_MUCH = 0.25


def main(names: Sequence[str], size_bytes: int) -> None:
    """Print a row for each corpus."""
    print("| text | frames | needles | filters beside the text | median read | worst tenth | over 25 % | by length |")
    print("|---|---:|---:|---:|---:|---:|---:|---|")
    for name in names:
        with tempfile.TemporaryDirectory() as place:
            _measure(name, corpus(name, size_bytes), LocalStore(place))


def _measure(name: str, path: Path, store: LocalStore) -> None:
    with path.open("rb") as file:
        publish(iter(lambda: file.read(1 << 20), b""), store)
    counting = CountingStore(store)
    stored = sum(info.size_bytes for info in store.list() if not info.key.startswith("filters/"))
    filters = sum(FilterLayout(ref).size_bytes for ref in find_root(store).manifest.filters)
    with Monocontext.open(counting, cache_bytes=0) as context:
        frames = _frames(path, context)
        shares: dict[str, float] = {}
        for needle in _choose(frames):
            counting.reset()
            found = context.count(needle)
            assert found, needle
            shares[needle] = counting.bytes_read / stored
    ordered = sorted(shares.values())
    by_length = [[share for needle, share in shares.items() if len(needle) == length] for length in LENGTHS]
    print(
        f"| {name} | {len(frames):,} | {len(shares)} | {filters / stored:.0%} | {statistics.median(ordered):.1%} "
        f"| {ordered[int(len(ordered) * 0.9)]:.0%} | {sum(one > _TOO_MUCH for one in ordered)} | "
        + ", ".join(
            f"{length}: {statistics.median(some):.1%} of {len(some)}"
            for length, some in zip(LENGTHS, by_length, strict=True)
            if some
        )
        + " |",
        flush=True,
    )


def _frames(path: Path, context: Monocontext) -> list[bytes]:
    reader: Any = context.span.source.reader  # type: ignore[attr-defined]
    with path.open("rb") as file:
        return [file.read(reader.frame(number).bytes) for number in range(reader.manifest.frames)]


def _choose(frames: Sequence[bytes]) -> list[str]:
    dice, most = random.Random(_SEED), max(int(len(frames) * MOST_SHARE), 1)
    found: dict[str, None] = {}
    for attempt in range(_TRIES):
        if len(found) == NEEDLES:
            break
        frame = frames[dice.randrange(len(frames))]
        at = dice.randrange(max(len(frame) - 400, 1))
        text = frame[at : at + 400].decode("utf-8", "ignore")
        words = [word for word in re.findall(r"\w+", text[1:]) if len(word) in LENGTHS]
        needle = dice.choice(words or [""]) if attempt % 2 else text[50 : 50 + dice.choice(LENGTHS)]
        if len(needle) < LENGTHS.start or "\n" in needle or needle.strip() != needle:
            continue
        if _stands_in_few(needle.encode(), frames, most):
            found[needle] = None
    return list(found)


def _stands_in_few(needle: bytes, frames: Sequence[bytes], most: int) -> bool:
    count = 0
    return all((count := count + (needle in one)) <= most for one in frames)
