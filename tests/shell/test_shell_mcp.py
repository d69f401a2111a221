"""A client of the MCP SDK over stdio, which has the tools `bash` and `keep`."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from monocontext import publish

pytest.importorskip("bashkit")
script = pytest.importorskip("tests.mcp.script", exc_type=ImportError, reason="no MCP SDK here")


@pytest.mark.slow
def test_a_client_runs_command_lines_and_keeps(tmp_path: Path) -> None:
    publish({"src/a.py": "import os\nneedle = 1\n"}, tmp_path / "code")

    async def talk() -> list[str]:
        served = f"code={tmp_path / 'code'}", "--shell", "--keep", tmp_path / "kept"
        async with script.stdio(*served) as client:
            return [
                await client.call("bash", command="grep -rn needle /code"),
                await client.call("keep", text="large\noutput\n", name="out.txt"),
                await client.call("bash", command="wc -l /kept/out.txt; cat /etc/shadow"),
                await client.call("context_slice", context="kept", document="out.txt"),
            ]

    assert asyncio.run(talk()) == [
        "/code/src/a.py:2:needle = 1",
        "out.txt: 13 bytes, 2 lines, for 86,400 s\nlarge\noutput\n",
        "2 /kept/out.txt\ncat: /etc/shadow: No such file or directory\n[exit code 1]",
        "large\noutput\n",
    ]
