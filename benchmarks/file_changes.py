"""Count the functions and files that one call runs through: `python -m benchmarks file_changes`.

A profile hook gets each call and return on the calling thread. It counts the calls of functions of this project, these
functions (a comprehension belongs to the function around it), their files, and the changes of file from one event to
the next. A thread that waits repeats a few steps, so the least of all rounds counts.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from random import Random
from types import CodeType, FrameType
from unittest.mock import patch

import monocontext
import rlm
from benchmarks.options import Commands, at_least_1, head_line, row_line
from benchmarks.processes import KEYS
from monocontext import Monocontext, publish
from monocontext.testing import S3StandIn
from monocontext.writing.upkeep.sync import sync
from rlm import RLM, ScriptedLM

PROJECT = tuple(str(Path(package.__file__ or "").parent) for package in (monocontext, rlm))
LINES = 150_000  # of 100 characters: too much text for a root, and enough frames for search filters to be read
NEEDLE = "the needle stands here"
FILES = 60
Call = Callable[[], object]


class Trace:
    """Counts the functions that the calling thread calls in a `with` block, and the changes of file between them."""

    def __init__(self) -> None:
        self.functions: set[CodeType] = set()
        self.calls = self.changes = 0
        self._file = ""

    @property
    def figures(self) -> tuple[int, int, int, int]:
        """Calls, functions, files, and changes of file, as in the table."""
        files = {function.co_filename for function in self.functions}
        return self.calls, len(self.functions), len(files), self.changes

    def __enter__(self) -> Trace:
        sys.setprofile(self._count_event)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _count_event(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event not in ("call", "return") or code.co_name.startswith("<") or not code.co_filename.startswith(PROJECT):
            return
        self.calls += event == "call"
        self.functions.add(code)
        self.changes += self._file not in ("", code.co_filename)
        self._file = code.co_filename


def add(commands: Commands) -> None:
    command = commands.add_parser("file_changes", help="functions and files that one call runs through")
    command.add_argument("--rounds", type=at_least_1, default=10, help="times each call is made; the least counts")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    print(head_line("call", "calls", "functions", "files", "changes of file"))
    keys = patch.dict(os.environ, KEYS)  # restored afterwards: tests call this in their own process
    with keys, tempfile.TemporaryDirectory() as folder, S3StandIn(folder) as server:
        for name, prepare in _calls(Path(folder), server).items():
            rounds = []
            for _ in range(arguments.rounds + 1):
                with prepare() as call, Trace() as trace:
                    call()
                rounds.append(trace.figures)
            print(row_line(name, *min(rounds[1:])), flush=True)  # the first imports modules
    return 0


def _calls(folder: Path, server: S3StandIn) -> dict[str, Callable[[], AbstractContextManager[Call]]]:
    """By name in the table: a function that makes a context manager, which prepares and yields one call."""
    random = Random(1)
    lines = [f"{number:08} {random.randbytes(45).hex()}\n" for number in range(LINES)]
    lines[LINES * 3 // 4] = NEEDLE + "\n"
    publish("".join(lines), str(folder / "text"))

    @contextmanager
    def reading(read: Callable[[Monocontext], object]) -> Iterator[Call]:
        with Monocontext.open(server.url("text"), endpoint=server.endpoint) as context:
            yield partial(read, context)

    @contextmanager
    def opening() -> Iterator[Call]:
        url, endpoint, texts = server.url("text"), server.endpoint, list[Monocontext]()
        yield lambda: texts.append(Monocontext.open(url, endpoint=endpoint))
        texts[0].close()

    @contextmanager
    def asking() -> Iterator[Call]:
        reply = '```repl\nFINAL(llm_query("what is it?"))\n```'
        with RLM(lm=ScriptedLM(lambda _: reply), sub_lm=ScriptedLM(lambda _: "it"), runner="local") as model:
            yield lambda: model.completion("what?", "text")

    @contextmanager
    def syncing() -> Iterator[Call]:
        source = folder / "source"
        source.mkdir(exist_ok=True)
        for number in range(FILES):
            (source / f"{number}.txt").write_text(f"file {number}\n" * 100)
        url = str(folder / f"synced-{random.random()}")
        sync([str(source)], url)
        (source / "7.txt").write_text("another text\n")
        yield lambda: sync([str(source)], url)

    return {
        "open over S3": opening,
        "cold slice over S3": lambda: reading(lambda context: context[1_000_000:1_000_100]),
        "cold `in` over S3": lambda: reading(lambda context: NEEDLE in context),
        "question of one turn: one cell, one sub-call": asking,
        f"sync of {FILES} files, one of them changed": syncing,
    }
