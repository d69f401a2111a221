"""The real hosts over a text of 4 GiB. `make test-hosts` builds their environments and runs this; else it is skipped.

Each host runs in a process of its own interpreter, and tells what it saw on its last line.
"""

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
ATTEMPTS = 3
"""The time until the first cell is compared with the host's own, and the machine may be busy with other things."""


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
def test_a_host_answers_over_4_gib(host: Host) -> None:
    """The answer is right, little is read before and during the run, and the first cell is no later than usual."""
    if not host.python.exists():
        pytest.skip(f"no environment for {host.name}: make test-hosts HOSTS={host.name}")
    for attempt in range(ATTEMPTS):
        seen = run(host)
        assert seen.answer == ANSWER
        assert seen.before < 100_000
        assert 0 < seen.read < 100_000
        if seen.first_cell_seconds - seen.bare_seconds < host.most_late_seconds:
            return
        told = f"first cell after {seen.first_cell_seconds:.2f} s, of a short str after {seen.bare_seconds:.2f} s"
        assert attempt < ATTEMPTS - 1, told


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=lambda framework: framework.name)
def test_an_agent_answers_over_4_gib(framework: Host) -> None:
    """The lines of docs/hosts.md: the answer is right, and little is read. The script compares the descriptions."""
    if not framework.python.exists():
        pytest.skip(f"no environment for {framework.name}: make test-hosts HOSTS={framework.name}")
    seen = run(framework)
    assert seen.answer == ANSWER
    assert seen.before < 100_000
    assert 0 < seen.read < 100_000


def test_a_deep_agent_works_on_documents() -> None:
    """The backend answers as deepagents' own does on a folder with the same files, and its agent reads them."""
    if not DEEPAGENTS.python.exists():
        pytest.skip("no environment for deepagents: make test-hosts HOSTS=deepagents")
    assert "deepagents: equal" in started(DEEPAGENTS)


def run(host: Host) -> Seen:
    """One run of a host."""
    told = [line.removeprefix("SEEN ") for line in started(host).splitlines() if line.startswith("SEEN ")]
    return Seen(**json.loads(told[-1]))


def started(host: Host) -> str:
    """What a run prints; elsewhere than in the checkout, whose `rlm` is not the host's."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    command = [host.python, HERE / f"run_{host.module}.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd="/", env=environment, timeout=380)
    assert done.returncode == 0, f"{host.name}:\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
