"""The runner `docker` with a real engine (`make test-docker`): what is left when its host or it ends."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest
from conftest import ENGINE
from rlm_replies import calls

from rlm.runners.confine.limits import Limits
from rlm.runners.docker import DockerRunner

HOST = """
import sys
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners.docker import DockerRunner
runner = DockerRunner("c", SubCalls(ScriptedLM(str.upper), Usage()), image=sys.argv[1], program=sys.argv[2])
print(runner._worker._name, flush=True)
runner.run(sys.argv[3])
sys.stdin.read()
"""


def make_runner(image: str, **options: object) -> DockerRunner:
    return DockerRunner("text " * 1000, calls(), image=image, program=ENGINE, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "cell", ["1", "import time\nwhile True:\n  try: time.sleep(9)\n  except BaseException: pass"], ids=["idle", "busy"]
)
def test_a_container_ends_with_its_host_even_when_that_is_killed(image: str, cell: str) -> None:
    command, pipe = [sys.executable, "-c", HOST, image, ENGINE, cell], subprocess.PIPE
    host = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=Path(__file__).parents[4])
    assert host.stdout
    name = host.stdout.readline().strip()
    assert name in names()
    time.sleep(0.3)  # the cell begins; where it has not yet, the test is the other one
    host.kill()
    host.communicate()
    wait_for_the_end_of(name)


def test_closing_leaves_no_container(image: str) -> None:
    before = set(names())
    runner = make_runner(image)
    assert runner.confinement == "docker"
    assert runner.run("print(len(context), llm_query('hi'))").stdout == "5000 HI\n"
    (name,) = set(names()) - before
    runner.close()
    wait_for_the_end_of(name)


def test_the_engine_bounds_memory_that_addresses_do_not(image: str) -> None:
    """Files of /tmp lie in memory, beside the worker's own."""
    runner = make_runner(image, limits=Limits(memory_bytes=256 << 20, disk_bytes=1 << 30))
    fill = "with open('/tmp/x', 'wb') as file:\n    while True: file.write(bytes(1 << 20))"
    assert "WorkerDied" in runner.run(fill).stderr
    assert runner.run("1 + 1").stdout == "2\n"
    runner.close()


def names() -> list[str]:
    command = [ENGINE, "ps", "--filter", "name=rlm-", "--format", "{{.Names}}"]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout.split()


def wait_for_the_end_of(name: str) -> None:
    end = time.monotonic() + 60
    while name in names():
        assert time.monotonic() < end
        time.sleep(0.1)
