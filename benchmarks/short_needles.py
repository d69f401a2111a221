"""Compare exact lists of rare short grams with today's filters: `python -m benchmarks short_needles --size 64M`.

Needles of 3 to 6 characters, each in at most 1 % of the frames: every second one a word, the others any stretch of a
line. The first row is what filters leave as they are. A list names the frames of a gram that stands in at most a share
of them; with lists a needle reads the frames of these that stand in the lists of all its grams that have one. The first
size is the entropy of the lists, the least that any coding takes; the second that of Rice codes with the names of all
grams, for a needle must tell a gram that is too frequent from one that stands nowhere. CPU is that of finding the
3-grams of a frame and of sorting them once into lists, beside an upload with filters; coding them comes on top.
"""

from __future__ import annotations

import math
import random
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.corpora import corpus
from monocontext import Monocontext, publish
from monocontext.format.filters.building import overlap_for
from monocontext.format.filters.layout import FilterLayout
from monocontext.format.filters.query import Literal

NEEDLES = 200
MOST_SHARE = 0.01
"""Of the frames that a needle stands in."""
DESIGNS = ((3, False, 0.05), (3, False, 0.1), (3, False, 0.2), (3, True, 0.1), (3, True, 0.2), (4, False, 0.01))
"""Bytes of a gram, whether case is folded, and the most frames that a gram with a list stands in."""
_SEED = 5
_TRIES = 40_000

Numbers = NDArray[np.uint64]


def main(names: Sequence[str], size_bytes: int) -> None:
    """Print a table for each corpus."""
    for name in names:
        path = corpus(name, size_bytes)
        with tempfile.TemporaryDirectory() as place:
            publish([path.read_bytes()], place)
            with Monocontext.open(place) as context:
                _measure(name, path, context)
        _print_cpu(path.read_bytes())


