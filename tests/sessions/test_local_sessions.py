"""Sessions on this machine as one text, without a bucket."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

import pytest

from monocontext import Monocontext
from monocontext.sessions.local_sessions import open_folder, open_machine
from sessions.agents import Claude, small

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def projects(own_home: Path) -> Path:
    """Two sessions of Claude Code in one project, one with a subagent, and one of another project."""
    folder = own_home / ".claude" / "projects"
    for number in (1, 2):
        small(number).write(folder / "-home-dev-proj")
    side = Claude(2)
    side.user("Count the files", isSidechain=True)
    below = folder / "-home-dev-proj" / side.session_id / "subagents"
    side.write(below, name="agent-a1.jsonl")
    (below / "agent-a1.meta.json").write_text("{}")
    other = Claude(3, cwd="/home/dev/other")
    other.user(f"Use GITHUB_TOKEN={SECRET}, please")
    other.write(folder / "-home-dev-other")
    return folder


def opened(place: str | os.PathLike[str]) -> Monocontext:
    text = open_folder(place)
    assert text is not None
    return text


def test_an_agents_folder_is_a_text(projects: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = opened(projects / "-home-dev-proj")
    below = f"{Claude(2).session_id}/subagents/agent-a1"
    assert set(text.documents) == {Claude(1).session_id, Claude(2).session_id, below}
    assert "We decided to use method 2 instead of a lock." in text
    assert "please" not in text
    assert len(list(text.grep("method 1"))) == 1
    monkeypatch.chdir(projects.parent)
    for place in ("~/.claude/projects", str(projects), projects.as_uri(), "~/.claude"):
        found = opened(place)
        assert "Use GITHUB_TOKEN" in found
        assert SECRET not in found


def test_what_is_new_is_read_and_what_is_gone_goes(projects: Path, cache: Path) -> None:
    notes: list[str] = []

    def read() -> Monocontext:
        notes.clear()
        return open_machine(notes.append)

    assert "method 1" in read()
    assert notes[0].startswith("4 sessions on this machine (4 of claude-code), 4 new; secrets are taken out; ")
    path = projects / "-home-dev-proj" / f"{Claude(1).session_id}.jsonl"
    assert "4 of claude-code), 0 new" in (read() and notes[0])
    small(1, turns=6).write(path.parent)
    assert "Step 3 on bug 1" in read()
    assert "1 new" in notes[0]
    path.unlink()
    shutil.rmtree(projects / "-home-dev-proj" / Claude(2).session_id)
    text = read()
    assert ("method 1" in text, "method 2" in text, "Count the files" in text) == (False, True, False)
    stored = b"".join(each.read_bytes() for each in cache.rglob("*") if each.is_file())
    assert (b"method 1" in stored, SECRET.encode() in stored) == (False, False)


def test_a_session_that_was_away_comes_back(projects: Path, tmp_path: Path) -> None:
    """On a disk that was not there, or in a folder that was renamed for a while: with its old size and time."""
    folder, away = projects / "-home-dev-proj", tmp_path / "away"
    for old, new, is_there in ((folder, folder, True), (folder, away, False), (away, folder, True)):
        old.rename(new)
        text = open_machine()
        assert ("method 1" in text, "Count the files" in text) == (is_there, is_there)


def test_only_the_user_may_read_the_copy_and_nothing_else_is_written(
    projects: Path, own_home: Path, cache: Path
) -> None:
    before = set(own_home.rglob("*"))
    open_machine()
    assert set(own_home.rglob("*")) == before
    assert [stat.S_IMODE(path.stat().st_mode) for path in (cache / "monocontext" / "sessions").iterdir()] == [0o700]


def test_other_folders_are_none(projects: Path, own_home: Path, tmp_path: Path) -> None:
    """Not the folder around that of an agent, nor one that holds a session by chance."""
    shutil.copytree(projects, tmp_path / "work")
    for folder in (own_home, tmp_path / "work", tmp_path / "gone", "s3://bucket/a"):
        assert open_folder(folder) is None


def test_a_session_that_cannot_be_read_is_left_out_by_name(projects: Path) -> None:
    (projects / "-home-dev-proj" / "broken.jsonl").write_bytes(b"")
    os.symlink(projects / "gone", projects / "-home-dev-proj" / "link.jsonl")
    notes: list[str] = []
    assert "method 1" in open_machine(notes.append)
