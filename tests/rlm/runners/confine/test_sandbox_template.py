"""Workers that are forked from a template: each is new, ends as others do, and outlives no host."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from monocontext import Monocontext, publish
from rlm import ScriptedLM
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
from rlm.runners import process, template
from rlm.runners.confine import kills
from rlm.runners.process import ProcessRunner
from rlm.runners.runner import NothingConfines
from rlm.runners.template import FORKED_WAYS, Forked, warm_workers


@pytest.fixture
def warm() -> Iterator[None]:
    with warm_workers():
        yield


def make(way: str = "namespaces", context: object = "text", **options: Any) -> ProcessRunner:
    return ProcessRunner(context, SubCalls(ScriptedLM(str.upper), Usage()), ways=[way], **options)


def launcher(runner: ProcessRunner) -> Any:
    worker: Any = runner._worker
    return worker._popen


@pytest.mark.parametrize("way", FORKED_WAYS)
def test_what_one_worker_leaves_behind_no_other_finds(warm: None, way: str) -> None:
    first, second = make(way), make(way)
    assert isinstance(launcher(first), Forked)
    assert isinstance(launcher(second), Forked)
    left = "import builtins, os, random, sys\nbuiltins.left = sys.left = 1\nopen('/tmp/left', 'w').close()"
    first.run(left if way == "namespaces" else left.rpartition("\n")[0])
    seen = (
        "import builtins, os, sys\nprint(hasattr(builtins, 'left'), hasattr(sys, 'left'), os.path.exists('/tmp/left'))"
    )
    for runner in (second, make(way)):
        assert runner.run(seen).stdout == "False False False\n"
    drawn = [
        runner.run("import random, uuid\nprint(random.random(), uuid.uuid4())").stdout for runner in (first, second)
    ]
    assert drawn[0] != drawn[1]


def test_a_worker_has_no_descriptor_but_its_own(warm: None) -> None:
    runners = [make("landlock") for _ in range(3)]
    held = "import os\nprint(sum(1 for fd in range(256) if not _fails(fd)))"
    code = (
        "def _fails(fd):\n    try:\n        os.fstat(fd)\n    except OSError:\n        return True\n    return False\n"
    )
    assert {runner.run(f"import os\n{code}{held}").stdout for runner in runners} == {"4\n"}  # 0, 1, 2, the channel


def test_a_lazy_text_is_served_to_forks(warm: None, tmp_path: Path) -> None:
    publish("needle in a text\n" * 5_000, tmp_path / "context")
    with Monocontext.open(tmp_path / "context") as context:
        for _ in range(3):
            runner = make(context=context)
            assert runner.run("print(context.count('needle'))").stdout == "5000\n"
            runner.close()


def test_a_fork_that_fails_is_told_and_costs_no_other_worker(warm: None, monkeypatch: pytest.MonkeyPatch) -> None:
    failing = (
        "import os\nfork, failed = os.fork, []\n"
        "def fork_later():\n    if failed: return fork()\n"
        "    failed.append(1)\n    raise BlockingIOError(11, 'no room')\n"
        "os.fork = fork_later\n"
    )

    def command(*words: Any) -> list[str]:
        made = launcher_command(*words)
        return [*made[:-2], failing + made[-2], made[-1]]

    launcher_command = template.command
    monkeypatch.setattr(template, "command", command)
    with pytest.raises(NothingConfines, match="cannot start a process: no room"):
        make()
    runner = make()
    assert isinstance(launcher(runner), Forked)
    assert runner.run("print(6 * 7)").stdout == "42\n"


def test_a_kill_at_the_start_says_what_is_known_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vmstat = tmp_path / "vmstat"
    vmstat.write_text("pgfault 12\noom_kill 3\n")
    monkeypatch.setattr(kills, "_VMSTAT", vmstat)
    before = kills.memory_kills()
    assert (before, kills.why_killed(before).partition(" (")[0]) == (
        3, "not for lack of memory as the kernel counts it",
    )  # fmt: skip
    vmstat.write_text("oom_kill 5\n")
    assert kills.why_killed(before).startswith("as the kernel killed 2 processes for lack of memory meanwhile")
    monkeypatch.setattr(process, "_launch", lambda *_: subprocess.Popen(["sh", "-c", "kill -9 $$"], stderr=-1))
    with pytest.raises(NothingConfines, match="SIGKILL: killed from outside, not for lack of memory"):
        make()


def test_many_threads_start_workers_at_once(warm: None) -> None:
    said: list[str] = []

    def work() -> None:
        runner = make()
        said.append(runner.run("print(1 + 1)").stdout)
        runner.close()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert said == ["2\n"] * 8
    assert len(template._templates) == 1


def test_a_worker_that_dies_says_how_and_is_replaced(warm: None) -> None:
    runner = make()
    assert "exit status 7" in runner.run("import os\nos._exit(7)").stderr
    assert runner.run("print('again')").stdout == "again\n"


def test_a_launcher_can_be_killed(warm: None) -> None:
    forked = launcher(make())
    with pytest.raises(subprocess.TimeoutExpired):
        forked.wait(0.01)
    forked.kill()
    assert forked.wait(60) == -signal.SIGKILL


def test_a_template_that_dies_is_replaced(warm: None) -> None:
    make()
    (first,) = template._templates.values()
    first._process.kill()
    first._process.wait()
    assert make().run("print(2)").stdout == "2\n"
    assert list(template._templates.values()) != [first]


def test_none_is_kept_after_the_last_holder() -> None:
    with warm_workers(), warm_workers():
        runner = make()
        (kept,) = template._templates.values()
    assert kept._process.returncode == 0
    assert runner.run("print(3)").stdout == "3\n"  # a worker goes on
    runner.close()
    assert not isinstance(launcher(make()), Forked)


def test_nothing_outlives_a_host_that_is_killed() -> None:
    program = (
        "import sys, time\nfrom tests.rlm.runners.confine.test_sandbox_template import launcher, make\n"
        "from rlm.runners import template\ntemplate.warm_workers().__enter__()\nrunner = make()\n"
        "(kept,) = template._templates.values()\nprint(kept._process.pid, launcher(runner).pid, flush=True)\n"
        "time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as host:
        assert host.stdout
        pids = [int(pid) for pid in host.stdout.readline().split()]
        held = [os.pidfd_open(pid) for pid in pids]
        host.kill()
    for fd in held:
        assert template.select.select([fd], [], [], 60)[0], "it lives on"
        os.close(fd)
