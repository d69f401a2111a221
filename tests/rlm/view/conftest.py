"""Trajectories to look at, a server for them, and a browser where one is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rlm_replies import LazyText

from rlm import RLM, ScriptedLM
from rlm.view.feed import RowFeed
from rlm.view.page import ViewServer
from tests.browser import chromium as chromium
from tests.browser import served_by
from tests.browser import window as window

REPLIES = [
    "I look first.\n```repl\nprint(context[:40])\n```",
    "Two places.\n```repl\nparts = [context[100:200], context[4000:4100]]\n```\n"
    "```repl\nreplies = llm_query_batched(parts)\nprint(len(replies))\n```",
    "Oops.\n```repl\nprint(nothing)\n```",
    "Done.\n```repl\nFINAL(replies[0][:11])\n```",
]


class Told(LazyText):
    """A text that says what was read of it, what that cost, and what it read ahead."""

    url = "memory://told"
    is_large = False

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.stats.gets = self.stats.bytes_fetched = self.stats.wait_seconds = 0
        self._log: list[tuple[int, int]] = []

    def __getitem__(self, key: slice) -> str:
        start, stop, _ = key.indices(len(self))
        self._log.append((start, stop))
        self.stats.bytes_fetched += stop - start - 10
        return super().__getitem__(key)

    @contextmanager
    def thinking(self) -> Iterator[None]:
        yield
        self.stats.prefetch.gets += 3
        self.stats.prefetch.bytes_fetched += 3_000_000

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        return len(self._log), [] if mark is None else self._log[mark:]

    handed_since = reads_since


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run as `rlm` writes it."""
    path = tmp_path / "run.jsonl"
    rlm = RLM(lm=ScriptedLM(REPLIES, model="gpt-5"), sub_lm=ScriptedLM(str.upper, model="gpt-5-nano"), trajectory=path)
    assert rlm.completion("What stands there?", Told("all the text " * 800)).finished
    return path


@pytest.fixture
def serving() -> Iterator[Callable[[Path], ViewServer]]:
    with served_by(lambda path: ViewServer(RowFeed(path))) as serve:
        yield serve
