"""A day of two people with three agents on two machines: sessions that grow, are handed over, and workers that die."""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents.kept import HOME, REAL, restore
from agents.programs import make_home

from monocontext.sessions import Sessions, upload_session
from monocontext.sessions.readers import recognize_session
from monocontext.stores import open_store
from sessions.agents import everything
from sessions.test_team import Machine

SECRET = "ghp_" + "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5"
AGENTS = ("claude-code", "codex", "gemini-cli")
PROJECT = "github.com-acme-api"


class Work:
    """A session that somebody has in an agent on a machine, and later on another."""

    def __init__(self, agent: str, path: Path, lines: list[str], machines: list[Machine]) -> None:
        self.agent = agent
        self.path = path
        """Below the home."""
        self.lines = lines
        self.machines = machines
        self.written = 0
        self.last = path

    def go_on(self, count: int) -> None:
        """Write some lines, and let the agent's hook see them."""
        machine = self.machines[self.written * len(self.machines) // len(self.lines)]
        self.written = min(len(self.lines), self.written + count)
        path = self.last = machine.home / self.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(self.lines[: self.written]).replace(HOME, str(self.machines[0].home)), "utf-8")
        session = recognize_session(path, self.agent).session_id
        event = "session-end" if self.written == len(self.lines) else "stop"
        told = {"session_id": session, "transcript_path": str(path), "cwd": str(machine.home / "work" / "api")}
        machine.run([sys.executable, "-P", "-m", "monocontext.sessions.hook", event, *machine.options, "--agent",
                     self.agent], told)  # fmt: skip


def sessions(folder: Path) -> Iterator[tuple[str, Path, list[str]]]:
    """What the real agents wrote, with a secret in it: agent, path below a home, lines."""
    for agent in AGENTS:
        for kept in sorted(REAL.glob(f"{agent}-*/*")):
            restore(kept, folder / kept.parent.name / kept.name)
            home = folder / kept.parent.name / kept.name
            for path in sorted(home.glob("**/*.jsonl")):
                text = path.read_text("utf-8").replace("Tests pass.", f"Tests pass. GITHUB_TOKEN={SECRET}")
                lines = [line for line in text.splitlines(keepends=True) if '"$set": {"lastUpdated"' not in line]
                if "subagents" not in path.parts and len(lines) > 4:
                    yield agent, path.relative_to(home), lines


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="workers are found by /proc")
def test_nothing_is_lost_doubled_or_leaked(tmp_path: Path) -> None:
    chance = random.Random(36)
    options = ["--url", str(tmp_path / "archive")]
    ana, ben = (Machine(name, tmp_path, options) for name in ("ana", "ben"))
    for machine in (ana, ben):
        make_home(machine.home)
    works = [
        Work(agent, path, lines, [[ana], [ben], [ana, ben]][number % 3])
        for number, (agent, path, lines) in enumerate(sessions(tmp_path / "kept"))
    ]
    assert {work.agent for work in works} == set(AGENTS)
    open_works, killed = list(works), 0
    while open_works:
        work = chance.choice(open_works)
        work.go_on(chance.randint(3, 25))
        if work.written == len(work.lines):
            open_works.remove(work)
        if chance.random() < 0.3:
            killed += chance.choice([ana, ben]).kill_worker()
    end = time.monotonic() + 300
    while ana.jobs() or ben.jobs():
        assert time.monotonic() < end, [ana.jobs(), ben.jobs()]
        for machine in (ana, ben):
            machine.run([sys.executable, "-P", "-m", "monocontext", "sessions", "sync"])
    store = open_store(tmp_path / "archive")
    assert [list(machine.spool.glob("*.failed")) for machine in (ana, ben)] == [[], []]
    assert Sessions(store).projects() == [PROJECT]
    project, plain = Sessions(store).project(PROJECT), open_store(tmp_path / "plain")
    for work in works:
        file = recognize_session(work.last, work.agent)
        upload_session(plain, file, project=PROJECT)
        once = Sessions(plain).project(PROJECT).turns(file.session_id)
        assert project.turns(file.session_id) == once, work.path
    assert SECRET.encode() not in everything(store)
    assert killed > 0
