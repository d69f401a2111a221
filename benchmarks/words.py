"""Compare search by words with a scan of everything and with tantivy: `python -m benchmarks words --size 64M`.

Queries are one to three words of a stretch of the text, drawn by a seed. Ours within 5 % of the text is held against
the best ten passages of a scan of everything, and so is ours with a budget that reads 5 % of the stored bytes at most;
tantivy (`pip install tantivy`; left out where it is missing) has the same passages, as documents in an index on disk,
with its own BM25 and English stemming. Seconds are of the processor.
"""

from __future__ import annotations

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

from benchmarks.corpora import corpus, describe
from monocontext import Monocontext, publish
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.text.search import ranked
from monocontext.text.search.scoring import PASSAGE_CHARACTERS
from monocontext.text.search.terms import STOP_WORDS

BEST = 10
SHARE = 0.05
"""Of the text that a search with a budget looks at, and of the stored bytes that it reads."""
_LESS, _TRIES = 0.99, 6
"""A budget is cut so far below what would read that share, until it does. Small texts read more in one frame."""
_SEED = 3
_SAME = 1e-9
"""Scores that differ by less are the same."""
_LONG = 20
"""So many times the best are kept, for passages that score the same."""


@dataclass(frozen=True, slots=True)
class _Index:
    """What tantivy made of the passages."""

    searcher: Any
    seconds: float
    size_bytes: int


