"""A session comes back where this machine's agent looks for it, with the paths of the clone here."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from monocontext.errors import MonocontextError, NotFound
from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.pull import pull_session
from monocontext.sessions.readers import discover_sessions, recognize_session
from monocontext.sessions.records import dumps
from monocontext.sessions.session_info import pack, session_key
from monocontext.stores import open_store
from sessions.agents import Claude, as_lines, everything, session_id
from sessions.test_project_names import clone

KEY = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"


class Team:
    """Two people, each with a home and a clone of one repository; paths with spaces."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.archive = Sessions(open_store(folder / "archive"))
        self.clones = {name: clone(folder / f"{name} home" / "my api") for name in ("ana", "ben")}
        self.monkeypatch = monkeypatch

    def be(self, name: str) -> Path:
        """Go on as one of them; returns the clone."""
        home = self.clones[name].parent
        self.monkeypatch.setenv("HOME", str(home))
        (home / ".claude").mkdir(exist_ok=True)
        return self.clones[name]

    def upload(self) -> None:
        for file in discover_sessions():
            upload_session(self.archive.store, file)

    def begin(self) -> Claude:
        """Ana's session, with a secret, an output in a file of its own and a subagent."""
        top = self.be("ana")
        folder, session = top.parent / ".claude/projects/of-the-clone", Claude(1, cwd=str(top))
        outputs = folder / session.session_id / "tool-results"
        outputs.mkdir(parents=True)
        (outputs / "big.txt").write_text("whole output")
        session.user(f"Use GITHUB_TOKEN={KEY} on {top}/src/a.py, not on {top}-old")
        session.blocks([{"type": "thinking", "thinking": f"in {top}", "signature": "sig"}])
        session.calls("Edit", {"file_path": f"{top}/src/a.py", "patch": json.dumps({"in": f"{top}/b"})})
        saved = f"<persisted-output>saved to: {outputs}/big.txt"
        session.result(saved, toolUseResult={"persistedOutputPath": f"{outputs}/big.txt"})
        session.write(folder)
        side = Claude(1, cwd=str(top))
        side.user("Count", isSidechain=True)
        side.write(folder / session.session_id / "subagents", name="agent-a1.jsonl")
        self.upload()
        return session


