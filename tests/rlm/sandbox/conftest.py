"""Workers to attack: in each way of confining, with a host that is root and one that is an ordinary user."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rlm.runners.confine import bubblewrap

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
USER = 23_456


class Probe:
    """A host process, and what its worker answers."""

    def __init__(self, way: str, who: str) -> None:
        self.way, self.who = way, who
        program = [sys.executable, str(HERE / "sandbox_probe.py"), way]
        if who == "user" and os.geteuid() == 0:
            program = [sys.executable, str(HERE / "sandbox_user.py"), str(USER), *program]
        self.process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]},
        )
        self.facts = self._line()

    def run(self, code: str) -> dict[str, Any]:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"code": f"facts = {self.facts!r}\n{code}"}) + "\n")
        self.process.stdin.flush()
        return self._line()

    def outcome(self, code: str) -> str:
        """What a cell prints; it must not fail otherwise than by what it catches."""
        answer = self.run(code)
        assert "raised" not in answer, answer
        assert not answer["stderr"], answer["stderr"]
        return str(answer["stdout"]).strip()

    def _line(self) -> dict[str, Any]:
        assert self.process.stdout
        line = self.process.stdout.readline()
        assert line, f"the host process is gone: {self.process.wait()}"
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> None:
        self.process.communicate(timeout=20)


def _cases() -> list[tuple[str, str]]:
    ways = ["namespaces", "landlock", *(["bubblewrap"] if bubblewrap.find() else [])]
    people = ["root", "user"] if os.geteuid() == 0 else ["user"]
    return [(way, who) for way in ways for who in people]


@pytest.fixture(scope="package", params=_cases(), ids=lambda case: f"{case[0]}-as-{case[1]}")
def probe(request: pytest.FixtureRequest) -> Iterator[Probe]:
    made = Probe(*request.param)
    yield made
    made.close()