def main(names: Sequence[str], size_bytes: int, queries: int) -> None:
    """Print a table for each corpus."""
    for name in names:
        path = corpus(name, size_bytes)
        asked = _queries(path, name, queries)
        print(f"\n## {name}: {size_bytes:,} bytes, {len(asked)} queries, seed {_SEED}", flush=True)
        if (tiles := describe(path).get("tiles", 1)) > 1:
            print(f"\nThe text is one source, {tiles} times over: equal passages score the same.", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            _measure(path, asked, Path(folder))


def _measure(path: Path, queries: list[str], folder: Path) -> None:
    sizes, seconds = {}, {}
    with path.open("rb") as file:
        publish(file.read(4 << 20).decode(errors="ignore"), folder / "first")  # what is imported counts for neither
    for filters in (False, True):
        began = time.process_time()
        with path.open("rb") as file:
            publish(iter(lambda: file.read(1 << 20), b""), folder / str(filters), filters=filters)
        seconds[filters] = time.process_time() - began
        sizes[filters] = sum(info.size_bytes for info in LocalStore(folder / str(filters)).list())
    count, size_bytes = len(queries), path.stat().st_size
    print("\n| what | ours | tantivy |\n|---|---:|---:|")
    index = _build(path, folder / "tantivy")
    build = f"{index.seconds:.1f} s" if index else "missing"
    print(f"| CPU to build | {seconds[True] - seconds[False]:.1f} s | {build} |")
    more = sizes[True] - sizes[False]
    print(f"| bytes beside the text | {more:,} | {f'{index.size_bytes:,}' if index else 'missing'} |", flush=True)
    with Monocontext.open(folder / "True") as context:
        began = time.process_time()
        best = ranked.scan(context.span, queries, BEST)
        scan_ms = 1000 * (time.process_time() - began) / count
        true = ranked.scan(context.span, queries, _LONG * BEST, true_weights=True)
    print(f"| CPU of a scan of everything, for all queries at once | {scan_ms:.1f} ms a query | |", flush=True)
    near = [_among_best(ours, theirs) for ours, theirs in zip(best, true, strict=True)]
    print(f"| of its best {BEST}, among those by true counts of words | {statistics.mean(near):.3f} | |", flush=True)
    for what in ("text", "stored bytes"):
        shares, recalls, gets, spent = list[float](), list[float](), list[int](), 0.0
        for query, every in zip(queries, best, strict=True):
            budget, share = SHARE * size_bytes, 1.0
            for _ in range(_TRIES if what == "stored bytes" else 1):
                store = CountingStore(LocalStore(folder / "True"))
                with Monocontext.open(store) as context:
                    began = time.process_time()
                    some = context.search(query, k=BEST, max_bytes=int(budget))
                    seconds_spent = time.process_time() - began
                share = store.bytes_read / sizes[False]
                if share <= SHARE:
                    break
                budget *= _LESS * SHARE / share
            spent += seconds_spent
            gets.append(store.gets)
            shares.append(share)
            # Of passages that score the same any is as good.
            enough = [one for one in some if one.score >= every[-1].score - _SAME] if every else []
            recalls.append(len(enough) / len(every) if every else 1.0)
        all_ten = sum(one == 1.0 for one in recalls)
        print(f"| recall of its best {BEST} within {SHARE:.0%} of the {what} | {statistics.mean(recalls):.3f} | |")
        print(f"| queries with all of them | {all_ten} of {count} | |")
        print(f"| share of stored bytes read: median, most | {statistics.median(shares):.1%}, {max(shares):.1%} | |")
        print(f"| GETs: median, most | {statistics.median(gets):.0f}, {max(gets)} | |")
        print(f"| CPU a query, cold | {1000 * spent / count:.1f} ms | |", flush=True)
    if index is not None:
        began = time.process_time()
        theirs = [_ask(index, query) for query in queries]
        theirs_ms = 1000 * (time.process_time() - began) / count
        near = [_near(one, every) for one, every in zip(theirs, best, strict=True)]
        print(f"| CPU a query | | {theirs_ms:.1f} ms |")
        print(f"| of tantivy's best {BEST} near one of ours | {statistics.mean(near):.0%} | |", flush=True)
    same, began = 0, time.process_time()
    for number, (query, every) in enumerate(zip(queries, best, strict=True), 1):
        with Monocontext.open(folder / "True") as context:
            same += context.search(query, k=BEST, max_bytes=1 << 40) == every
        if number == count or number % 50 == 0:
            print(f"| the scan's best {BEST}, without a budget | {same} of {number} queries | |", flush=True)
    print(f"| CPU of that | {1000 * (time.process_time() - began) / count:.1f} ms | |", flush=True)


def _among_best(ours: Sequence[Any], true: Sequence[Any]) -> float:
    """The share of our passages that score as much as the best by other weights. Of these there are some more, for many
    may score the same."""
    least = true[:BEST][-1].score - _SAME if true else 0.0
    enough = {one.start for one in true if one.score >= least}
    return sum(one.start in enough for one in ours) / len(ours) if ours else 1.0


def _near(theirs: list[int], ours: Sequence[Any]) -> float:
    starts = {one.start // PASSAGE_CHARACTERS for one in ours}
    near = sum(any(at // PASSAGE_CHARACTERS + step in starts for step in (-1, 0, 1)) for at in theirs)
    return near / len(theirs) if theirs else 1.0


def _queries(path: Path, name: str, count: int) -> list[str]:
    dice, found = random.Random(_SEED), dict[str, None]()
    pattern = re.compile("[\u4e00-\u9fff]{2,3}" if name == "cjk" else "[A-Za-z_]{3,}")
    stretch_bytes = PASSAGE_CHARACTERS * (3 if name == "cjk" else 1)
    with path.open("rb") as file:
        while len(found) < count:
            file.seek(dice.randrange(path.stat().st_size - stretch_bytes))
            words = pattern.findall(file.read(stretch_bytes).decode(errors="ignore"))
            words = [one for one in words if one.lower() not in STOP_WORDS]
            if len(words) > 3:
                found[" ".join(dice.sample(words, dice.randrange(1, 4)))] = None
    return list(found)


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
    at, passage = 0, ""
    with path.open(encoding="utf-8", newline="\n") as file:
        for line in chain(file, [""]):
            passage += line
            if len(passage) >= PASSAGE_CHARACTERS or not line:
                writer.add_document(tantivy.Document(text=passage, start=at))
                at, passage = at + len(passage), ""
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.process_time() - began
    index.reload()
    return _Index(index, seconds, sum(file.stat().st_size for file in folder.iterdir()))


def _ask(index: _Index, query: str) -> list[int]:
    searcher = index.searcher.searcher()
    hits = searcher.search(index.searcher.parse_query(query, ["text"]), BEST).hits
    return [int(searcher.doc(address)["start"][0]) for _, address in hits]