@pytest.fixture
def team(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Team:
    return Team(tmp_path, monkeypatch)


def records_in(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def test_a_session_of_claude_code_goes_on_in_another_clone(team: Team) -> None:
    session = team.begin()
    ana, ben = team.clones["ana"], team.be("ben")
    done = pull_session(team.archive, session.session_id[:20], ben)
    slug = "".join(character if character.isalnum() else "-" for character in str(ben))
    assert done.path == ben.parent / ".claude/projects" / slug / f"{session.session_id}.jsonl"
    assert (done.folder, done.command) == (ben, ["claude", "--resume", session.session_id])
    assert (done.records, done.redacted, done.is_new) == (5, 1, True)
    records = records_in(done.path)
    assert [record["uuid"] for record in records] == [record["uuid"] for record in session.records]
    assert {record["cwd"] for record in records} == {str(ben)}
    said = records[0]["message"]["content"]
    assert said == f"Use GITHUB_TOKEN=[REDACTED:github] on {ben}/src/a.py, not on {ana}-old"
    assert records[1]["message"]["content"] == session.records[1]["message"]["content"], "a signature holds for it"
    call = records[2]["message"]["content"][0]["input"]
    assert (call["file_path"], json.loads(call["patch"])) == (f"{ben}/src/a.py", {"in": f"{ben}/b"})
    output = Path(records[3]["toolUseResult"]["persistedOutputPath"])
    assert (output.parent.parent, output.read_text()) == (done.path.with_suffix(""), "whole output")
    assert (done.path.with_suffix("") / "subagents" / "agent-a1.jsonl").exists()
    assert done.path.stat().st_mode & 0o777 == 0o600


def test_it_is_one_session_wherever_it_goes_on(team: Team) -> None:
    """Ben's copy is uploaded as what it is; it comes back to Ana; none of them writes over a longer one."""
    session = team.begin()
    ben = team.be("ben")
    done = pull_session(team.archive, None, ben)
    before = everything(team.archive.store)
    team.upload()
    assert everything(team.archive.store) == before, "a copy is nothing new"
    with done.path.open("a") as file:
        more = {**session.records[-1], "uuid": "ben-1", "parentUuid": session.last, "cwd": str(ben)}
        file.write(json.dumps({**more, "message": {"role": "user", "content": f"Ben in {ben}"}}) + "\n")
    assert not pull_session(team.archive, None, ben).is_new, "it is longer here"
    team.upload()
    project = team.archive.project("github.com-acme-api")
    assert project.list_sessions() == [session.session_id, f"{session.session_id}/subagents/agent-a1"]
    ana = team.be("ana")
    back = pull_session(team.archive, session.session_id, ana)
    assert back.is_new
    assert records_in(back.path)[-1]["message"]["content"] == f"Ben in {ana}"
    path = back.path
    other = {**records_in(path)[0], "uuid": "ana-1", "timestamp": "2027-01-01T00:00:00Z"}
    path.write_text(as_lines([*records_in(path)[:3], other]))
    with pytest.raises(MonocontextError, match="has turns that the archived session lacks"):
        pull_session(team.archive, session.session_id, ana)
    team.upload()  # as a further session, which ended last, but cannot go on
    assert pull_session(team.archive, None, team.be("ben")).session_id == session.session_id


def test_a_rollout_of_codex(team: Team) -> None:
    top = team.be("ana")
    day = top.parent / ".codex" / "sessions" / "2026" / "02" / "14"
    day.mkdir(parents=True)
    path = day / f"rollout-2026-02-14T10-00-00-{session_id(7)}.jsonl"
    payloads = [
        ("session_meta", {"id": session_id(7), "cwd": str(top), "timestamp": "2026-02-14T10:00:00Z"}),
        ("turn_context", {"cwd": str(top)}),
        ("response_item", {"type": "function_call", "call_id": "c", "arguments": json.dumps({"workdir": str(top)})}),
        ("response_item", {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]}),
    ]
    rows = [{"timestamp": f"2026-02-14T10:00:0{n}Z", "type": k, "payload": p} for n, (k, p) in enumerate(payloads)]
    path.write_text(as_lines(rows))
    team.upload()
    ben = team.be("ben")
    done = pull_session(team.archive, None, ben)
    assert done.command == ["codex", "resume", session_id(7)]
    assert done.path.relative_to(ben.parent) == path.relative_to(top.parent)
    assert str(top) not in done.path.read_text()
    assert json.loads(records_in(done.path)[2]["payload"]["arguments"]) == {"workdir": str(ben)}
    assert recognize_session(done.path).session_id == session_id(7)


def test_what_cannot_be_pulled_is_one_line(team: Team, tmp_path: Path) -> None:
    session = team.begin()
    ben = team.be("ben")
    other = clone(tmp_path / "other", "https://github.com/acme/web.git")
    for given, into, error, why in (
        (session.session_id, other, MonocontextError, "to project github.com-acme-api, but .* to github.com-acme-web"),
        (None, other, NotFound, "no sessions of project 'github.com-acme-web'"),
        ("zzz", ben, NotFound, "no session 'zzz'"),
    ):
        with pytest.raises(error, match=why) as raised:
            pull_session(team.archive, given, into)
        assert "\n" not in str(raised.value)
    (chat := tmp_path / "chat.jsonl").write_text('{"role": "user", "content": "Hello"}\n')
    report = upload_session(team.archive.store, recognize_session(chat), project="github.com-acme-api")
    with pytest.raises(MonocontextError, match="only claude-code and codex sessions can be resumed"):
        pull_session(team.archive, report.session_id, ben)
    pulled = pull_session(team.archive, session.session_id, other, "github.com-acme-api")
    assert pulled.folder == other, "a project that somebody names is enough"


@pytest.mark.parametrize("name", ["../../x.jsonl", "rollout-2026-02-14T10-00-00-a/../../b.jsonl", "x.jsonl"])
def test_a_hostile_archive_writes_nowhere_else(name: str, team: Team, tmp_path: Path) -> None:
    path = tmp_path / f"rollout-2026-02-14T10-00-00-{session_id(7)}.jsonl"
    path.write_text(as_lines([{"timestamp": "2026-02-14T10:00:00Z", "type": "session_meta", "payload": {"cwd": "/x"}}]))
    file = recognize_session(path)
    upload_session(team.archive.store, file, project="github.com-acme-api")
    project = team.archive.project("github.com-acme-api")
    ben = team.be("ben")
    found, records = project.records(file.session_id)
    hostile = pack(replace(found, file_name=name), [dumps(record) for record in records])
    team.archive.store.put(session_key(project.name, file.session_id), hostile)
    before = set(tmp_path.rglob("*"))
    with pytest.raises(MonocontextError):
        pull_session(team.archive, file.session_id, ben)
    assert set(tmp_path.rglob("*")) == before
