"""Measure what the sandbox costs: the same cells in a runner that confines and in `local`, in one run."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.machine import describe_machine
from monocontext import Monocontext, publish
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners import make_runner
from rlm.runners.runner import Runner

CHARACTERS = 32 << 20
STARTS = 7
SLICE = 10_000_000

_TIMER = """
import random, statistics, time
def median(work, times, before=lambda: None, of=statistics.median):
    spent = []
    for i in range(times):
        before()
        began = time.perf_counter()
        work(i)
        spent.append(time.perf_counter() - began)
    return of(spent)
def forget():
    reader = context._source.reader
    if hasattr(reader, "_shelf"):
        reader._shelf.clear()
places = random.Random(5).choices(range(len(context) - 1000), k=4000)
def near(i): return context[5000 + i % 100:6000 + i % 100]
def far(i): return context[places[i]:places[i] + 1000]
def large(i): return context[1000 + i:1000 + i + SLICE]
def bulk(i): return [context[at:at + 500] for at in range(i * 1000, i * 1000 + 1_000_000, 500)]
"""

CELLS = {
    "1000-character slice, warm, in the frame last read": "near(0)\nprint(median(near, 4000))",
    "1000-character slice, warm, anywhere": "for i in range(4000): far(i)\nprint(median(far, 4000))",
    "500-character slices in bulk, one of 2000": "bulk(0)\nprint(median(bulk, 60) / 2000)",
    "the same, at best": "bulk(0)\nprint(median(bulk, 60, of=min) / 2000)",
    "10 MB slice, warm": "large(0)\nprint(median(large, 7))",
    "10 MB slice, in the host's cache alone": "print(median(large, 7, forget))",
    "find of an absent needle in 32 Mi characters": "print(median(lambda i: context.find('zzzzqqq'), 5))",
    "a sub-call that answers at once": "print(median(lambda i: llm_query('x'), 500))",
    "an empty cell": "",
}


@dataclass(frozen=True, slots=True)
class Row:
    """One measure, in seconds."""

    what: str
    local: float
    confined: float

    @property
    def ratio(self) -> float:
        return self.confined / self.local


def main(runner: str = "subprocess", out: Path | None = None, **options: Any) -> None:
    """Measure, print a table, and write it as JSON if asked. `options`: those of the runner."""
    line = "On day %d the reader %d wrote a line of words, none of them long, and went on.\n"
    text = "".join(line % (i, i * 7) for i in range(CHARACTERS // 77))[:CHARACTERS]
    with tempfile.TemporaryDirectory() as folder:
        publish([text], folder)
        with Monocontext.open(folder, cache_bytes=1 << 28, preload=True) as context:
            contexts: dict[str, object] = {"a str": "text", "a Monocontext": context}
            starts = {name: _starts(runner, each, options) for name, each in contexts.items()}
            local, confined = _runner("local", context, {}), _runner(runner, context, options)
            way = getattr(confined, "confinement", "none")
            rows = [Row(what, _seconds(local, cell), _seconds(confined, cell)) for what, cell in CELLS.items()]
            local.close()
            confined.close()
    machine = describe_machine()
    print(f"{len(text):,} characters in a directory store, all in the host's cache; confined by {way}")
    print(f"({', '.join(f'{name} {value}' for name, value in machine.items())})\n")
    print(f"| what | local, us | {runner}, us | ratio |\n|---|---:|---:|---:|")
    for row in rows:
        print(f"| {row.what} | {1e6 * row.local:,.1f} | {1e6 * row.confined:,.1f} | {row.ratio:.2f} |")
    print(f"\n| start, median of {STARTS} (fastest) | ms |\n|---|---:|")
    for name, spent in starts.items():
        print(f"| with {name} | {1000 * statistics.median(spent):.0f} ({1000 * min(spent):.0f}) |")
    if out is not None:
        found: dict[str, Any] = {
            "version": 2,
            "runner": runner,
            "machine": machine,
            "confinement": way,
            "starts_seconds": starts,
        }
        out.write_text(json.dumps(found | {"rows": [asdict(row) | {"ratio": row.ratio} for row in rows]}, indent=1))


def _starts(name: str, context: object, options: dict[str, Any]) -> list[float]:
    """From nothing to a runner that has run a cell; the first, which finds out what the machine allows, is left out."""
    spent = []
    for _ in range(STARTS + 1):
        began = time.perf_counter()
        runner = _runner(name, context, options)
        runner.run("len(context)")
        spent.append(time.perf_counter() - began)
        runner.close()
    return spent[1:]


def _runner(name: str, context: object, options: dict[str, Any]) -> Runner:
    subcalls = SubCalls(ScriptedLM(str.upper), Usage())
    return make_runner(name, context, subcalls, cell_timeout=300, output_limit=1000, **options)


def _seconds(runner: Runner, cell: str) -> float:
    if cell:
        result = runner.run(f"SLICE = {SLICE}\n{_TIMER}\n{cell}")
        if result.stderr:
            raise RuntimeError(result.stderr)
        return float(result.stdout)
    spent = []
    for _ in range(100):
        began = time.perf_counter()
        runner.run("pass")
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)
