"""Describe a session as plain JSON that any client reads: thinking, then reads of the text."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Any
from zlib import crc32

from benchmarks.logs import NEEDLE, make_incident
from benchmarks.virtual.play import AFTER

Turn = dict[str, Any]
"""`think` seconds, the `code` that a model would stream, and `steps`: ["slice", start, stop], ["find", needle] or
["pause", seconds], which is a sub-call."""

SLICE_BYTES = 5_000_000


@dataclass(frozen=True, slots=True)
class Session:
    """Turns over one text of ASCII, in which a character is a byte."""

    size_bytes: int
    turns: list[Turn]
    answers: list[int]
    """CRC-32 of what each slice gives, and the place that each search finds, in order."""

    def to_json(self) -> str:
        return json.dumps({"size_bytes": self.size_bytes, "turns": self.turns})


def text(size_bytes: int) -> bytes:
    """A log of so many bytes and the needle at 70 %."""
    return make_incident(size_bytes, 0.7)


def session(data: bytes, seed: int, think_seconds: float) -> Session:
    """A session of some 14 thinks; `think_seconds` is the length of the first, others are around it."""
    turns = list(_turns(data, Random(f"session {seed}"), think_seconds))
    answers = []
    for turn in turns:
        for kind, *what in turn["steps"]:
            if kind == "slice":
                answers.append(crc32(data[what[0] : what[1]]))
            elif kind == "find":
                answers.append(data.find(what[0].encode()))
    return Session(len(data), turns, answers)


def _turns(data: bytes, dice: Random, think_seconds: float) -> Iterator[Turn]:
    size = len(data)

    def turn(code: str, *steps: list[Any]) -> Turn:
        return {"think": round(think_seconds * dice.uniform(0.7, 1.5), 3), "code": code + AFTER, "steps": list(steps)}

    yield turn("print(len(context))\nprint(context[:2000])\n", ["slice", 0, 2000])
    yield turn("print(context[-2000:])\n", ["slice", size - 2000, size])
    at = dice.randrange(size // 4, size // 3)
    yield turn(f"part = context[{at}:{at + SLICE_BYTES}]\n", ["slice", at, at + SLICE_BYTES])
    zooms = [dice.randrange(size - 3000) for _ in range(12)]
    for first, second in zip(zooms[::2], zooms[1::2], strict=True):
        code = f"print(context[{first}:{first + 3000}])\nprint(context[{second}:{second + 3000}])\n"
        yield turn(code, ["slice", first, first + 3000], ["slice", second, second + 3000])
    chunk, chunks = 400_000, min(10, size // 400_000)
    steps = [each for i in range(chunks) for each in (["slice", i * chunk, (i + 1) * chunk], ["pause", 0.3])]
    code = f"for i in range(0, {chunks * chunk}, {chunk}):\n    notes.append(llm_query(context[i:i + {chunk}]))\n"
    yield turn(code, *steps)
    yield turn(f"at = context.find({NEEDLE!r})\nprint(at)\n", ["find", NEEDLE])
    hit = data.find(NEEDLE.encode())
    yield turn(f"print(context[{hit - 300}:{hit + 900}])\n", ["slice", hit - 300, hit + 900])
    again = "".join(f"print(context[{each}:{each + 3000}])\n" for each in zooms[:4])
    yield turn(again, *(["slice", each, each + 3000] for each in zooms[:4]))
