"""Trajectories to look at, a server for them, and a browser where one is installed."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rlm import RLM, ScriptedLM
from rlm.view import RowFeed, ViewServer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")

REPLIES = [
    "I look first.\n```repl\nprint(context[:40])\n```",
    "Two places.\n```repl\nparts = [context[100:200], context[4000:4100]]\n```\n"
    "```repl\nreplies = llm_query_batched(parts)\nprint(len(replies))\n```",
    "Oops.\n```repl\nprint(nothing)\n```",
    "Done.\n```repl\nFINAL(replies[0][:11])\n```",
]


class Told:
    """A text that says what was read of it, what that cost, and what it read ahead."""

    url = "memory://told"

    def __init__(self, text: str) -> None:
        self._text = text
        ahead = SimpleNamespace(gets=0, bytes_fetched=0)
        self.stats = SimpleNamespace(gets=0, bytes_fetched=0, hits=0, wait_seconds=0.0, prefetch=ahead)
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


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A run as `rlm` writes it."""
    path = tmp_path / "run.jsonl"
    rlm = RLM(lm=ScriptedLM(REPLIES, model="gpt-5"), sub_lm=ScriptedLM(str.upper, model="gpt-5-nano"), trajectory=path)
    assert rlm.completion("What stands there?", Told("all the text " * 800)).finished
    return path


@pytest.fixture
def serving() -> Iterator[Callable[[Path], ViewServer]]:
    """Starts servers, and ends them."""
    begun: list[tuple[ViewServer, threading.Thread]] = []

    def serve(path: Path) -> ViewServer:
        server = ViewServer(RowFeed(path))
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        begun.append((server, thread))
        return server

    yield serve
    for server, thread in begun:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless browser of this machine; nothing is downloaded.

    Gone with its module: the driver keeps an event loop in this thread, beside which no other test could run one.
    """
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed (extra dev)")
    with sync_api.sync_playwright() as driver:
        own = driver.chromium.executable_path
        found = next((path for name in BROWSERS if (path := shutil.which(name))), own if os.path.exists(own) else None)
        if found is None:
            pytest.skip(f"no browser is installed here: none of {', '.join(BROWSERS)} is on the path")
        # As root there is no sandbox to be had; what runs is our own page.
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


class Window:
    """A page that notes everything that a console would complain about, and every request that leaves."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, url: str) -> Any:
        self.page.goto(url)
        self.page.locator(".row").first.wait_for()
        return self.page


@pytest.fixture
def window(chromium: Any) -> Iterator[Window]:
    """A window; whatever a test does there, the console must stay empty."""
    context = chromium.new_context(viewport={"width": 1360, "height": 900})
    window = Window(context.new_page())
    yield window
    complaints = window.complaints
    context.close()
    assert complaints == []
