"""Count how often one call goes from one file of the project to another: `python -m benchmarks file_changes`.

The count says how many files a reader of the code must visit to follow a call. A profile hook sees each call and return
on the calling thread; a change is an event in another file than the event before. Files outside the project do not
count. Each call runs over a directory and over S3 (a stand-in on this machine). A thread that waits repeats a few
steps, so the table shows the least of all rounds.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any, TypeAlias
from unittest.mock import patch

import monocontext
from benchmarks.options import Commands, head_line, row_line
from benchmarks.processes import KEYS
from monocontext import Monocontext, publish
from monocontext.testing import S3StandIn

PROJECT = str(Path(monocontext.__file__).parent)
LINES = 150_000
"""Lines of 100 random characters: too much text for a root, and enough frames for search filters to be read."""
NEEDLE = "the needle stands here"

Options: TypeAlias = dict[str, Any]
"""Options with which a store is opened."""


def add(commands: Commands) -> None:
    command = commands.add_parser("file_changes", help="how often one call goes from one file to another")
    command.add_argument("--rounds", type=int, default=20, help="times each call is made; the least counts")
    command.set_defaults(run=main)


def main(arguments: argparse.Namespace) -> int:
    keys = patch.dict(os.environ, KEYS)  # restored afterwards: tests call this in their own process
    with keys, tempfile.TemporaryDirectory() as folder, S3StandIn(folder) as server:
        publish_text(f"{folder}/text")
        s3 = {"endpoint": server.endpoint}
        print(head_line("call", "changes of file", "files", "functions called"))
        for location, url, options in (("directory", f"{folder}/text", {}), ("S3", server.url("text"), s3)):
            for call, run in CALLS.items():
                run(url, options)  # imports are not part of a call
                best = min((run(url, options) for _ in range(arguments.rounds)), key=lambda one: one.changes)
                print(row_line(f"{call}, {location}", best.changes, len(best.files), best.calls))
    return 0


def publish_text(folder: str) -> None:
    """Publish a text with the needle at three quarters of it."""
    random = Random(1)
    lines = [f"{number:08} {random.randbytes(45).hex()}\n" for number in range(LINES)]
    lines[LINES * 3 // 4] = NEEDLE + "\n"
    publish("".join(lines), folder)


class FileChanges:
    """Counts the changes of file on this thread within a `with` block."""

    def __init__(self) -> None:
        self.changes = 0
        self.files: set[str] = set()
        self.calls = 0
        self._last: str | None = None

    def __enter__(self) -> FileChanges:
        sys.setprofile(self._see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)

    def _see(self, frame: FrameType, event: str, _: Any) -> None:
        path = frame.f_code.co_filename
        if event not in ("call", "return") or not path.startswith(PROJECT):
            return
        path = path[len(PROJECT) + 1 :]
        self.calls += event == "call"
        self.files.add(path)
        self.changes += self._last not in (None, path)
        self._last = path


def count_open(url: str, options: Options) -> FileChanges:
    with FileChanges() as count:
        context = Monocontext.open(url, **options)
    context.close()
    return count


def count_in_context(run: Callable[[Monocontext], object]) -> Callable[[str, Options], FileChanges]:
    """A function that counts the changes of `run` on a freshly opened text."""

    def measured(url: str, options: Options) -> FileChanges:
        with Monocontext.open(url, **options) as context, FileChanges() as count:
            run(context)
        return count

    return measured


CALLS: dict[str, Callable[[str, Options], FileChanges]] = {
    "open": count_open,
    "cold slice of one frame": count_in_context(lambda context: context[1_000_000:1_000_100]),
    "cold `in`": count_in_context(lambda context: NEEDLE in context),
}
