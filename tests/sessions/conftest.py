"""A home of its own for each test: none of the sessions and settings of whoever runs them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest


def end_workers(home: Path) -> None:
    """End the processes that hooks started with this home and left; where there is no /proc, they end by themselves."""
    wanted = f"MONOCONTEXT_HOME={home}/".encode()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended, or is somebody else's
            is_worker = b"sessions.worker" in (process / "cmdline").read_bytes()
            if is_worker and wanted in (process / "environ").read_bytes():
                os.kill(int(process.name), signal.SIGKILL)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    home = tmp_path / "home"
    (home / ".claude" / "projects").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("MONOCONTEXT_HOME", str(home / ".monocontext"))
    for name in (
        "CLAUDE_CONFIG_DIR", "CODEX_HOME", "MONOCONTEXT_URL", "MONOCONTEXT_USER", "OPENAI_API_KEY",
    ):  # fmt: skip
        monkeypatch.delenv(name, raising=False)
    yield home
    end_workers(home)
