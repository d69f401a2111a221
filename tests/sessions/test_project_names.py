"""One project has one name, whatever machine or agent its sessions come from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from monocontext.sessions.project_name import project_of
from monocontext.sessions.readers import recognize_session
from monocontext.sessions.upload import project_of_session
from sessions.agents import Claude, as_lines, session_id

REMOTE = "https://github.com/acme/api.git"
LOGINS = ("me:gh{}p", "me:{}", "{}", "me:g@h{}p", "me:g{}h@p", "me%40corp:g%40h{}p", "me:g@h{0}p@q{0}r", "me:g?a=b{}p")
URLS = ("https://ME@github.com/acme/api?a=b@c", "ssh://ME@github.com/acme/api.git", "ME@github.com:acme/api.git")
MARKS = ("%23", "%26", "%3B", "%3F", "%3b", "#", "&", ";", "?", "%40", "@")


def clone(top: Path, remote: str = REMOTE) -> Path:
    (top / ".git").mkdir(parents=True)
    (top / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {remote}\n' if remote else "[core]\n")
    return top


def codex(folder: Path, cwd: str, remote: str | None) -> Path:
    payload: dict[str, Any] = {"id": session_id(1), "cwd": cwd, "git": {"repository_url": remote} if remote else None}
    path = folder / f"rollout-2026-02-14T10-00-00-{session_id(1)}.jsonl"
    path.write_text(as_lines([{"timestamp": "2026-02-14T10:00:00Z", "type": "session_meta", "payload": payload}]))
    return path


def name_of(path: Path) -> str:
    return project_of_session(recognize_session(path))


@pytest.mark.parametrize(
    ("folder", "remote", "name"),
    [
        (r"C:\Users\ana\src\billing", "", "billing"), (r"c:\Users\ana\src\billing" + "\\", "", "billing"),
        ("C:/Users/ana/src/billing", "", "billing"), (r"\\server\share\billing", "", "billing"),
        (r"D:\src\billing.app", "", "billing.app"), ("/home/ana/gone/billing", "", "billing"),
        ("/home/ana/gone/billing", REMOTE, "github.com-acme-api"),
        (r"C:\Users\ana\src\billing", "git@github.com:acme/api.git", "github.com-acme-api"),
        ("/home/ana/gone/billing", r"C:\repos\api.git", "api"), ("", REMOTE, "github.com-acme-api"),
        ("", "", "unnamed"), ("billing", "", "billing"),
    ],
)  # fmt: skip
def test_places_that_are_not_here(
    folder: str, remote: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not even where the process itself works in a repository."""
    monkeypatch.chdir(clone(tmp_path / "mine", "git@github.com:me/mine.git"))
    assert project_of(folder, remote) == name


@pytest.mark.parametrize(
    ("remotes", "name"),
    [
        (
            [
                "https://github.com/acme/api.git", "https://GitHub.com/acme/api/", "git@github.com:acme/api.git",
                "ssh://git@github.com/acme/api", "ssh://git@ssh.github.com:443/acme/api.git",
                "git://github.com/acme/api.git", "org-1@github.com:acme/api",
                "https://oauth2:ghp_secret@github.com/acme/api.git?access_token=ghp_secret#ghp_secret",
                "https://github.com/acme/api.git/#t=me@ghp_secret", "git+https://me:ghp_secret@github.com/acme/api.git",
                "https://github.com/acme/api%3Fprivate_token%3Dghp_secret", "https://ghp_a%3Bx@github.com/acme/api",
                "git@github.com:acme/api.git?token=ghp_secret", "https://me:gh@p/secret@github.com/acme/api.git",
                "https://github.com/ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5/acme/api.git",
                "https://x-access-token:ghp_secret@github.com:8443/acme/api/", "https://me:a/b#c@github.com/acme/api",
                "https://github.com/acme/api.git;token=ghp_secret", "git@github.com:acme/api.git?token=me@ghp_secret",
                *(url.replace("ME", login).format(mark) for url in URLS for login in LOGINS for mark in MARKS),
            ],
            "github.com-acme-api",
        ),
        (
            ["https://org@dev.azure.com/org/proj/_git/api", "git@ssh.dev.azure.com:v3/org/proj/api"],
            "dev.azure.com-org-proj-_git-api",
        ),
        (["https://gitlab.com/a/b/c.git", "ssh://git@altssh.gitlab.com:443/a/b/c.git"], "gitlab.com-a-b-c"),
        (["/srv/git/API.git"], "API"),
    ],
)  # fmt: skip
def test_one_repository_has_one_name(remotes: list[str], name: str, tmp_path: Path) -> None:
    names = [project_of("/gone", remote) for remote in remotes]
    names += [project_of(str(clone(tmp_path / str(n), remote))) for n, remote in enumerate(remotes)]
    assert set(names) == {name}


def test_a_configuration_of_blank_lines_is_read_soon(tmp_path: Path) -> None:
    folder = clone(tmp_path / "api", "")
    for text in ("\n" * 64_000, '[remote "a"]\n' + " \n" * 32_000):
        (folder / ".git" / "config").write_text(text)
        begin = time.process_time()
        assert project_of(str(folder)) == "api"
        assert time.process_time() - begin < 2


def test_agents_agree(tmp_path: Path) -> None:
    top = clone(tmp_path / "checkout")
    (top / "src").mkdir()
    claude = Claude(cwd=str(top / "src"))
    claude.user("Hello")
    claude.cwd = "/tmp"
    claude.user("Now there")  # it keeps its project
    assert name_of(claude.write(tmp_path)) == "github.com-acme-api"
    gone = str(tmp_path / "worktrees" / "ab12")
    for cwd, remote in ((str(top), None), (gone, REMOTE), (r"C:\Users\ana\api", REMOTE)):
        assert name_of(codex(tmp_path, cwd, remote)) == "github.com-acme-api"
    assert name_of(codex(tmp_path, str(tmp_path / "gone" / "api"), None)) == "api"


def test_a_worktree_is_of_its_repository(tmp_path: Path) -> None:
    top = clone(tmp_path / "billing", remote="")
    tree = tmp_path / "worktrees" / "fix-7"
    own = top / ".git" / "worktrees" / "fix-7"
    tree.mkdir(parents=True)
    own.mkdir(parents=True)
    (tree / ".git").write_text(f"gitdir: {own}\n")
    (own / "commondir").write_text("../..\n")
    assert project_of(str(tree)) == project_of(str(top)) == "billing"
