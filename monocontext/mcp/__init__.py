"""Serve contexts, sessions and memories as tools of the Model Context Protocol.

    monocontext mcp s3://bucket/logs --sessions s3://team/agents --memory s3://team/memory

Importing this loads no SDK; `server.make_server` needs the extra `mcp`.
"""

from __future__ import annotations

from monocontext.mcp.catalog import Served
from monocontext.mcp.tools import Tools

__all__ = ["Served", "Tools"]
