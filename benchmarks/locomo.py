"""Measure `context.search` on questions about long conversations: `python -m benchmarks words --locomo FILE`.

Each conversation is one text, whose documents are its sessions. A question of categories 1 to 4 is right within `k`
if one of the first `k` passages holds a turn of its evidence, or stands in the session of one. No model is asked. FILE
is `locomo10.json` of github.com/snap-research/LoCoMo, which is not part of this project.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.options import head_line, row_line
from monocontext import Monocontext, publish

BEST = (1, 5, 10)
CATEGORIES = range(1, 5)
"""The fifth asks for what the conversation does not say."""


def main(path: Path) -> int:
    ranks = [rank for conversation in json.loads(path.read_bytes()) for rank in _ask(conversation)]
    print(head_line(f"{len(ranks):,} questions", *(f"@{k}" for k in BEST), "ms of CPU"))
    for name, column in (("a turn of the evidence", 0), ("its session", 1)):
        shares = (sum(rank[column] < k for rank in ranks) / len(ranks) for k in BEST)
        seconds = sum(rank[2] for rank in ranks) / len(ranks)
        print(row_line(name, *(f"{share:.3f}" for share in shares), f"{1000 * seconds:.1f}"))
    return 0


def _ask(sample: dict[str, Any]) -> Iterator[tuple[int, int, float]]:
    """Of each question the first passage that holds a turn of the evidence, the first in its session, and seconds."""
    conversation, texts, turns = sample["conversation"], dict[str, str](), dict[str, tuple[str, str]]()
    for name in (name for name in conversation if re.fullmatch(r"session_\d+", name)):
        lines = [conversation[f"{name}_date_time"]]
        for turn in conversation[name]:
            shown = f" [{turn['blip_caption']}]" if "blip_caption" in turn else ""
            lines.append(f"{turn['speaker']}: {turn['text']}{shown}".replace("\n", " "))
            turns[turn["dia_id"]] = name, lines[-1]
        texts[name] = "".join(f"{line}\n" for line in lines)
    url = f"memory://{uuid.uuid4().hex}"
    publish(texts, url)
    with Monocontext.open(url) as context:
        for question in sample["qa"]:
            named = [
                turns[name] for item in question["evidence"] for name in re.findall(r"D\d+:\d+", item) if name in turns
            ]
            if question["category"] not in CATEGORIES or not question["evidence"]:
                continue
            began = time.process_time()
            passages = context.search(question["question"], k=max(BEST))
            seconds = time.process_time() - began
            held = (n for n, each in enumerate(passages) if any(line in each.text for _, line in named))
            stood = (n for n, each in enumerate(passages) if any(each.document == name for name, _ in named))
            yield next(held, max(BEST)), next(stood, max(BEST)), seconds
