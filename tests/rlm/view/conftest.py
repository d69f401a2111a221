"""Trajectories to look at, a server for them, and a browser where one is installed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from monocontext.text import lazy_kinds
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


class Told(lazy_kinds.LazyContext, lazy_kinds.LazyText):
    """A text that says what was read of it, what that cost, and what it read ahead."""

    url = "memory://told"
    is_large = False

    def __init__(self, text: str) -> None:
        self._text = text
        ahead = SimpleNamespace(gets=0, bytes_fetched=0)
        self.stats: Any = SimpleNamespace(gets=0, bytes_fetched=0, hits=0, wait_seconds=0.0, prefetch=ahead)
        self._log: list[tuple[int, int]] = []

    @property
    def lines(self) -> list[str]:
        return self._text.splitlines(keepends=True)

    def __len__(self) -> int:
        return len(self._text)

    def __getitem__(self, key: slice) -> str:
        start, stop, _ = key.indices(len(self._text))
        self._log.append((start, stop))
        self.stats.gets += 1
        self.stats.bytes_fetched += stop - start
        self.stats.wait_seconds += 0.25
        return self._text[key]

    def __repr__(self) -> str:
        return f"<Told {len(self)} characters>"

    @contextmanager
    def thinking(self) -> Iterator[None]:
        yield
        self.stats.prefetch.gets += 3
        self.stats.prefetch.bytes_fetched += 3_000_000

    def reads_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        return len(self._log), [] if mark is None else self._log[mark:]

    def handed_since(self, mark: int | None = None) -> tuple[int, list[tuple[int, int]]]:
        return self.reads_since(mark)

    def hint(self, delta: str) -> None:
        """Nothing to read ahead."""

    def repl_namespace(self) -> Any:
        return SimpleNamespace(names={})


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
