"""Serve the page of `monocontext view` for one text, read-only."""

from __future__ import annotations

from functools import cache

from monocontext.errors import MonocontextError
from monocontext.page.assembly import Page, load_page
from monocontext.page.serving import PageServer
from monocontext.text.monocontext import Monocontext
from monocontext.view.feed import ContextFeed

SCRIPTS = ("reader", "rows", "page")


@cache
def context_page() -> Page:
    """The page without data."""
    return load_page("monocontext.view", SCRIPTS)


class ContextServer(PageServer):
    """Serves the page at `/`, and a path of data for each method of `ContextFeed`, such as `/documents`."""

    def __init__(self, text: Monocontext, host: str = "127.0.0.1", port: int = 0) -> None:
        """`text` must be a whole text, and stay open. Raises OSError if the address is not available."""
        feed = ContextFeed(text)
        answers = (feed.state, feed.documents, feed.text, feed.grep, feed.search, feed.history, feed.change)
        super().__init__(
            context_page(), {f"/{answer.__name__}": answer for answer in answers}, host, port,
            failures=(MonocontextError, OSError),
        )  # fmt: skip
