"""Compare search by words with a scan of everything and with tantivy: `python -m benchmarks words --size 64M`.

Queries are one to three words of a stretch of the text, drawn by a seed. Ours within 5 % of the text is held against
the best ten passages of a scan of everything, and against the 5 % of the frames that hold most of these;
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
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.corpora import corpus
from monocontext import Monocontext, publish
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.text.search import ranked
from monocontext.text.search.scoring import PASSAGE_CHARACTERS
from monocontext.text.search.terms import STOP_WORDS

BEST = 10
SHARE = 0.05
"""Of the text that a search with a budget looks at."""
_SEED = 3


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
        text = path.read_bytes().decode()
        asked = _queries(text, name, queries)
        print(f"\n## {name}: {size_bytes:,} bytes, {len(asked)} queries, seed {_SEED}\n", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            _measure(text, asked, Path(folder))


def _measure(text: str, queries: list[str], folder: Path) -> None:
    sizes, seconds = {}, {}
    publish(text[: 4 << 20], folder / "first")  # what is imported counts for neither
    for filters in (False, True):
        began = time.process_time()
        publish(text, folder / str(filters), filters=filters)
        seconds[filters] = time.process_time() - began
        sizes[filters] = sum(info.size_bytes for info in LocalStore(folder / str(filters)).list())
    index = _build(text, folder / "tantivy")
    shares, recalls, most, overlaps = list[float](), list[float](), list[float](), list[float]()
    spent = dict.fromkeys(("scan", "5 %", "whole", "tantivy"), 0.0)
    same = 0
    for query in queries:
        with Monocontext.open(folder / "True") as context:
            began = time.process_time()
            every = ranked.search(context.span, query, BEST, 1 << 40, None, everything=True)
            spent["scan"] += time.process_time() - began
            most.append(_most_recall(context, query, every))
        with Monocontext.open(folder / "True") as context:
            began = time.process_time()
            same += context.search(query, k=BEST, max_bytes=1 << 40) == every
            spent["whole"] += time.process_time() - began
        store = CountingStore(LocalStore(folder / "True"))
        with Monocontext.open(store) as context:
            began = time.process_time()
            some = context.search(query, k=BEST, max_bytes=int(SHARE * len(text)))
            spent["5 %"] += time.process_time() - began
        shares.append(store.bytes_read / sizes[False])
        # Of passages that score the same any is as good.
        enough = [one for one in some if one.score >= every[-1].score - 1e-9] if every else []
        recalls.append(len(enough) / len(every) if every else 1.0)
        if index is not None:
            began = time.process_time()
            theirs = _ask(index, query)
            spent["tantivy"] += time.process_time() - began
            ours = {one.start // PASSAGE_CHARACTERS for one in every}
            near = sum(any(at // PASSAGE_CHARACTERS + step in ours for step in (-1, 0, 1)) for at in theirs)
            overlaps.append(near / len(theirs) if theirs else 1.0)
    count = len(queries)
    print("| what | ours | tantivy |\n|---|---:|---:|")
    build = f"{index.seconds:.1f} s" if index else "missing"
    print(f"| CPU to build | {seconds[True] - seconds[False]:.1f} s | {build} |")
    more = sizes[True] - sizes[False]
    print(f"| bytes beside the text | {more:,} | {f'{index.size_bytes:,}' if index else 'missing'} |")
    theirs_ms = f"{1000 * spent['tantivy'] / count:.1f} ms" if index else "missing"
    print(f"| CPU a query, cold, {SHARE:.0%} of the text | {1000 * spent['5 %'] / count:.1f} ms | {theirs_ms} |")
    print(f"| CPU a query, cold, to the end | {1000 * spent['whole'] / count:.1f} ms | |")
    print(f"| CPU of a scan of everything | {1000 * spent['scan'] / count:.1f} ms | |")
    print(f"| the scan's best {BEST}, to the end | {same} of {count} queries | |")
    print(f"| recall of its best {BEST} within {SHARE:.0%} | {statistics.mean(recalls):.3f} | |")
    print(f"| bytes read then, of those stored: median, most | {statistics.median(shares):.1%}, {max(shares):.1%} | |")
    print(f"| recall of the {SHARE:.0%} of the frames that hold most of them | {statistics.mean(most):.3f} | |")
    if overlaps:
        print(f"| of tantivy's best {BEST} near one of ours | {statistics.mean(overlaps):.0%} | |", flush=True)


def _most_recall(context: Monocontext, query: str, every: Sequence[Any]) -> float:
    """The recall of a search that knew which frames to look at; of passages that score the same any is as good."""
    if not every:
        return 1.0
    reader: Any = context.span.source.reader  # type: ignore[attr-defined]
    passages = ranked.search(context.span, query, 1 << 20, 1 << 40, None, everything=True)
    held = Counter(reader.locate(one.start).number for one in passages if one.score >= every[-1].score - 1e-9)
    enough = sum(times for _, times in held.most_common(max(round(SHARE * reader.manifest.frames), 1)))
    return min(enough / len(every), 1.0)


def _queries(text: str, name: str, count: int) -> list[str]:
    dice, found = random.Random(_SEED), dict[str, None]()
    pattern = re.compile("[\u4e00-\u9fff]{2,3}" if name == "cjk" else "[A-Za-z_]{3,}")
    while len(found) < count:
        at = dice.randrange(len(text) - PASSAGE_CHARACTERS)
        words = [one for one in pattern.findall(text[at : at + PASSAGE_CHARACTERS]) if one.lower() not in STOP_WORDS]
        if len(words) > 3:
            found[" ".join(dice.sample(words, dice.randrange(1, 4)))] = None
    return list(found)


def _build(text: str, folder: Path) -> _Index | None:
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
    at = 0
    while at < len(text):
        line = text.find("\n", at + PASSAGE_CHARACTERS, at + 2 * PASSAGE_CHARACTERS)
        stop = line + 1 if line >= 0 else at + 2 * PASSAGE_CHARACTERS
        writer.add_document(tantivy.Document(text=text[at:stop], start=at))
        at = stop
    writer.commit()
    writer.wait_merging_threads()
    seconds = time.process_time() - began
    index.reload()
    return _Index(index, seconds, sum(file.stat().st_size for file in folder.iterdir()))


def _ask(index: _Index, query: str) -> list[int]:
    searcher = index.searcher.searcher()
    hits = searcher.search(index.searcher.parse_query(query, ["text"]), BEST).hits
    return [int(searcher.doc(address)["start"][0]) for _, address in hits]
