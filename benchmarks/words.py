"""Compare search by words within a budget with one without: `python -m benchmarks words --size 64M`.

A query is one to three words of one stretch of the text, drawn by a seed. The search may read at most 5 % of the stored
bytes, and is compared with its ten best passages without a budget. Seconds are processor time.

With `--locomo FILE`, `locomo10.json` of github.com/snap-research/LoCoMo, each conversation is a text of sessions. A
question of categories 1 to 4 is right within `k` if one of the first `k` passages holds a turn of its evidence.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.corpora import NAMES, corpus, tiles
from benchmarks.options import Commands, amount, at_least_1, head_line, parse_list, row_line
from monocontext import Monocontext, publish
from monocontext.format.codec import RAW_FRAME_BYTES
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.text.search.terms import STOP_WORDS

BEST = 10
SHARE = 0.05  # of the stored bytes may be read by a search
_SEED = 3
_STRETCH_CHARACTERS = 400  # the words of a query are of a stretch of so many
_SAME = 1e-9  # scores that differ by less are equal


def add(commands: Commands) -> None:
    command = commands.add_parser("words", help="search by words within a budget, against one without")
    command.add_argument("--size", type=amount, default=64_000_000, help="bytes of text, such as 64M")
    command.add_argument("--corpora", type=parse_list, default=NAMES, help=f"texts: {','.join(NAMES)}")
    command.add_argument("--queries", type=at_least_1, default=200, help="queries of each text")
    command.add_argument("--locomo", type=Path, metavar="FILE", help="measure the LoCoMo-10 of this file alone")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    if arguments.locomo:
        return _locomo(arguments.locomo)
    for name in arguments.corpora:
        path = corpus(name, arguments.size)
        queries = _queries(path, name, arguments.queries)
        times = tiles(name, arguments.size)
        print(f"\n## {name}: {path.stat().st_size:,} bytes, {len(queries)} queries, seed {_SEED}, {times} tiles\n")
        with tempfile.TemporaryDirectory() as folder:
            _measure(path, queries, Path(folder))
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
    print(head_line("what", "measured"))
    print(row_line("CPU to build", f"{seconds[True] - seconds[False]:.1f} s"))
    print(row_line("bytes added", f"{sizes[True] - sizes[False]:,}"), flush=True)
    with Monocontext.open(folder / "True") as context:
        best = [context.search(query, k=BEST, max_bytes=1 << 60) for query in queries]
    budget = SHARE * path.stat().st_size
    results = [_within_share(folder, budget, sizes[False], *item) for item in zip(queries, best, strict=True)]
    recalls, spent = zip(*results, strict=True)
    print(row_line(f"recall of them within {SHARE:.0%} of the stored bytes", f"{statistics.mean(recalls):.3f}"))
    print(row_line("CPU of such a query, cold", f"{1000 * statistics.mean(spent):.1f} ms"), flush=True)


def _within_share(
    folder: Path, first_guess: float, stored_bytes: int, query: str, best: Sequence[Any]
) -> tuple[float, float]:
    """The recall and seconds of a search that reads at most SHARE of the stored bytes. One that reads more is repeated
    with a smaller budget; where the filters alone are more, the budget becomes 0, and the search finds nothing."""
    budget = int(first_guess)
    while True:
        store = CountingStore(LocalStore(folder / "True"))
        with Monocontext.open(store) as context:
            began = time.process_time()
            result = context.search(query, k=BEST, max_bytes=budget)
            seconds = time.process_time() - began
        share = store.bytes_read / stored_bytes
        if share <= SHARE or budget == 0:
            break
        budget = max(0, min(int(budget * SHARE / share), budget - RAW_FRAME_BYTES))
    if not best:
        return 1.0, seconds
    # Passages with equal scores are interchangeable.
    return sum(passage.score >= best[-1].score - _SAME for passage in result) / len(best), seconds


def _queries(path: Path, name: str, count: int) -> list[str]:
    """Words of random stretches of a text, `count` different queries."""
    dice, result = random.Random(_SEED), dict[str, None]()
    pattern = re.compile("[\u4e00-\u9fff]{2,3}" if name == "cjk" else "[A-Za-z_]{3,}")
    stretch_bytes = _STRETCH_CHARACTERS * (3 if name == "cjk" else 1)
    with path.open("rb") as file:
        while len(result) < count:
            file.seek(dice.randrange(path.stat().st_size - stretch_bytes))
            words = pattern.findall(file.read(stretch_bytes).decode(errors="ignore"))
            words = [word for word in words if word.lower() not in STOP_WORDS]
            if len(words) > 3:
                result[" ".join(dice.sample(words, dice.randrange(1, 4)))] = None
    return list(result)


_RANKS = (1, 5, 10)
_CATEGORIES = range(1, 5)  # the fifth asks for what the conversation does not say


class _Answer(NamedTuple):
    turn_rank: int  # of the first passage with a turn of the evidence
    session_rank: int
    seconds: float


def _locomo(path: Path) -> int:
    answers = [answer for sample in json.loads(path.read_bytes()) for answer in _ask_conversation(sample)]
    seconds = statistics.mean(answer.seconds for answer in answers)
    print(head_line(f"{len(answers):,} questions", *(f"@{k}" for k in _RANKS), "ms of CPU"))
    turns, sessions = [answer.turn_rank for answer in answers], [answer.session_rank for answer in answers]
    for name, ranks in (("a turn of the evidence", turns), ("its session", sessions)):
        shares = (sum(rank < k for rank in ranks) / len(ranks) for k in _RANKS)
        print(row_line(name, *(f"{share:.3f}" for share in shares), f"{1000 * seconds:.1f}"))
    return 0


def _ask_conversation(sample: dict[str, Any]) -> Iterator[_Answer]:
    texts, turns = _sessions(sample["conversation"])
    url = f"memory://{uuid.uuid4().hex}"
    publish(texts, url)
    with Monocontext.open(url) as context:
        for question in sample["qa"]:
            if question["category"] not in _CATEGORIES or not question["evidence"]:
                continue
            names = [name for item in question["evidence"] for name in re.findall(r"D\d+:\d+", item)]
            evidence = [turns[name] for name in names if name in turns]
            began = time.process_time()
            passages = context.search(question["question"], k=max(_RANKS))
            seconds = time.process_time() - began
            in_turn = (n for n, passage in enumerate(passages) if any(line in passage.text for _, line in evidence))
            in_session = (n for n, passage in enumerate(passages) if passage.document in dict(evidence))
            yield _Answer(next(in_turn, max(_RANKS)), next(in_session, max(_RANKS)), seconds)


def _sessions(conversation: dict[str, Any]) -> tuple[dict[str, str], dict[str, tuple[str, str]]]:
    """The text of each session, and by the name of a turn its session and its line."""
    texts, turns = dict[str, str](), dict[str, tuple[str, str]]()
    for name in filter(re.compile(r"session_\d+").fullmatch, conversation):
        lines = [conversation[f"{name}_date_time"]]
        for turn in conversation[name]:
            shown = f" [{turn['blip_caption']}]" if "blip_caption" in turn else ""
            lines.append(f"{turn['speaker']}: {turn['text']}{shown}".replace("\n", " "))
            turns[turn["dia_id"]] = name, lines[-1]
        texts[name] = "".join(f"{line}\n" for line in lines)
    return texts, turns
