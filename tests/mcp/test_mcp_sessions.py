"""The tools over an archive of sessions."""

from __future__ import annotations

from pathlib import Path

import pytest

from monocontext.cli.mcp import serving
from monocontext.errors import NotFound, ToolRefusal
from monocontext.mcp import Tools
from tests.mcp.conftest import SESSION


def test_uploaded_listed_read_and_searched(archive: Tools) -> None:
    assert archive.context_list() == "[no context is served here]"
    said = archive.upload_context(session_id="84ede0c3", thread_id="team")
    assert said == f"{SESSION}: 200 new records, 200 new turns, to project team; secrets taken out: 0"
    assert "0 new records" in archive.upload_context(project_dir="-home-u-api", thread_id="team")
    assert archive.context_list() == "sessions/team"
    listed = archive.session_list()
    assert listed.startswith(f"{SESSION}  claude-code  2026-02-10T10:00:00.000Z  200 turns  message 0 word")
    assert listed.data.rows == listed.splitlines()
    assert archive.session_list(after=SESSION) == "[no such session of project team]"
    assert archive.session_list(since="2026-02-12", until="2026-02-12").startswith(SESSION)
    assert archive.session_list(since="2026-03-01") == "[no such session of project team]"
    assert archive.session_list(branch="main") == "[no such session of project team]"
    first = archive.session_read("84ede0c3")
    assert "[Turn 1 - USER]" in first
    start = int(first.rpartition("next range: start=")[2].split()[0])
    assert "[Turn 1 - USER]" not in archive.session_read(SESSION, start=start)
    assert ":message 77 word" in archive.context_search("message 77 ", context="sessions/team")
    found = archive.context_search("messages words", context="sessions/team", words=True)
    assert found.startswith(f"[{SESSION}:")
    assert found.endswith("[passages: 1; no other scores higher]")  # of each session the best
    with pytest.raises(ToolRefusal, match="a query"):
        archive.context_search("?!", context="sessions/team", words=True)
    assert ":message 77 word" in archive.context_search("message 77 ", context=f"sessions/team/{SESSION}")


def test_refused(archive: Tools, tmp_path: Path) -> None:
    (tmp_path / "private.jsonl").write_text('{"customer": "Ada"}\n')
    for wrong in (
        lambda: archive.upload_context(session_id="none"),
        lambda: archive.upload_context(session_id=str(tmp_path / "private.jsonl")),
        lambda: archive.session_read("none"),
        lambda: archive.context_slice("sessions/none"),
    ):
        with pytest.raises(NotFound):
            wrong()
    with pytest.raises(NotFound, match="in none: leave project_dir out"):
        archive.upload_context(project_dir="none")


def test_without_an_archive_the_tools_say_what_to_set() -> None:
    """As the plugin starts the server where no archive is named."""
    with serving([], {}, sessions="") as served:
        tools = Tools(served)
        assert {"session_list", "session_read", "upload_context"} <= tools.by_name(uploads=True).keys()
        for call in (tools.session_list, lambda: tools.session_read("x"), tools.upload_context):
            with pytest.raises(NotFound, match="set MONOCONTEXT_URL"):
                call()
