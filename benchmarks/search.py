"""Measure what search filters cost and save: `python -m benchmarks search [--size 1G] [--corpora code,prose,cjk,logs]`.

For each text: publishing with and without filters; needles drawn by rule, each searched by a context that was just
opened behind a distant store; passes that no filter can narrow; and the ways other than ours
(`benchmarks.search_peers`). Shares are of the stored bytes of the text alone, and what was read counts whole: root,
index pages, filters and frames, from the store's own counters. Every answer is checked against the text itself.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

import zstandard

from benchmarks import search_peers
from benchmarks.corpora import CorpusMissing, corpus, describe, folder
from benchmarks.endpoint import Distance, DistantStore, Link
from benchmarks.machine import cpu_seconds, describe_machine
from benchmarks.needles import Haystack, Needle, choose, commonest
from benchmarks.search_peers import Places
from monocontext import Manifest, Monocontext, publish, regex
from monocontext.format.manifest import ROOT_KEY
from monocontext.stores.local import LocalStore
from monocontext.testing import CountingStore
from monocontext.writing.pages import load_page

VERSION = 1
PUBLISH_ROUNDS = 3
PASS_BYTES = 256_000_000
"""Text of the passes that no filter can narrow: CPU counts there, not size."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is measured."""

    size_bytes: int = 1_000_000_000
    corpora: tuple[str, ...] = ("code", "prose", "cjk", "logs")
    needles: int = 12
    """Of each kind."""
    rounds: int = 9
    """Of passes, in turns with and without filters."""
    peer_rounds: int = 3
    seed: int = 4
    parts: tuple[str, ...] = ("publish", "needles", "passes", "peers")
    distance: Distance = field(default_factory=Distance)


@dataclass(frozen=True, slots=True)
class Published:
    """Publishing one text into a directory; seconds are the least of the rounds."""

    seconds: float
    filters_seconds: float
    """With filters."""
    cpu_seconds: float
    filters_cpu_seconds: float
    text_bytes: int
    stored_bytes: int
    """Of the text, without filters, index pages and root."""
    filter_bytes: int
    """By which a context with filters is larger."""
    frames: int


@dataclass(frozen=True, slots=True)
class Search:
    """One needle, one context that was just opened."""

    kind: str
    query: str
    operation: str
    places: int
    seconds: float
    gets: int
    bytes_read: int
    share: float
    """Bytes read, of the stored bytes of the text."""
    frames: int
    """That were fetched, those that lay between others among them."""
    in_vain: int | None
    """Frames that were looked at and hold no match; nothing where no filter was asked."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A pass that no filter can narrow, from a directory in fresh contexts; medians of the rounds."""

    name: str
    seconds: float
    filters_seconds: float
    ratio: float
    """With over without, in the same round."""
    cpu_ratio: float
    """Of the least CPU seconds with filters to the least without: other load on the machine shows least there."""


Frame = tuple[str, int, int]
"""Object, first byte, byte after the last."""
Operation = tuple[str, Callable[[Any, Needle], int]]
"""A name, and what gives the number of places (of a first place: -1, or where it is)."""

_PLAIN: list[Operation] = [
    ("count", lambda text, needle: text.count(needle.query)),
    ("in", lambda text, needle: int(needle.query in text)),
    ("lower().find", lambda text, needle: min(text.lower().find(needle.query.lower()) + 1, 1)),
]
_PATTERN: list[Operation] = [
    ("finditer", lambda text, needle: sum(1 for _ in regex.finditer(needle.query, text))),
    ("search", lambda text, needle: int(regex.search(needle.query, text) is not None)),
]
_ALL = ("count", "finditer")
"""Operations that find every place; the others end with the first."""


def main(plan: Plan, json_path: Path | None = None) -> dict[str, Any]:
    """Measure, print and return everything; a text that cannot be had is named and left out."""
    result: dict[str, Any] = {
        "benchmark": "search",
        "version": VERSION,
        "machine": describe_machine(),
        "plan": asdict(plan),
        "peers": search_peers.versions(),
        "missing": search_peers.missing() if "peers" in plan.parts else {},
        "corpora": {},
    }
    machine = ", ".join(f"{name} {value}" for name, value in result["machine"].items())
    distance = plan.distance
    print(
        f"Search, {plan.size_bytes:,} bytes of text, seed {plan.seed}; {1000 * distance.latency_seconds:.0f} ms a GET, "
        f"{distance.connection_bytes_per_second / 1e6:.0f} MB/s a connection, "
        f"{distance.link_bytes_per_second / 1e6:.0f} MB/s for all\n({machine})"
    )
    for way, reason in result["missing"].items():
        print(f"Not measured: {way}: {reason}")
    for name in plan.corpora:
        try:
            path = corpus(name, plan.size_bytes)
        except CorpusMissing as error:
            print(f"\n{name}: not to be had: {error}")
            result["corpora"][name] = {"missing": str(error)}
            continue
        result["corpora"][name] = _measure(name, path, plan)
        if json_path:  # after each text: what was measured is kept if the next one fails
            json_path.write_text(json.dumps(result, indent=1) + "\n")
    return result


