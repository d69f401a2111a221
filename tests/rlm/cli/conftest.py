"""An endpoint that the environment names, and a text to ask about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, endpoint: Any) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    monkeypatch.setenv("OPENAI_BASE_URL", endpoint.url)
    monkeypatch.setenv("COLUMNS", "200")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    path = tmp_path / "notes.txt"
    path.write_text("one\ntwo\n")
    return path
