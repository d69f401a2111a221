"""A home of its own for each test: none of the sessions and settings of whoever runs them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MONOCONTEXT_HOME", str(home / ".monocontext"))
    for name in (
        "CLAUDE_CONFIG_DIR", "CODEX_HOME", "MONOCONTEXT_URL", "MONOCONTEXT_USER", "OPENAI_API_KEY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture
def run_async() -> Callable[..., Any]:
    """Runs a coroutine to its end."""

    def run(what: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run(what)

    return run
