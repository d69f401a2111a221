"""`claude-agent-sdk`: the functions in its in-process MCP server, asked by an MCP client; Claude Code is not run."""

from __future__ import annotations

import asyncio
from typing import Any

from mcp.client import Client
from tools_contract import check_described, measure, next_call


def run(names: dict[str, Any], question: str) -> str:
    async def ask() -> str:
        async with Client(names["server"]["instance"]) as client:
            listed = (await client.list_tools()).tools
            check_described({item.name: (item.description, set(item.input_schema["properties"])) for item in listed})
            results: list[str] = []
            while not isinstance(call := next_call(results), str):
                results.append((await client.call_tool(*call)).content[0].text)
            return call

    return asyncio.run(ask())


if __name__ == "__main__":
    measure("claude-agent-sdk", run)
