"""Compare search by words with and without a budget of bytes: `python -m benchmarks words --size 64M`.

A query is one to three words of one stretch of the text, drawn by a seed. Within the budget, a search reads at most 5 %
of the stored bytes; its passages are compared with the ten best without a budget. Seconds are processor time.

With `--locomo FILE` it measures LoCoMo-10 instead: see `benchmarks.locomo`.
"""

from __future__ import annotations

import argparse
import random
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks import locomo
from benchmarks.corpora import NAMES, corpus, tile_count
from benchmarks.options import Commands, amount, at_least_1, head_line, row_line
from monocontext import Monocontext, publish
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.text.search.passages import Passage
from monocontext.text.search.terms import STOP_WORDS

PASSAGES = 10  # the number of passages of a search
BUDGET_SHARE = 0.05  # the most that a search may read, as a share of the stored bytes without filters
_SEED = 3
_STRETCH_CHARACTERS = 400  # the words of a query come from one stretch of this length
_SCORE_TOLERANCE = 1e-9  # scores that differ by less are equal


def add(commands: Commands) -> None:
    command = commands.add_parser("words", help="search by words with and without a budget of bytes")
    command.add_argument("--size", type=amount, default=64_000_000, help="bytes of text, such as 64M")
    command.add_argument("--queries", type=at_least_1, default=200, help="queries of each text")
    command.add_argument("--locomo", type=Path, metavar="FILE", help="measure the LoCoMo-10 of this file alone")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    if arguments.locomo:
        return locomo.measure(arguments.locomo)
    for name in NAMES:
        path = corpus(name, arguments.size)
        queries = _queries(path, name, arguments.queries)
        tiles = tile_count(name, arguments.size)
        print(f"\n## {name}: {path.stat().st_size:,} bytes, {len(queries)} queries, seed {_SEED}, {tiles} tiles\n")
        with tempfile.TemporaryDirectory() as folder:
            _measure(path, queries, Path(folder))
    return 0


def _publish(path: Path, folder: Path, *, filters: bool) -> float:
    """Publish a text into a folder. Returns the seconds of processor time."""
    began = time.process_time()
    with path.open("rb") as file:
        publish(iter(lambda: file.read(1 << 20), b""), folder, filters=filters)
    return time.process_time() - began


def _measure(path: Path, queries: list[str], folder: Path) -> None:
    """Publish a text into a folder with and without filters, ask the queries, and print a table."""
    plain, filtered = folder / "plain", folder / "filtered"
    publish("first line\n" * (1 << 18), folder / "first")  # so that neither is charged for imports
    plain_seconds = _publish(path, plain, filters=False)
    filtered_seconds = _publish(path, filtered, filters=True)
    plain_bytes, filtered_bytes = (sum(info.size_bytes for info in LocalStore(at).list()) for at in (plain, filtered))
    print(head_line("what", "measured"))
    print(row_line("CPU to build", f"{filtered_seconds - plain_seconds:.1f} s"))
    print(row_line("bytes added", f"{filtered_bytes - plain_bytes:,}"), flush=True)
    with Monocontext.open(filtered) as context:
        best = [context.search(query, k=PASSAGES, max_bytes=1 << 60) for query in queries]
    results = [
        _search_within_share(filtered, plain_bytes, path.stat().st_size, query, passages)
        for query, passages in zip(queries, best, strict=True)
    ]
    recalls, seconds = zip(*results, strict=True)
    print(row_line(f"recall of them within {BUDGET_SHARE:.0%} of the stored bytes", f"{statistics.mean(recalls):.3f}"))
    print(row_line("CPU of such a query, cold", f"{1000 * statistics.mean(seconds):.1f} ms"), flush=True)


def _search_within_share(
    folder: Path, stored_bytes: int, text_bytes: int, query: str, best: Sequence[Passage]
) -> tuple[float, float]:
    """The recall and seconds of a search that reads at most `BUDGET_SHARE` of the stored bytes.

    A search that reads more is repeated with a smaller budget. If the filters alone are more than `BUDGET_SHARE`, the
    budget becomes 0, and the search finds nothing. `best`: the passages of a search without a budget.
    """
    budget_bytes = int(BUDGET_SHARE * text_bytes)  # a first guess: `max_bytes` counts text, and stored bytes are fewer
    while True:
        store = CountingStore(LocalStore(folder))
        with Monocontext.open(store) as context:
            began = time.process_time()
            passages = context.search(query, k=PASSAGES, max_bytes=budget_bytes)
            seconds = time.process_time() - began
        share = store.bytes_read / stored_bytes
        if share <= BUDGET_SHARE or budget_bytes == 0:
            break
        budget_bytes = max(0, min(int(budget_bytes * BUDGET_SHARE / share), budget_bytes - RAW_FRAME_BYTES))
    if not best:
        return 1.0, seconds
    # Passages with equal scores are interchangeable.
    return sum(passage.score >= best[-1].score - _SCORE_TOLERANCE for passage in passages) / len(best), seconds


def _queries(path: Path, name: str, count: int) -> list[str]:
    """`count` different queries: one to three words of a random stretch of the text `name`, but no stop words."""
    dice = random.Random(_SEED)
    queries = dict[str, None]()
    pattern = re.compile("[\u4e00-\u9fff]{2,3}" if name == "cjk" else "[A-Za-z_]{3,}")
    stretch_bytes = _STRETCH_CHARACTERS * (3 if name == "cjk" else 1)
    with path.open("rb") as file:
        for _ in range(100 * count):
            file.seek(dice.randrange(max(1, path.stat().st_size - stretch_bytes)))
            words = pattern.findall(file.read(stretch_bytes).decode(errors="ignore"))
            words = [word for word in words if word.lower() not in STOP_WORDS]
            if len(words) > 3:
                queries[" ".join(dice.sample(words, dice.randrange(1, 4)))] = None
            if len(queries) == count:
                return list(queries)
    raise SystemExit(f"{name}: found {len(queries)} of {count} different queries: give a larger --size")
