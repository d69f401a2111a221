"""Workers to attack, in each way, by both kinds of host; `MONOCONTEXT_CONTAINERS=podman` attacks containers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import container_image
import pytest
from rlm_replies import calls

from rlm.runners.confine import bubblewrap
from rlm.runners.process import ProcessRunner

HERE = Path(__file__).parent
ROOT = HERE.parents[3]
USER = 23_456
ENGINE = os.environ.get("MONOCONTEXT_CONTAINERS", "")


class Probe:
    """A host process, and what its worker answers."""

    def __init__(self, way: str, who: str, image: str = "") -> None:
        self.way, self.who = way, who
        program = [sys.executable, str(HERE / "sandbox_probe.py"), way, *([image, ENGINE] if image else [])]
        if who == "user" and os.geteuid() == 0:
            program = [sys.executable, str(HERE / "sandbox_user.py"), str(USER), *program]
        environment = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
        environment |= container_image.settings() if image else {}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(program, stdin=pipe, stdout=pipe, text=True, env=environment)
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
        self.process.communicate(timeout=60)


@pytest.fixture
def sandbox() -> Iterator[Callable[..., ProcessRunner]]:
    """Makes runners with a worker each, and closes them."""
    made: list[ProcessRunner] = []

    def make(context: object = "the context", script: Any = str.upper, **options: Any) -> ProcessRunner:
        made.append(ProcessRunner(context, calls(script), **options))
        return made[-1]

    yield make
    for runner in made:
        runner.close()


def _cases() -> list[tuple[str, str]]:
    if ENGINE:
        return [("docker", "root" if os.geteuid() == 0 else "user")]
    ways = ["namespaces", "landlock", *(["bubblewrap"] if bubblewrap.find() else [])]
    people = ["root", "user"] if os.geteuid() == 0 else ["user"]
    return [(way, who) for way in ways for who in people]


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The name of an image that holds this Python and our packages."""
    if not ENGINE:
        pytest.skip("`make test-docker` runs this with a real engine of containers")
    with container_image.engine_of(ENGINE, tmp_path_factory.mktemp("containers")) as name:
        yield name


@pytest.fixture(scope="package", params=_cases(), ids=lambda case: f"{case[0]}-as-{case[1]}")
def probe(request: pytest.FixtureRequest) -> Iterator[Probe]:
    way, who = request.param
    made = Probe(way, who, request.getfixturevalue("image") if way == "docker" else "")
    yield made
    made.close()
