"""Show a recorded run as one page, served while it goes on or written to a file: `rlm view`.

Data flows one way: `feed` reads the lines of a trajectory as they are written, `rows` shortens each, `page` combines
them with the page, and `server` serves both.
"""

from __future__ import annotations

from rlm.view.feed import RowFeed
from rlm.view.page import export
from rlm.view.server import ViewServer

__all__ = ["RowFeed", "ViewServer", "export"]
