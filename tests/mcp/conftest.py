"""An archive with one session of four days, and the tools over it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monocontext.mcp import Served, Tools
from monocontext.sessions import Sessions

SESSION = "84ede0c3-1111-4222-8333-000000000001"


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """Over an empty archive, on a machine with one session of 200 turns."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "claude" / "projects" / "-home-u-api"
    folder.mkdir(parents=True)
    records = [
        {
            "type": role, "uuid": f"u{n}", "parentUuid": f"u{n - 1}" if n else None, "sessionId": SESSION,
            "timestamp": f"2026-02-{10 + n // 50}T10:00:{n % 50:02d}.000Z", "cwd": "/home/u/api",
            "message": {"role": role, "content": f"message {n} " + "word " * 60},
        }
        for n in range(200)
        for role in [("user", "assistant")[n % 2]]
    ]  # fmt: skip
    (folder / f"{SESSION}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return Tools(Served(sessions=Sessions.open(str(tmp_path / "archive"))))
