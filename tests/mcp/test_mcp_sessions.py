"""The tools over a real archive of sessions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from monocontext.cli.mcp import serving
from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp import Served, Tools
from monocontext.sessions import Sessions

ID = "84ede0c3-1111-4222-8333-000000000001"


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    """Over an empty archive, on a machine with one session of four days."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    monkeypatch.setenv("CODEX_HOME", str(tmp_path / "codex"))
    folder = tmp_path / "claude" / "projects" / "-home-u-api"
    folder.mkdir(parents=True)
    records = [
        {
            "type": role,
            "uuid": f"u{n}",
            "parentUuid": f"u{n - 1}" if n else None,
            "sessionId": ID,
            "timestamp": f"2026-02-{10 + n // 50}T10:00:{n % 50:02d}.000Z",
            "cwd": "/home/u/api",
            "message": {"role": role, "content": f"message {n} " + "word " * 60},
        }
        for n in range(200)
        for role in [("user", "assistant")[n % 2]]
    ]
    (folder / f"{ID}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return Tools(Served(sessions=Sessions.open(str(tmp_path / "archive"))))


def test_uploaded_listed_read_and_searched(tools: Tools) -> None:
    assert tools.context_list() == "[no context is served here]"
    said = tools.upload_context(session_id="84ede0c3", thread_id="team")
    assert said == f"{ID}: 200 new records, 200 new turns, to project team; secrets taken out: 0"
    assert "0 new records" in tools.upload_context(thread_id="team")
    assert tools.context_list() == "sessions/team"
    assert tools.session_list().startswith(f"{ID}  claude-code  2026-02-10T10:00:00.000Z  200 turns  message 0 word")
    assert tools.session_list(since="2026-02-12", until="2026-02-12").startswith(ID)
    assert tools.session_list(since="2026-03-01") == "[no such session of project team]"
    assert tools.session_list(branch="main") == "[no such session of project team]"
    first = tools.session_read("84ede0c3")
    assert "[Turn 1 - USER]" in first
    start = int(first.rpartition("next range: start=")[2].split()[0])
    assert "[Turn 1 - USER]" not in tools.session_read(ID, start=start)
    assert ":message 77 word" in tools.context_search("message 77 ", context="sessions/team")
    found = tools.context_search("messages words", context="sessions/team", words=True)
    assert found.startswith(f"[{ID}:")
    assert found.endswith("[passages: 1; none scores more]")  # of each session the best
    with pytest.raises(ToolRefusal, match="a query"):
        tools.context_search("the of", context="sessions/team", words=True)
    assert ":message 77 word" in tools.context_search("message 77 ", context=f"sessions/team/{ID}")


def test_refused(tools: Tools) -> None:
    for wrong in (
        lambda: tools.upload_context(session_id="none"),
        lambda: tools.session_read("none"),
        lambda: tools.context_slice("sessions/none"),
    ):
        with pytest.raises(NotFound):
            wrong()


def test_without_an_archive_the_tools_say_what_to_set() -> None:
    """As the plugin starts the server where no archive is named."""
    with serving([], "", None, [], {}) as served:
        tools = Tools(served)
        assert {"session_list", "session_read", "upload_context"} <= tools.by_name(uploads=True).keys()
        for call in (tools.session_list, lambda: tools.session_read("x"), tools.upload_context):
            with pytest.raises(NotFound, match="set MONOCONTEXT_URL"):
                call()
