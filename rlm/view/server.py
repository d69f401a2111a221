"""Serve the page of one run. The server reads this one file, and writes nothing."""

from __future__ import annotations

from monocontext.page.serving import PageServer
from rlm.errors import RLMError
from rlm.view.feed import RowFeed
from rlm.view.page import run_page


class ViewServer(PageServer):
    """Serves the page at `/`, and its data as JSON at `/state`, `/turn` and `/prompt`."""

    def __init__(self, feed: RowFeed, host: str = "127.0.0.1", port: int = 0) -> None:
        """Port 0 takes any free one. Raises OSError if the address cannot be used."""
        answers = {
            "/state": lambda asked: feed.state(asked.number_or_none("first") or 0, asked.number_or_none("generation")),
            "/turn": lambda asked: feed.turn(asked.number("number")),
            "/prompt": lambda asked: feed.prompt(asked.number("number")),
        }
        super().__init__(run_page(), answers, host, port, failures=(RLMError, OSError))
