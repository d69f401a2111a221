"""Serve contexts, sessions and memories as tools of the Model Context Protocol.

Importing this loads no SDK; `server.make_server` needs the extra `mcp`.
"""

from __future__ import annotations

from monocontext.mcp.catalog import Served
from monocontext.mcp.tools import Tools

__all__ = ["Served", "Tools"]
