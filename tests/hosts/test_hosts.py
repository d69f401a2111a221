"""The real hosts over a text of 4 GiB, each in its own interpreter. `make test-hosts` builds their environments."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.hosts.contract import ANSWER, Seen
from tests.hosts.environments import DEEPAGENTS, FRAMEWORKS, HOSTS, Host

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

HERE = Path(__file__).parent


@pytest.mark.parametrize("host", [*HOSTS, *FRAMEWORKS], ids=lambda host: host.name)
def test_a_host_answers_over_4_gib(host: Host) -> None:
    if not host.python.exists():
        pytest.skip(f"no environment for {host.name}: make test-hosts HOSTS={host.name}")
    told = [line.removeprefix("SEEN ") for line in started(host).splitlines() if line.startswith("SEEN ")]
    seen = Seen(**json.loads(told[-1]))
    assert seen.answer == ANSWER
    assert seen.before < 100_000
    assert 0 < seen.read < 100_000


def test_a_deep_agent_works_on_documents() -> None:
    if not DEEPAGENTS.python.exists():
        pytest.skip("no environment for deepagents: make test-hosts HOSTS=deepagents")
    assert "deepagents: equal" in started(DEEPAGENTS)


def started(host: Host) -> str:
    """What a run prints; elsewhere than in the checkout, whose `rlm` is not the host's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [host.python, HERE / f"run_{host.module}.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=380)
    assert done.returncode == 0, f"{host.name}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
