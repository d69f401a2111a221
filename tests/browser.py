"""A browser where one is installed, and a window that notes what a console would complain about."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from monocontext.page.serving import PageServer

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "microsoft-edge")


@contextmanager
def served_by(make: Callable[[Any], PageServer]) -> Iterator[Callable[[Any], Any]]:
    """Starts the servers that `make` makes of what is given, and ends them."""
    begun: list[tuple[PageServer, threading.Thread]] = []

    def serve(what: Any) -> PageServer:
        server = make(what)
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
    """A page that notes everything that a console would complain about."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.complaints: list[str] = []
        page.on("console", lambda message: self.complaints.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: self.complaints.append(f"error: {error}"))

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
    complaints = [*window.complaints]  # requests that the close cuts off are no fault of the page
    context.close()
    assert not complaints, complaints
