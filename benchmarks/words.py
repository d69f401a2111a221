"""Compare search by words within a budget, without one, and in tantivy: `python -m benchmarks words --size 64M`.

A query is one to three words of one stretch of the text, drawn by a seed. Our search may read at most 5 % of the stored
bytes, and is compared with its ten best passages without a budget. tantivy (`pip install tantivy`; left out
where it is missing) indexes the same passages as documents on disk, with its own BM25 and English stemming. Seconds are
processor time.
"""

from __future__ import annotations

import argparse
import importlib
import random
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from benchmarks import locomo
from benchmarks.corpora import NAMES, corpus, tiles
from benchmarks.options import Commands, amount, head_line, parse_list, row_line
from monocontext import Monocontext, publish
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.text.search.scoring import PASSAGE_CHARACTERS
from monocontext.text.search.terms import STOP_WORDS

BEST = 10
SHARE = 0.05
"""The share of the stored bytes that a search may read."""
_LESS, _TRIES = 0.99, 6
"""A search that read too much is repeated with a budget this far below its due, at most this many times."""
_SEED = 3
_SAME = 1e-9
"""Scores that differ by less are equal."""


@dataclass(frozen=True, slots=True)
class _Index:
    """The index of tantivy."""

    searcher: Any
    seconds: float
    size_bytes: int


def add(commands: Commands) -> None:
    command = commands.add_parser("words", help="search by words within a budget, against one without, and tantivy")
    command.add_argument("--size", type=amount, default=64_000_000, help="bytes of text, such as 64M")
    command.add_argument("--corpora", type=parse_list, default=NAMES, help=f"texts: {','.join(NAMES)}")
    command.add_argument("--queries", type=int, default=200, help="queries of each text")
    command.add_argument(
        "--locomo", type=Path, metavar="FILE", help="measure questions of LoCoMo-10 in this file alone"
    )
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    if arguments.locomo:
        return locomo.main(arguments.locomo)
    for name in arguments.corpora:
        path = corpus(name, arguments.size)
        asked = _queries(path, name, arguments.queries)
        times = tiles(name, arguments.size)
        print(f"\n## {name}: {path.stat().st_size:,} bytes, {len(asked)} queries, seed {_SEED}, {times} tiles\n")
        with tempfile.TemporaryDirectory() as folder:
            _measure(path, asked, Path(folder))
    return 0


def _measure(path: Path, queries: list[str], folder: Path) -> None:
    sizes, seconds = {}, {}
    with path.open("rb") as file:
        publish(file.read(4 << 20).decode(errors="ignore"), folder / "first")  # imports count for neither
    for filters in (False, True):
        began = time.process_time()
        with path.open("rb") as file:
            publish(iter(lambda: file.read(1 << 20), b""), folder / str(filters), filters=filters)
        seconds[filters] = time.process_time() - began
        sizes[filters] = sum(info.size_bytes for info in LocalStore(folder / str(filters)).list())
    index = _build(path, folder / "tantivy")
    print(head_line("what", "ours", "tantivy"))
    build, size = (f"{index.seconds:.1f} s", f"{index.size_bytes:,}") if index else ("missing", "missing")
    print(row_line("CPU to build", f"{seconds[True] - seconds[False]:.1f} s", build))
    print(row_line("bytes added", f"{sizes[True] - sizes[False]:,}", size), flush=True)
    with Monocontext.open(folder / "True") as context:
        best = [context.search(query, k=BEST, max_bytes=1 << 60) for query in queries]
    budget = SHARE * path.stat().st_size
    asked = [_within_share(folder, budget, sizes[False], *item) for item in zip(queries, best, strict=True)]
    recalls, spent = zip(*asked, strict=True)
    print(row_line(f"recall of them within {SHARE:.0%} of the stored bytes", f"{statistics.mean(recalls):.3f}", ""))
    theirs_ms = f"{_milliseconds(index, queries):.1f} ms" if index else "missing"
    print(row_line("CPU of such a query, cold", f"{1000 * statistics.mean(spent):.1f} ms", theirs_ms), flush=True)


def _within_share(
    folder: Path, budget: float, stored_bytes: int, query: str, best: Sequence[Any]
) -> tuple[float, float]:
    """The recall and seconds of a search that reads at most SHARE of the stored bytes; `budget` is a first guess."""
    for _ in range(_TRIES):
        store = CountingStore(LocalStore(folder / "True"))
        with Monocontext.open(store) as context:
            began = time.process_time()
            result = context.search(query, k=BEST, max_bytes=int(budget))
            seconds = time.process_time() - began
        share = store.bytes_read / stored_bytes
        if share <= SHARE:
            break
        budget *= _LESS * SHARE / share
    # Passages with equal scores are interchangeable.
    enough = [single for single in result if single.score >= best[-1].score - _SAME] if best else []
    return len(enough) / len(best) if best else 1.0, seconds


def _queries(path: Path, name: str, count: int) -> list[str]:
    dice, result = random.Random(_SEED), dict[str, None]()
    pattern = re.compile("[\u4e00-\u9fff]{2,3}" if name == "cjk" else "[A-Za-z_]{3,}")
    stretch_bytes = PASSAGE_CHARACTERS * (3 if name == "cjk" else 1)
    with path.open("rb") as file:
        while len(result) < count:
            file.seek(dice.randrange(path.stat().st_size - stretch_bytes))
            words = pattern.findall(file.read(stretch_bytes).decode(errors="ignore"))
            words = [single for single in words if single.lower() not in STOP_WORDS]
            if len(words) > 3:
                result[" ".join(dice.sample(words, dice.randrange(1, 4)))] = None
    return list(result)


def _build(path: Path, folder: Path) -> _Index | None:
    try:
        tantivy = importlib.import_module("tantivy")
    except ImportError:
        return None
    folder.mkdir()
    schema = tantivy.SchemaBuilder()
    schema.add_text_field("text", tokenizer_name="en_stem")
    schema.add_integer_field("start", stored=True)
    began = time.process_time()
    index = tantivy.Index(schema.build(), path=str(folder))
    writer = index.writer(num_threads=1)
    offset, passage = 0, ""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in chain(file, [""]):
            passage += line
            if len(passage) >= PASSAGE_CHARACTERS or not line:
                writer.add_document(tantivy.Document(text=passage, start=offset))
                offset, passage = offset + len(passage), ""
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.process_time() - began
    index.reload()
    return _Index(index, seconds, sum(file.stat().st_size for file in folder.iterdir()))


def _milliseconds(index: _Index, queries: Sequence[str]) -> float:
    """The time of one query in tantivy, the places of its passages included."""
    began = time.process_time()
    for query in queries:
        searcher = index.searcher.searcher()
        for _, address in searcher.search(index.searcher.parse_query(query, ["text"]), BEST).hits:
            searcher.doc(address)
    return 1000 * (time.process_time() - began) / len(queries)
