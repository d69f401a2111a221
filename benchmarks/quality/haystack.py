"""Build haystacks and publish each once: the source of Python's standard library, then generated logs.

Each file of source follows a header line. Nothing is downloaded: the source is that of this Python, some 30 MB.
"""

from __future__ import annotations

import hashlib
import json
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from random import Random

from benchmarks.logs import make_logs
from benchmarks.quality.questions import Planted, Question
from monocontext import publish

_SEED = 19  # of the order of files, and of the logs
_BLOCK_LINES = 50


class Sources:
    """The files of a source tree, by default of the standard library."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = root or Path(sysconfig.get_paths()["stdlib"])
        result = sorted(path for path in self.root.rglob("*.py") if "site-packages" not in path.parts)
        self.paths = [path.relative_to(self.root).as_posix() for path in result]  # relative to the root

    def read(self, path: str) -> str:
        """The text of a file; empty if it is not in UTF-8."""
        try:
            return (self.root / path).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            return ""

    def document(self, path: str) -> str:
        """A header line and the text of a file; ends with a newline."""
        text = self.read(path)
        return f"==== {path}\n{text}" + ("" if text.endswith("\n") else "\n")


def build(size_bytes: int, planted: Iterable[Planted], sources: Sources) -> Iterator[str]:
    """Yield whole lines, and the evidence in its places: at most `size_bytes` of UTF-8, unless the evidence is more."""
    waiting = sorted(planted, key=lambda item: item.share)
    evidence_bytes = sum(len(item.text.encode()) for item in waiting)
    filler_bytes, written_bytes = max(size_bytes - evidence_bytes, 0), 0
    for block in _fill(filler_bytes, sources, {item.text for item in waiting}):
        while waiting and waiting[0].share * filler_bytes <= written_bytes:
            yield waiting.pop(0).text
        yield block
        written_bytes += len(block.encode())
    yield from (item.text for item in waiting)


def _fill(filler_bytes: int, sources: Sources, evidence: set[str]) -> Iterator[str]:
    """Yield blocks of whole lines: files in random order, except those in `evidence`, then logs."""
    order, left_bytes = list(sources.paths), filler_bytes
    Random(_SEED).shuffle(order)
    files = (text for text in map(sources.document, order) if text not in evidence)
    for text in chain(files, (piece.decode() for piece in make_logs(filler_bytes, _SEED))):
        lines = text.splitlines(keepends=True)
        for start in range(0, len(lines), _BLOCK_LINES):
            block = "".join(lines[start : start + _BLOCK_LINES]).encode()
            if len(block) > left_bytes:
                yield block[: block.rfind(b"\n", 0, left_bytes) + 1].decode()
                return
            left_bytes -= len(block)
            yield block.decode()


def prepare(folder: Path, size_bytes: int, questions: Sequence[Question], sources: Sources) -> Path:
    """The folder of the context, published if it is missing. It takes at most 1.2 times the size on disk."""
    planted = sorted({item for question in questions for item in question.evidence}, key=lambda item: item.text)
    key = [sys.version, str(sources.root), [(item.text, item.share) for item in planted]]  # what the text depends on
    name = hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]
    location = folder / f"{size_bytes}-{name}"
    marker = location.with_suffix(".done")
    if not marker.exists():
        publish(build(size_bytes, planted, sources), location, replace=True)
        marker.touch()
    return location