def _measure(name: str, path: Path, plan: Plan) -> dict[str, Any]:
    about = describe(path)
    print(f"\n## {name}: {about['bytes']:,} bytes, {about.get('tiles', 1)} tiles, sha256 {about['sha256'][:16]}")
    print(f"(load {os.getloadavg()[0]:.1f} at {datetime.now(UTC):%H:%M} UTC)\n")
    found: dict[str, Any] = {"corpus": about}
    with _folder() as work:
        places = Places(work / "text", work / "packed", work / "plain", work / "filtered")
        published = _publish(path, places, PUBLISH_ROUNDS if "publish" in plan.parts else 1)
        found["publish"] = asdict(published)
        _print_published(published)
        if {"needles", "peers"} & {*plan.parts}:
            needles = _needles(path, about.get("tiles", 1), plan)
        if "needles" in plan.parts:
            frames = list(_frames(places.filtered))
            searches = [
                search for needle in needles for search in _searches(places.filtered, frames, needle, published, plan)
            ]
            found["needles"] = [asdict(search) for search in searches]
            _print_searches(searches, published)
        if "peers" in plan.parts:
            _add_peers_forms(path, places)
            peers = search_peers.measure(places, _pairs(needles), plan.distance, plan.peer_rounds)
            found["peers"] = [asdict(row) for row in peers]
            _print_peers(peers)
    if "passes" in plan.parts:
        passes = _passes(name, plan)
        found["passes"] = [asdict(row) for row in passes]
        _print_passes(passes)
    return found


# -- publishing ----------------------------------------------------------------------------------------------------


def _publish(path: Path, places: Places, rounds: int) -> Published:
    """Both contexts, in turns; the last ones stay."""
    for _ in _pieces(path):  # a file that was not read yet would count against the first round
        pass
    taken: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
    for _ in range(rounds):
        for filters, place in ((False, places.plain), (True, places.filtered)):
            shutil.rmtree(place, ignore_errors=True)
            began, cpu_began = time.perf_counter(), cpu_seconds()
            manifest = _publish_corpus(path, place, filters)
            taken[filters].append((time.perf_counter() - began, cpu_seconds() - cpu_began))
    (seconds, cpu), (filters_seconds, filters_cpu) = (
        tuple(min(column) for column in zip(*taken[filters], strict=True)) for filters in (False, True)
    )
    return Published(
        seconds=seconds,
        filters_seconds=filters_seconds,
        cpu_seconds=cpu,
        filters_cpu_seconds=filters_cpu,
        text_bytes=path.stat().st_size,
        stored_bytes=manifest.stored_bytes,
        filter_bytes=_size_bytes(places.filtered) - _size_bytes(places.plain),
        frames=manifest.frames,
    )


def _publish_corpus(path: Path, place: Path, filters: bool) -> Manifest:
    return publish(_pieces(path), place, filters=filters)


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            yield piece


def _size_bytes(place: Path) -> int:
    return sum(info.size_bytes for info in LocalStore(place).list())


# -- needles -------------------------------------------------------------------------------------------------------


def _needles(path: Path, tiles: int, plan: Plan) -> list[Needle]:
    return choose(Haystack(path.read_bytes(), tiles), plan.needles, plan.seed)


