"""Serve the page of one context. The server only reads, and only this one text."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from monocontext.errors import MonocontextError
from monocontext.page.assembly import Page, load_page
from monocontext.page.serving import PageServer
from monocontext.text.monocontext import Monocontext
from monocontext.view.feed import ContextFeed
from monocontext.view.recorded_runs import RecordedTurn

SCRIPTS = ("reader", "rows", "page")


@cache
def context_page() -> Page:
    """The page without data."""
    return load_page("monocontext.view", SCRIPTS)


class ContextServer(PageServer):
    """`GET /` the page; `/state`, `/documents`, `/text`, `/grep`, `/search`, `/history`, `/change`, `/read` data."""

    def __init__(
        self, text: Monocontext, host: str = "127.0.0.1", port: int = 0, *, runs: Sequence[RecordedTurn] = ()
    ) -> None:
        """`text`: a whole one, which stays open while the server runs. Raises OSError if the address is taken."""
        feed = ContextFeed(text, runs)
        answers = (
            feed.state, feed.documents, feed.text, feed.grep, feed.search, feed.history, feed.change, feed.read,
        )  # fmt: skip
        super().__init__(
            context_page(), {f"/{answer.__name__}": answer for answer in answers}, host, port,
            failures=(MonocontextError, OSError),
        )  # fmt: skip
