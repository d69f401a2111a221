"""A project of 60 sessions in the formats of five agents, through the hooks' own commands, from two machines."""

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

from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from monocontext.testing import S3StandIn
from monocontext.testing.http_faults import lost
from rlm.compile import compile_sessions
from sessions.agents import Claude, everything
from sessions.more_agents import aider, cursor, gemini
from sessions.test_hooks import HOOK

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
AGENTS = ("claude-code", "codex", "gemini-cli", "cursor", "aider")


def codex(home: Path, number: int, said: str) -> Path:
    session = f"0190c0de-0000-7000-8000-{number:012d}"
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": said}]}
    records = [
        {
            "timestamp": "2026-02-14T10:00:00Z",
            "type": "session_meta",
            "payload": {"id": session, "cwd": "/home/dev/api"},
        },
        {"timestamp": "2026-02-14T10:00:01Z", "type": "response_item", "payload": item},
        {
            "timestamp": "2026-02-14T10:00:02Z",
            "type": "event_msg",
            "payload": {"type": "agent_message", "message": "Yes"},
        },
    ]
    path = home / ".codex" / "sessions" / f"rollout-2026-02-14T10-00-00-{session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def claude(home: Path, number: int, said: str) -> Path:
    session = Claude(number, cwd="/home/dev/api")
    session.user(said)
    session.says(f"We decided to use method {number} instead of a lock.")
    return session.write(home / ".claude" / "projects" / "-home-dev-api")


WRITE = {"claude-code": claude, "codex": codex, "gemini-cli": gemini, "cursor": cursor, "aider": aider}


class Machine:
    def __init__(self, name: str, folder: Path, options: list[str]) -> None:
        self.home = folder / name
        self.home.mkdir()
        self.spool = self.home / ".monocontext" / "spool"
        self.options = options
        own = {"HOME": str(self.home), "MONOCONTEXT_HOME": str(self.spool.parent), "MONOCONTEXT_USER": name}
        self.environment = {**os.environ, **own}

    def run(self, command: list[str], told: dict[str, str] | None = None) -> str:
        done = subprocess.run(
            command, input=json.dumps(told or {}).encode(), env=self.environment, capture_output=True, check=False
        )
        assert done.returncode == 0 or "sync" in command, done.stderr
        return done.stdout.decode()

    def hook(self, event: str, agent: str, **told: str) -> str:
        return self.run([*HOOK, event, *self.options, "--agent", agent], {"cwd": "/home/dev/api", **told})

    def jobs(self) -> list[Path]:
        return list(self.spool.glob("*.job"))

    def kill_worker(self) -> bool:
        """Kill the worker that a hook of this machine started, if it runs."""
        mine = f"MONOCONTEXT_HOME={self.spool.parent}".encode()
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_worker = b"monocontext.sessions.worker" in (process / "cmdline").read_bytes()
                if is_worker and mine in (process / "environ").read_bytes().split(b"\0"):
                    os.kill(int(process.name), signal.SIGKILL)
                    return True
            except (OSError, ProcessLookupError):
                continue  # it has ended
        return False


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="workers are found by /proc")
def test_sixty_sessions_of_five_agents_from_two_machines(tmp_path: Path) -> None:
    chance = random.Random(60)
    with S3StandIn() as server:
        options = [
            "--url",
            server.url("team"),
            "--endpoint",
            server.endpoint,
            "--project",
            "api",
            "--region",
            "us-east-1",
        ]
        machines = [Machine(name, tmp_path, options) for name in ("ana", "ben")]
        expected: dict[str, tuple[int, int]] = {}
        plain, killed = open_store(tmp_path / "plain"), 0
        for number in range(60):
            agent, own = AGENTS[number % 5], machines[number % 2]
            path = WRITE[agent](own.home, number, said=f"Fix bug {number}. GITHUB_TOKEN={SECRET}")
            file = recognize_session(path, agent)
            report = upload_session(plain, file, project="api")
            expected[file.session_id] = report.records, report.turns
            if number == 20:  # it carries out what it is asked and says nothing; scaled down from a minute
                for verb in ("GET", "PUT", "HEAD", "LIST", "DELETE"):
                    server.faults.add(lost(), verb=verb, times=None)
            if number == 40:
                server.faults.clear()
            for machine in machines if number % 10 == 0 else [own]:  # now and then both upload a session
                machine.hook("session-end", agent, session_id=file.session_id, transcript_path=str(path))
            if chance.random() < 0.2:
                killed += chance.choice(machines).kill_worker()
        end = time.monotonic() + 300
        while any(machine.jobs() for machine in machines):
            assert time.monotonic() < end, [machine.jobs() for machine in machines]
            for machine in machines:
                machine.run([sys.executable, "-P", "-m", "monocontext", "sessions", "sync"])
        store = open_store(f"{server.store.url}/team")
        assert [list(machine.spool.glob("*.failed")) for machine in machines] == [[], []]
        project = Sessions(store).project("api")
        assert {info.session_id: (info.records, info.turns) for info in project.sessions()} == expected
        assert len(expected) == 60
        for session in expected:  # nothing is doubled in the text either
            assert [turn.n for turn in project.turns(session)] == list(range(1, expected[session][1] + 1))
        assert SECRET.encode() not in everything(store)
        compile_sessions(store, "api")
        server.reset_counts()
        printed = machines[1].hook("session-start", "claude-code", session_id="next")
        assert server.counts == {"GET": 1}
        assert "No language model made this" in json.loads(printed)["hookSpecificOutput"]["additionalContext"]
        assert killed > 0