def _searches(
    place: Path, frames: Sequence[Frame], needle: Needle, published: Published, plan: Plan
) -> Iterator[Search]:
    """Each operation in a context of its own. Raises `AssertionError` where an answer is wrong."""
    for operation, run in _PATTERN if needle.is_pattern else _PLAIN:
        counted = CountingStore(DistantStore(LocalStore(place), Link(plan.distance)))
        began = time.perf_counter()
        with Monocontext.open(counted) as context:
            found = run(context, needle)
            seconds = time.perf_counter() - began
            stats = context.stats.search
        expected = needle.places if operation in _ALL else min(needle.places, 1)
        # A text in lower case may hold in another place what this one does not.
        if found != expected and not (operation == "lower().find" and found and not expected):
            raise AssertionError(f"{operation} of {needle}: {found}, expected {expected}")
        read = _read(counted)
        yield Search(
            kind=needle.kind,
            query=needle.query,
            operation=operation,
            places=needle.places,
            seconds=seconds,
            gets=counted.gets,
            bytes_read=counted.bytes_read,
            share=counted.bytes_read / published.stored_bytes,
            frames=sum(
                any(start <= first and last <= stop for start, stop in read.get(key, ())) for key, first, last in frames
            ),
            in_vain=stats.false_positives if stats.searches else None,
        )


def _frames(place: Path) -> Iterator[Frame]:
    store = LocalStore(place)
    root = Manifest.from_bytes(store.get(ROOT_KEY).data)
    for number in range(len(root.pages)):
        page = load_page(store, root.pages, number)
        records = iter(page.records())
        for run in page.runs:
            at = run.offset
            for record in islice(records, run.frames):
                yield run.object, at, at + record.stored_bytes
                at += record.stored_bytes


def _read(store: CountingStore) -> dict[str, list[tuple[int, int]]]:
    """Ranges that were asked for, by key."""
    ranges: dict[str, list[tuple[int, int]]] = {}
    for request in store.log:
        if request.verb == "get_range" and request.start is not None and request.length is not None:
            ranges.setdefault(request.key, []).append((request.start, request.start + request.length))
    return ranges


def _pairs(needles: Sequence[Needle]) -> list[tuple[Needle, Needle]]:
    """For the peers: two needles of each of these kinds."""
    pairs = []
    for kind in ("rare identifier", "absent identifier", "UUID", "common word"):
        if len(found := [needle for needle in needles if needle.kind == kind]) > 1:
            pairs.append((found[0], found[1]))
    return pairs


def _add_peers_forms(path: Path, places: Places) -> None:
    """The text as one object, plain and compressed as strongly as our frames."""
    for place in (places.text, places.packed):
        place.mkdir()
    (places.text / "text").hardlink_to(path)
    (places.packed / "text.zst").write_bytes(zstandard.ZstdCompressor(level=3).compress(path.read_bytes()))


# -- passes --------------------------------------------------------------------------------------------------------


def _passes(name: str, plan: Plan) -> list[Pass]:
    """Each pass in fresh contexts without and with filters, in turns, the order turned every round."""
    path = corpus(name, min(PASS_BYTES, plan.size_bytes))
    word = commonest(Haystack(path.read_bytes()), 1, random.Random(plan.seed))[0]
    short = word[:3] if word.isascii() else word[:1]
    runs: dict[str, Callable[[Any], object]] = {
        r"finditer \d{4}-\d\d, no literal": lambda text: sum(1 for _ in regex.finditer(r"\d{4}-\d\d", text)),
        f"count of a common word ({word})": lambda text: text.count(word),
        f"count of {short!r}, too short": lambda text: text.count(short),
        "finditer [qxz]{3}[0-9]: two letters are no literal": lambda text: sum(
            1 for _ in regex.finditer("[qxz]{3}[0-9]", text)
        ),
        "lines: for line in splitlines()": lambda text: sum(1 for _ in text.splitlines()),
    }
    rows = []
    with _folder() as work:
        for filters in (False, True):
            _publish_corpus(path, work / str(filters), filters)
        for title, run in runs.items():
            taken: dict[bool, list[tuple[float, float]]] = {False: [], True: []}
            answers = set()
            for turn in range(plan.rounds):
                for filters in (False, True) if turn % 2 else (True, False):
                    began, cpu_began = time.perf_counter(), cpu_seconds()
                    with Monocontext.open(work / str(filters)) as context:
                        answers.add(run(context))
                    taken[filters].append((time.perf_counter() - began, cpu_seconds() - cpu_began))
            if len(answers) != 1:
                raise AssertionError(f"{title}: with and without filters the answers differ: {answers}")
            pairs = list(zip(taken[False], taken[True], strict=True))
            rows.append(
                Pass(
                    name=title,
                    seconds=statistics.median(without for (without, _), _ in pairs),
                    filters_seconds=statistics.median(with_ for _, (with_, _) in pairs),
                    ratio=statistics.median(with_[0] / without[0] for without, with_ in pairs),
                    cpu_ratio=min(cpu for _, cpu in taken[True]) / min(cpu for _, cpu in taken[False]),
                )
            )
    return rows


