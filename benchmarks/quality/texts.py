"""Keep the haystack of a size on disk: uploaded as a context, once; other arms read the text back from it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.quality.haystack import Sources, build
from benchmarks.quality.questions import Question
from monocontext import Monocontext, publish


def prepare(folder: Path, size_bytes: int, questions: Sequence[Question], sources: Sources) -> Path:
    """The folder of the context; made where it is not there. Takes 1.2 times the size on disk at most."""
    planted = sorted({each for question in questions for each in question.evidence}, key=lambda each: each.text)
    name = hashlib.sha256(json.dumps([(each.text, each.share) for each in planted]).encode()).hexdigest()[:12]
    place = folder / f"{size_bytes}-{name}"
    if not (done := place.with_suffix(".done")).exists():
        publish(build(size_bytes, planted, sources), place, replace=True)
        done.touch()
    return place


def read_whole(place: Path) -> str:
    """The text in memory."""
    with Monocontext.open(place, materialize_limit=1 << 40) as context:
        return str(context)
