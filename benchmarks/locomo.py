"""Measure whether search by words finds the evidence for the questions of LoCoMo-10: `benchmarks words --locomo FILE`.

FILE is `locomo10.json` of github.com/snap-research/LoCoMo. Each conversation becomes a text whose documents are its
sessions. For the questions of categories 1 to 4, two shares are measured: how often one of the first k passages holds a
turn of the evidence, and how often one is from its session. No model takes part.

A question whose evidence names no turn of the conversation counts as wrong, as in the published figures. Questions
without any evidence are left out.
"""

from __future__ import annotations

import json
import re
import statistics
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.options import head_line, row_line
from monocontext import Monocontext, publish

_RANKS = (1, 5, 10)
_CATEGORIES = range(1, 5)  # the fifth asks for what the conversation does not say


class _Turn(NamedTuple):
    session: str
    line: str


class _Answer(NamedTuple):
    """What a search found."""

    holds_turn: list[bool]  # for each passage, whether it holds a turn of the evidence
    is_of_session: list[bool]  # for each passage, whether its session has a turn of the evidence
    seconds: float  # of processor time


def measure(path: Path) -> int:
    """Ask all questions of a file, and print the shares that are right. Returns the exit status."""
    answers = [answer for sample in json.loads(path.read_bytes()) for answer in _ask_conversation(sample)]
    milliseconds = 1000 * statistics.mean(answer.seconds for answer in answers)
    print(head_line(f"{len(answers):,} questions", *(f"@{k}" for k in _RANKS), "ms of CPU"))
    turns, sessions = [answer.holds_turn for answer in answers], [answer.is_of_session for answer in answers]
    for name, results in (("a turn of the evidence", turns), ("its session", sessions)):
        shares = (statistics.mean(any(are_right[:k]) for are_right in results) for k in _RANKS)
        print(row_line(name, *(f"{share:.3f}" for share in shares), f"{milliseconds:.1f}"))
    return 0


def _ask_conversation(sample: dict[str, Any]) -> Iterator[_Answer]:
    documents, turns = _sessions(sample["conversation"])
    url = f"memory://{uuid.uuid4().hex}"
    publish(documents, url)
    with Monocontext.open(url) as context:
        for question in sample["qa"]:
            if question["category"] not in _CATEGORIES or not question["evidence"]:
                continue
            names = [name for item in question["evidence"] for name in re.findall(r"D\d+:\d+", item)]
            evidence = [turns[name] for name in names if name in turns]
            began = time.process_time()
            passages = context.search(question["question"], k=max(_RANKS))
            seconds = time.process_time() - began
            holds_turn = [any(turn.line in passage.text for turn in evidence) for passage in passages]
            is_of_session = [any(turn.session == passage.document for turn in evidence) for passage in passages]
            yield _Answer(holds_turn, is_of_session, seconds)


def _sessions(conversation: dict[str, Any]) -> tuple[dict[str, str], dict[str, _Turn]]:
    """The text of each session by its name, and the turns by their names, such as `D1:3`."""
    texts, turns = dict[str, str](), dict[str, _Turn]()
    for name in filter(re.compile(r"session_\d+").fullmatch, conversation):
        lines = [conversation[f"{name}_date_time"]]
        for turn in conversation[name]:
            caption = f" [{turn['blip_caption']}]" if "blip_caption" in turn else ""
            lines.append(f"{turn['speaker']}: {turn['text']}{caption}".replace("\n", " "))
            turns[turn["dia_id"]] = _Turn(name, lines[-1])
        texts[name] = "".join(f"{line}\n" for line in lines)
    return texts, turns
