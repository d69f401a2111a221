"""Serve the page of one run. The server only reads, and only this one file."""

from __future__ import annotations

from monocontext.page.serving import PageServer
from rlm.errors import RLMError
from rlm.view.feed import RowFeed
from rlm.view.page import run_page


class ViewServer(PageServer):
    """`GET /` the page; `/state?first=N&generation=G`, `/turn?number=N`, `/prompt?number=N` its data, as JSON."""

    def __init__(self, feed: RowFeed, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0 is any free one. Raises OSError where the address cannot be had."""
        answers = {
            "/state": lambda asked: feed.state(asked.number_or_none("first") or 0, asked.number_or_none("generation")),
            "/turn": lambda asked: feed.turn(asked.number("number")),
            "/prompt": lambda asked: feed.prompt(asked.number("number")),
        }
        super().__init__(run_page(), answers, host, port, failures=(RLMError, OSError))
