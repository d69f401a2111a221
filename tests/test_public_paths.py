"""Paths that code outside this repository imports or runs stay what they are, wherever the code moves."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module
from importlib.metadata import entry_points
from importlib.resources import files

import pytest

PUBLIC: dict[str, list[str]] = {
    "monocontext": [
        "ContextTooLarge", "Manifest", "Monocontext", "MonocontextError", "append", "delete",
        "publish", "replace", "tools", "update",
    ],
    "monocontext.adapters.rlms": ["Prompt", "arguments", "prompt"],
    "monocontext.aio": ["AsyncMonocontext"],
    "monocontext.cli": ["main"],
    "monocontext.dspy": ["MemoryAgent", "MemoryRLM", "interpreter"],
    "monocontext.errors": ["ContextChanged", "ContextTooLarge", "MonocontextError", "NotAContext", "StoreFailure"],
    "monocontext.mcp": ["Served", "Tools"],
    "monocontext.memory": ["Entry", "Found", "Memory", "MemoryTool", "Sizes"],
    "monocontext.memory.langgraph_store": ["LangGraphStore"],
    "monocontext.text.namespace": ["NamespacePatch"],
    "monocontext.notebook": ["progress_bar"],
    "monocontext.regex": [
        "I", "Match", "Pattern", "compile", "error", "escape", "findall", "finditer", "fullmatch", "match", "purge",
        "required_literals", "search", "split", "sub", "subn",
    ],
    "monocontext.sessions": [
        "Project", "Redactor", "SessionInfo", "Sessions", "Turn", "Uploaded", "open_project",
        "upload_session",
    ],
    "monocontext.sessions.hook": ["main"],
    "monocontext.sessions.background_upload": [],
    "monocontext.stores": ["is_within", "open_store", "split_object"],
    "monocontext.testing": [
        "PROFILES", "CountingStore", "Crash", "CrashingStore", "Fault", "FaultPlan", "FaultyStore",
        "HttpFault", "Profile", "Request", "S3StandIn", "SeaweedServer", "SlowStore",
        "WrappedStore", "fail", "find_weed", "flip_byte", "profile", "truncate", "wrong_etag",
    ],
    "monocontext.text": ["Monocontext", "served_text"],
    "rlm": [
        "LM", "PRICES", "RLM", "RLM_REPL", "AnswerRefused", "AnthropicLM", "Backoff", "Budget", "BudgetSpent", "Cell",
        "ChannelAbuse", "ClaudeAgentLM", "Completion", "FinalOutput", "Interpreter", "LLMError", "ModelUsage",
        "OpenAILM", "RLMError", "RateLimited", "ReplayLM", "Reply", "RunnerUnavailable", "ScriptExhausted",
        "ScriptedLM", "Session", "Step", "SubCache", "TrajectoryError", "UnknownOption", "Usage", "create_interpreter",
        "get_default_volume_name", "sanitize_key",
    ],
    "rlm.interpreter": ["FinalOutput", "Interpreter", "create_interpreter"],
    "rlm.runners.launcher": ["main"],
    "rlm.view": [],
}  # fmt: skip
OPTIONAL = {"monocontext.dspy": "dspy.predict", "monocontext.memory.langgraph_store": "langgraph"}


@pytest.mark.parametrize("path", PUBLIC)
def test_a_public_path_holds_its_names(path: str) -> None:
    if path in OPTIONAL:
        pytest.importorskip(OPTIONAL[path])
    module = import_module(path)
    assert [name for name in PUBLIC[path] if not hasattr(module, name)] == []


def test_commands() -> None:
    scripts = {script.name: script.value for script in entry_points(group="console_scripts")}
    assert scripts["monocontext"] == "monocontext.cli:main"
    assert scripts["monocontext-hook"] == "monocontext.sessions.hook:main"
    assert scripts["rlm"] == "rlm.cli:main"
    for module in ("monocontext", "rlm"):
        done = subprocess.run([sys.executable, "-m", module, "--help"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr


def test_names_that_other_processes_are_started_with() -> None:
    """A worker in a container, or a hook installed by an older release, starts these by name."""
    assert callable(import_module("monocontext.text").served_text)
    assert (files("rlm.view") / "page" / "page.html").is_file()
