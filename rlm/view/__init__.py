"""Show a recorded run as one page, served while it goes on or written to a file: `rlm view`.

Data flows one way: `feed` reads the lines of a trajectory as they are written, `rows` shortens each, `page` puts page
and data together, `server` sends them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rlm.view.feed import RowFeed
    from rlm.view.page import export
    from rlm.view.server import ViewServer

__all__ = ["RowFeed", "ViewServer", "export"]

_HOMES = {"RowFeed": "feed", "ViewServer": "server", "export": "page"}


def __getattr__(name: str) -> object:
    """A run knows the rows of this room, and needs no HTTP server for that."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
