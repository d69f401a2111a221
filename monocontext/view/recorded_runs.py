"""Load the reads of recorded runs from the trajectories that `rlm` writes, which are JSON lines.

The files may come from other programs, so values of a wrong type are ignored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from monocontext.engine.read_log import MOST_RANGES, merge
from monocontext.errors import MonocontextError
from monocontext.text.monocontext import Monocontext

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The reads of one turn of a run."""

    question: str
    number: int
    when: str
    ranges: list[Range]
    """All characters that the code of the turn caused to be read."""
    received: list[Range]
    """The characters that the code received as slices, lines or matches; empty if the run did not record them."""
    gets: int
    size_bytes: int


def recorded_turns(paths: Iterable[Path], text: Monocontext) -> list[RecordedTurn]:
    """The turns of recorded runs that read this text, the newest first.

    A path is a file, or a folder with `.jsonl` files. Runs on other texts are left out, and runs on a version of
    another length, whose offsets differ. Raises `MonocontextError` for a file that cannot be read, and if no run is
    left.
    """
    turns, runs = list[RecordedTurn](), 0
    for path in [file for value in paths for file in _files(value)]:
        try:
            with path.open(encoding="utf-8", errors="replace") as lines:
                metadata = _parse(next(lines, ""))
                context = _mapping(metadata.get("context"))
                if context.get("uri") != text.url or _count(context.get("chars")) != len(text):
                    continue
                runs += 1
                question = str(metadata.get("query") or "")
                for line in map(_parse, lines):
                    question = str(line.get("question") or question)
                    turns.append(_turn(question, line, len(text)))
        except OSError as error:
            raise MonocontextError(f"{path}: {error.strerror or error}") from error
    if not runs:
        raise MonocontextError(f"no run in {', '.join(map(str, paths))} read {text.url} in this version")
    return sorted((turn for turn in turns if turn.ranges), key=lambda turn: turn.when, reverse=True)


def _turn(question: str, line: Mapping[str, Any], characters: int) -> RecordedTurn:
    results = [_mapping(_mapping(block).get("result")) for block in _list(line.get("code_blocks"))]
    costs = [_mapping(result.get("io")) for result in results]
    return RecordedTurn(
        question=question,
        number=_count(line.get("iteration")),
        when=str(line.get("timestamp") or ""),
        ranges=_ranges((pair for result in results for pair in _list(result.get("ranges"))), characters),
        received=_ranges((pair for result in results for pair in _list(result.get("handed"))), characters),
        gets=sum(_count(cost.get("gets")) for cost in costs),
        size_bytes=sum(_count(cost.get("bytes")) for cost in costs),
    )


def _files(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from sorted(path.glob("*.jsonl"))
    else:
        yield path


def _parse(line: str) -> Mapping[str, Any]:
    try:
        return _mapping(json.loads(line))
    except (ValueError, RecursionError):
        return {}


def _ranges(pairs: Iterable[object], characters: int) -> list[Range]:
    results = [(_count(pair[0]), _count(pair[1])) for pair in pairs if isinstance(pair, list) and len(pair) == 2]
    inside = [(start, min(stop, characters)) for start, stop in results if start < min(stop, characters)]
    return merge(inside, MOST_RANGES)


def _count(value: object) -> int:
    return value if type(value) is int and value > 0 else 0


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}
