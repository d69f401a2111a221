"""Measure passes on one core and on two, uploads a core with their memory, and a thousand contexts in one process."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from random import Random

from monocontext import publish

Row = tuple[str, str, str, bool]
"""What, asked, measured, whether it holds."""
PASS_BYTES = 60_000_000
UPLOAD_BYTES = 100_000_000
ROUNDS = 12
"""Of each measure, in turns; the least counts."""
QUIET = 1.7
"""Of a round in which others leave both cores alone: zstd in two threads is so many times as fast as in one."""

_PASS = """
TIMES = 4  # in a row: a kernel may leave threads that have just woken on one core
import os, sys, threading, time
os.sched_setaffinity(0, set(sorted(os.sched_getaffinity(0))[:int(sys.argv[1])]))
import zstandard
from monocontext import Monocontext, regex
context = Monocontext.open(sys.argv[2], cache_bytes=8 << 20)
packed = zstandard.ZstdCompressor().compress(context[: 1 << 20].encode())

def inflate(count):
    decompressor = zstandard.ZstdDecompressor()
    for _ in range(count):
        decompressor.decompress(packed)

def anchor():
    threads = [threading.Thread(target=inflate, args=(60 // int(sys.argv[1]),)) for _ in range(int(sys.argv[1]))]
    for thread in threads: thread.start()
    for thread in threads: thread.join()

ways = {
    "count": lambda: context.count("OutOfMemoryEr"),
    "regex": lambda: sum(1 for _ in regex.finditer(r"OutOfMemoryEr\\w+ \\d+", context)),
    "grep": lambda: sum(1 for _ in context.grep("OutOfMemoryEr|NoSuchThing")),
    "zstd alone": anchor,
}
for line in sys.stdin:
    wall, cpu, own = time.perf_counter(), time.process_time(), time.thread_time()
    for _ in range(TIMES): ways[line.strip()]()
    print(*((now - then) / TIMES for now, then in (
        (time.perf_counter(), wall), (time.process_time(), cpu), (time.thread_time(), own))), flush=True)
"""

_UPLOAD = """
import sys, time
from pathlib import Path
from monocontext import publish
publish("what is imported counts for nothing\\n" * 100_000, sys.argv[2] + "-first", filters=sys.argv[3] == "filters")
began = time.process_time()
publish([Path(sys.argv[1])], sys.argv[2], filters=sys.argv[3] == "filters")
seconds = time.process_time() - began
with open("/proc/self/status") as status:  # not `ru_maxrss`, which begins at the parent's
    print(seconds, next(int(line.split()[1]) << 10 for line in status if line.startswith("VmHWM")))
"""

_MANY = """
import gc, resource, sys, threading
from monocontext import Monocontext

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

with Monocontext.open(sys.argv[1]) as context:
    context[1_000_000:1_000_500]
gc.collect()
before = resident()
contexts = [Monocontext.open(sys.argv[1]) for _ in range(1000)]
for context in contexts:
    context[:500], context[1_000_000:1_000_500]
threads, each = threading.active_count(), (resident() - before) // 1000
for context in contexts:
    context.close()
del context, contexts
gc.collect()
print(threads, each, resident() / before)
"""


def rows() -> list[Row]:
    """All rows. Some minutes; times on a busy machine say little, processor times somewhat more."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in corpora(UPLOAD_BYTES).items():
            with open(f"{folder}/{name}.txt", "w") as file:
                file.write(text)
            if name == "logs":
                publish(text[:PASS_BYTES], f"{folder}/passes", filters=False)
        return [*_passes(f"{folder}/passes"), *_uploads(folder), *_many(f"{folder}/passes")]


def corpora(size: int) -> dict[str, str]:
    """Code, logs and prose, made up, of so many characters each."""
    rng = Random(14)
    words = ["".join(rng.choices("etaoinshrdlucmfwypvbgk", k=rng.randrange(2, 10))) for _ in range(20_000)]

    def word() -> str:
        return words[min(int(rng.paretovariate(0.7)), len(words) - 1)]

    def code() -> str:
        return f"    {word()}.{word()}({word()}, {word()}={rng.randrange(99)})  # {word()}\n"

    def log() -> str:
        at = (
            f"2026-11-22T{rng.randrange(24):02d}:{rng.randrange(60):02d}:{rng.randrange(60):02d}.{rng.randrange(1000)}Z"
        )
        return (
            f"{at} {rng.choice(['INFO', 'WARN'])} [worker-{rng.randrange(64)}] id={rng.getrandbits(64):016x} {word()}\n"
        )

    def prose() -> str:
        return " ".join(word() for _ in range(14)) + ".\n"

    made = {}
    for name, line in (("code", code), ("logs", log), ("prose", prose)):
        lines = [line() for _ in range(100_000)]
        parts, length = [], 0
        while length < size:
            parts.append("".join(rng.sample(lines, 10_000)))
            length += len(parts[-1])
        made[name] = "".join(parts)[:size]
    return made


def _passes(place: str) -> list[Row]:
    """Passes that decode all frames: one core and two, in turns."""
    readers = [
        subprocess.Popen(
            [sys.executable, "-c", _PASS, str(cores), place], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for cores in (1, 2)
    ]
    rounds = []
    for _ in range(ROUNDS):
        measured: dict[str, list[list[float]]] = {}
        for way in ("zstd alone", "count", "regex", "grep"):
            for reader in readers:
                assert reader.stdin is not None
                assert reader.stdout is not None
                reader.stdin.write(way + "\n")
                reader.stdin.flush()
                measured.setdefault(way, []).append([*map(float, reader.stdout.readline().split())])
        rounds.append(measured)
    for reader in readers:
        reader.communicate()
    alone = [one["zstd alone"][0][0] / one["zstd alone"][1][0] for one in rounds]
    quiet = [one for one, times in zip(rounds, alone, strict=True) if times >= QUIET]
    found = []
    for way in ("count", "regex", "grep"):
        (wall, cpu, _), (wall_of_two, cpu_of_two, own) = (
            [min(one[way][i][j] for one in quiet or rounds) for j in range(3)] for i in (0, 1)
        )
        times, speed = wall / wall_of_two, PASS_BYTES / cpu / 1e9
        beside = (
            f"{times:.2f} x ({len(quiet)} of {ROUNDS} rounds quiet, zstd alone at most {max(alone):.2f} x; "
            f"CPU {cpu * 1e3:.0f} ms on one, {cpu_of_two * 1e3:.0f} on two, {own * 1e3:.0f} of them the caller's)"
        )
        found.append((f"{way}: two cores against one", ">= 1.8 x", beside, times >= 1.8))
        found.append((f"{way}: a core", ">= 0.5 GB/s", f"{speed:.2f} GB/s", speed >= 0.5))
    return found


def _uploads(folder: str) -> list[Row]:
    found = []
    for name in ("code", "logs", "prose"):
        for way, least in (("filters", 80), ("plain", 150)):
            command = [sys.executable, "-c", _UPLOAD, f"{folder}/{name}.txt", f"{folder}/{name}-{way}", way]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            seconds, resident = map(float, done.stdout.split())
            speed, mib = UPLOAD_BYTES / seconds / 1e6, resident / (1 << 20)
            asked, measured = f">= {least} MB/s, < 300 MiB", f"{speed:.0f} MB/s, {mib:.0f} MiB"
            found.append((f"upload of {name}, a core, {way}", asked, measured, speed >= least and mib < 300))
    return found


def _many(place: str) -> list[Row]:
    done = subprocess.run([sys.executable, "-c", _MANY, place], capture_output=True, text=True, check=True)
    threads, each, after = map(float, done.stdout.split())
    asked = "<= 16 threads, <= 150 KiB each, <= 1.2 x after closing"
    measured = f"{threads:.0f} threads, {each / 1024:.0f} KiB each, {after:.2f} x"
    holds = threads <= 16 and each <= 150 << 10 and after <= 1.2
    return [("1,000 contexts, two slices in each", asked, measured, holds)]