# -- tables --------------------------------------------------------------------------------------------------------


def _print_published(row: Published) -> None:
    stored, text, extra = row.stored_bytes, row.text_bytes, row.filter_bytes
    print("| publish | seconds | CPU seconds | bytes | of the text | of the stored bytes |")
    print("|---|---:|---:|---:|---:|---:|")
    print(f"| without filters | {row.seconds:.2f} | {row.cpu_seconds:.2f} | {stored:,} | {stored / text:.1%} | 100 % |")
    seconds, cpu_seconds = row.filters_seconds - row.seconds, row.filters_cpu_seconds - row.cpu_seconds
    print(
        f"| filters alone | {seconds:+.2f} | {cpu_seconds:+.2f} | {extra:,} | {extra / text:.1%} "
        f"| {extra / stored:.1%} |"
    )
    print(f"\nCPU with filters: {row.filters_cpu_seconds / row.cpu_seconds:.2f} x of without; {row.frames:,} frames\n")


def _print_searches(searches: Sequence[Search], published: Published) -> None:
    print("Medians, and the worst needle; shares are of the stored bytes of the text.\n")
    print("| needle | operation | places | share read | worst | frames | worst | in vain | GETs | worst | ms | worst |")
    print("|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|")
    for kind, operation in dict.fromkeys((search.kind, search.operation) for search in searches):
        rows = [search for search in searches if (search.kind, search.operation) == (kind, operation)]
        share, frames, gets, taken = (
            _median_and_worst(column)
            for column in (
                [row.share for row in rows],
                [row.frames for row in rows],
                [row.gets for row in rows],
                [1000 * row.seconds for row in rows],
            )
        )
        print(
            f"| {kind} ({len(rows)}) | {operation} | {statistics.median(row.places for row in rows):,.0f} "
            f"| {share[0]:.2%} | {share[1]:.2%} | {frames[0]:,.0f} | {frames[1]:,.0f} "
            f"| {_in_vain(rows)} | {gets[0]:,.0f} | {gets[1]:,.0f} "
            f"| {taken[0]:,.0f} | {taken[1]:,.0f} |"
        )
    print(f"\n({published.frames:,} frames in all)\n")


def _in_vain(rows: Sequence[Search]) -> str:
    known = [row.in_vain for row in rows if row.in_vain is not None]
    return f"{statistics.median(known):,.0f}" if known else "-"


def _median_and_worst(values: Sequence[float]) -> tuple[float, float]:
    return statistics.median(values), max(values)


def _print_passes(rows: Sequence[Pass]) -> None:
    print("| pass that no filter narrows | without, s | with, s | with / without | least CPU |")
    print("|---|---:|---:|---:|---:|")
    for row in rows:
        print(f"| {row.name} | {row.seconds:.2f} | {row.filters_seconds:.2f} | {row.ratio:.3f} | {row.cpu_ratio:.3f} |")
    print()


def _print_peers(rows: Sequence[search_peers.Row]) -> None:
    for kind in dict.fromkeys(row.kind for row in rows):
        print(f"| {kind}, all places | seconds | CPU | bytes read | GETs | seconds for the next needle |")
        print("|---|---:|---:|---:|---:|---:|")
        for row in (row for row in rows if row.kind == kind):
            print(
                f"| {row.way} | {row.seconds:.3f} | {row.cpu_seconds:.2f} | {row.bytes_read:,} | {row.gets:,} "
                f"| {row.next_seconds:.3f} |"
            )
        print()


@contextmanager
def _folder() -> Iterator[Path]:
    """Beside the texts: one of them is linked, not copied, into it."""
    with tempfile.TemporaryDirectory(dir=folder()) as place:
        yield Path(place)


def parse_list(names: str) -> tuple[str, ...]:
    """`code,prose` as a tuple."""
    return tuple(filter(None, names.split(",")))


def size(text: str) -> int:
    """`1G` as a number of bytes: K, M and G are powers of a thousand."""
    powers: Iterable[tuple[str, int]] = (("K", 10**3), ("M", 10**6), ("G", 10**9))
    for letter, factor in powers:
        if text.upper().endswith(letter):
            return int(float(text[:-1]) * factor)
    return int(text)
