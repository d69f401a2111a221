"""Show a recorded run as one page, served while it goes on or written to a file: `rlm view`."""

from __future__ import annotations

from rlm.view.feed import RowFeed
from rlm.view.page import ViewServer, export

__all__ = ["RowFeed", "ViewServer", "export"]
