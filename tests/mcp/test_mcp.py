"""The servers over real connections, by the SDKs of the interpreters in `MONOCONTEXT_MCP_PYTHONS`, parted by `:`."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from monocontext import publish

SCRIPT = Path(__file__).with_name("script.py")
_found = importlib.util.find_spec("mcp")
HERE = [sys.executable] if _found and _found.origin else []  # without an origin it is the folder of these tests
PYTHONS = [each for each in os.environ.get("MONOCONTEXT_MCP_PYTHONS", "").split(":") if each] or HERE


def run(*command: str | Path) -> str:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])}
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, env=environment, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(not PYTHONS, reason="no MCP SDK here: pip install 'mcp>=2', or name interpreters that have one")
@pytest.mark.parametrize("python", PYTHONS)
def test_script(python: str) -> None:
    assert run(python, SCRIPT) == "fine\n"


@pytest.mark.skipif(not PYTHONS or not shutil.which("mcp-inspector"), reason="no mcp-inspector on the PATH, or no SDK")
@pytest.mark.parametrize("python", PYTHONS)
def test_inspector(python: str, tmp_path: Path) -> None:
    publish("0123456789" * 10, tmp_path / "digits")
    server = ("mcp-inspector", "--cli", python, "-m", "monocontext", "mcp", tmp_path / "digits")
    tools = json.loads(run(*server, "--method", "tools/list"))["tools"]
    names = ("list", "info", "slice", "search", "documents", "outline")
    assert [tool["name"] for tool in tools] == [f"context_{name}" for name in names]
    call = ("--method", "tools/call", "--tool-name", "context_slice", "--tool-arg", "start=5", "--tool-arg", "stop=25")
    reply = json.loads(run(*server, *call))
    assert reply["content"] == [{"type": "text", "text": "56789012345678901234"}]
    assert reply["structuredContent"]["text"] == "56789012345678901234"
    found = json.loads(run(*server, "--method", "resources/list"))["resources"]
    assert [each["uri"] for each in found] == ["monocontext://digits"]
