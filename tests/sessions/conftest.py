"""A home of its own for each test: none of the sessions and settings of whoever runs them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MONOCONTEXT_HOME", str(home / ".monocontext"))
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "MONOCONTEXT_URL", "MONOCONTEXT_USER", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    yield home
    # Hooks start processes with this home and leave them; where there is no /proc, they end by themselves.
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            is_upload = b"sessions.background_upload" in (process / "cmdline").read_bytes()
            if is_upload and f"MONOCONTEXT_HOME={home}/".encode() in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)