def _measure(name: str, path: Path, context: Monocontext) -> None:
    reader: Any = context.span.source.reader  # type: ignore[attr-defined]
    data, frames, at = path.read_bytes(), list[bytes](), 0
    for number in range(reader.manifest.frames):
        size = reader.frame(number).bytes
        frames.append(data[at : at + size])
        at += size
    needles = _choose(frames)
    filter_bytes = sum(FilterLayout(ref).size_bytes for ref in reader.manifest.filters) / len(frames)
    print(f"\n## {name}: {len(data):,} bytes, {len(frames)} frames, {len(needles)} needles, seed {_SEED}\n")
    print("| lists of | bytes a frame | coded | filters | median read | worst tenth | all needles over 25 % |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    today = {needle: _candidates(context, needle, len(frames)) for needle in needles}
    _print_row("none", 0, 0, filter_bytes, [float(found.mean()) for found in today.values()])
    for width, folded, share in DESIGNS:
        reach = overlap_for(1 << 18)
        covered = [one + behind[:reach] for one, behind in zip(frames, [*frames[1:], b""], strict=True)]
        grams = [_grams(one.lower() if folded else one, width) for one in covered]
        every, counts = np.unique(np.concatenate(grams), return_counts=True)
        is_listed = counts <= max(share * len(frames), 1)
        listed = every[is_listed]
        shares = []
        for needle, found in today.items():
            left, units = found.copy(), (needle.lower() if folded else needle).encode()
            for start in range(len(units) - width + 1):
                gram = np.uint64(int.from_bytes(units[start : start + width], "little"))
                if _has(listed, gram):
                    left &= np.array([_has(of_frame, gram) for of_frame in grams])
            shares.append(float(left.mean()))
        title = f"{width} bytes, {'folded' if folded else 'case kept'}, in at most {share:.0%}"
        least = _entropy_bytes(counts[is_listed], len(frames)) / len(frames)
        coded = _coded_bytes(grams, every, counts, is_listed, width) / len(frames)
        _print_row(title, least, coded, filter_bytes, shares)


def _choose(frames: Sequence[bytes]) -> list[str]:
    dice, most = random.Random(_SEED), max(int(len(frames) * MOST_SHARE), 1)
    found: dict[str, None] = {}
    for attempt in range(_TRIES):
        if len(found) == NEEDLES:
            break
        frame = frames[dice.randrange(len(frames))]
        at = dice.randrange(max(len(frame) - 400, 1))
        text = frame[at : at + 400].decode("utf-8", "ignore")
        words = [word for word in re.findall(r"\w+", text[1:]) if 3 <= len(word) <= 6]
        needle = dice.choice(words or [""]) if attempt % 2 else text[50 : 50 + dice.randrange(3, 7)]
        if len(needle) < 3 or "\n" in needle or needle.strip() != needle:
            continue
        if _stands_in_few(needle.encode(), frames, most):
            found[needle] = None
    return list(found)


def _stands_in_few(needle: bytes, frames: Sequence[bytes], most: int) -> bool:
    count = 0
    return all((count := count + (needle in one)) <= most for one in frames)


def _candidates(context: Monocontext, needle: str, frames: int) -> NDArray[np.bool_]:
    answer = context.span.candidates(Literal(needle))
    found = np.full(frames, answer is None)
    for start, stop in answer.runs if answer is not None else ():
        found[start:stop] = True
    return found


def _grams(data: bytes, width: int) -> Numbers:
    units = np.frombuffer(data, np.uint8).astype(np.uint64)
    count = len(units) - width + 1
    grams = np.zeros(count, np.uint64)
    for place in range(width):
        grams |= units[place : place + count] << np.uint64(8 * place)
    return np.unique(grams)


def _has(sorted_grams: Numbers, gram: np.uint64) -> bool:
    at = int(np.searchsorted(sorted_grams, gram))
    return at < len(sorted_grams) and sorted_grams[at] == gram


def _entropy_bytes(counts: NDArray[np.int64], frames: int) -> float:
    def bits(count: int) -> float:
        ways = math.lgamma(frames + 1) - math.lgamma(count + 1) - math.lgamma(frames - count + 1)
        return ways / math.log(2)

    different, times = np.unique(counts, return_counts=True)
    return sum(bits(int(one)) * int(many) for one, many in zip(different, times, strict=True)) / 8


def _coded_bytes(
    grams: Sequence[Numbers], every: Numbers, counts: NDArray[np.int64], is_listed: NDArray[np.bool_], width: int
) -> float:
    """Gaps between frames in Rice codes, the number of frames in Elias' gamma code, and each gram's name and a flag."""
    frames = len(grams)
    together = np.concatenate(grams)
    order = np.argsort(together, kind="stable")
    numbers = np.repeat(np.arange(frames), [len(one) for one in grams])[order]
    is_first = np.diff(together[order], prepend=np.uint64(1 << 63)) != 0
    gaps = np.where(is_first, numbers, numbers - np.roll(numbers, 1) - 1)
    times = np.repeat(counts, counts)
    bits = float((2 * np.floor(np.log2(counts[is_listed])) + 1).sum())
    for count in np.unique(counts[is_listed]).tolist():
        some = gaps[times == count]
        bits += min(int((some >> shift).sum()) + len(some) * (shift + 1) for shift in range(frames.bit_length()))
    return (bits + len(every) * (math.log2(256**width / len(every)) + 1.5 + 1)) / 8


def _print_cpu(data: bytes, frame_bytes: int = 1 << 18, rounds: int = 3) -> None:
    """Milliseconds of the processor a frame: the least of some rounds."""
    pieces = [data[at : at + frame_bytes] for at in range(0, len(data), frame_bytes)]
    places, numbers = np.zeros(1 << 24, np.uint32), np.arange(frame_bytes, dtype=np.uint32)
    taken: dict[str, list[float]] = {"3-grams of a frame": [], "sorting them": [], "upload": []}
    for _ in range(rounds):
        began, grams = time.process_time(), []
        for piece in pieces:
            units = np.frombuffer(piece, np.uint8).astype(np.uint32)
            found = units[:-2] | units[1:-1] << np.uint32(8) | units[2:] << np.uint32(16)
            places[found] = numbers[: len(found)]  # the last of equal grams stays: no sort for each frame
            grams.append(found[places[found] == numbers[: len(found)]])
        taken["3-grams of a frame"].append(time.process_time() - began)
        began = time.process_time()
        np.argsort(np.concatenate(grams), kind="stable")
        taken["sorting them"].append(time.process_time() - began)
        with tempfile.TemporaryDirectory() as place:
            began = time.process_time()
            publish([data], place)
            taken["upload"].append(time.process_time() - began)
    row = ", ".join(f"{title} {1000 * min(each) / len(pieces):.1f}" for title, each in taken.items())
    print(f"\nCPU, ms a frame: {row}", flush=True)


def _print_row(title: str, more_bytes: float, coded_bytes: float, filter_bytes: float, shares: list[float]) -> None:
    ordered, many = sorted(shares), sum(one > 0.25 for one in shares)
    print(
        f"| {title} | {more_bytes:,.0f} | {coded_bytes:,.0f} | {1 + coded_bytes / filter_bytes:.2f} x "
        f"| {statistics.median(shares):.1%} | {ordered[int(len(ordered) * 0.9)]:.0%} | {many} |",
        flush=True,
    )
