"""The runner `docker`, with a stand-in for the program; the worker is real."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from rlm_replies import calls, runs

from monocontext import Monocontext, publish
from rlm import RLM, ScriptedLM
from rlm.errors import RunnerUnavailable
from rlm.runners.confine.limits import Limits
from rlm.runners.docker import Container, DockerRunner, docker_command

ROOT = Path(__file__).parents[4]
FAKE = f"""#!{sys.executable}
import json, os, signal, sys
if sys.argv[1] == "kill":
    os.kill(int(open({{place!r}} + "/" + sys.argv[2]).read()), signal.SIGKILL)
    sys.exit()
name = sys.argv[sys.argv.index("--name") + 1]
open({{place!r}} + "/" + name, "w").write(str(os.getpid()))
json.dump(sys.argv, open({{place!r}} + "/argv", "w"))
at = sys.argv.index("the-image")
if {{broken!r}}:
    sys.exit("docker: no such image\\n\\nRun 'docker run --help' for more information")
os.environ["PYTHONPATH"] = {str(ROOT)!r}
os.execv(sys.executable, [sys.executable, *[a for a in sys.argv[at + 2:] if a != "-I"]])
"""


def docker_at(place: Path, broken: bool = False) -> str:
    program = place / "docker"
    program.write_text(FAKE.format(place=str(place), broken=broken))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(program)


@pytest.mark.slow
def test_a_container_runs_cells_and_is_killed_by_name(tmp_path: Path) -> None:
    runner = DockerRunner("the context", calls(), image="the-image", program=docker_at(tmp_path), cell_timeout=2)
    assert runner.confinement == "docker"
    assert runner.run("x = 1\nprint(context, llm_query('hi'))").stdout == "the context HI\n"
    assert "PermissionError" in runner.run("import socket; socket.socket()").stderr
    stuck = runner.run("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass")
    assert "lost: x" in stuck.stderr
    assert runner.run("print(context)").stdout == "the context\n"
    [pid] = [int(f.read_text()) for f in tmp_path.glob("rlm-*") if runs(int(f.read_text()))]
    runner.close()
    assert not runs(pid)


def test_docker_is_asked_for_walls() -> None:
    line = " ".join(docker_command("docker", "name", "image", ("--runtime=runsc",), Limits()))
    for wanted in ("--network none", "--read-only", "--cap-drop ALL", "--user 65534:65534", "--runtime=runsc image"):
        assert wanted in line
    assert "no-new-privileges" in line


def test_what_docker_says_is_the_reason(tmp_path: Path) -> None:
    with pytest.raises(RunnerUnavailable, match="docker: no such image"):
        DockerRunner("c", calls(), image="the-image", program=docker_at(tmp_path, broken=True))
    with pytest.raises(RunnerUnavailable, match="needs the program 'nodocker'"):
        DockerRunner("c", calls(), program="nodocker")


def test_an_engine_that_hangs_does_not_hang_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rlm.runners.docker._KILL_SECONDS", 0.05)
    monkeypatch.setattr("rlm.runners.piped_process._END_SECONDS", 0.05)
    assert Container(["sleep", "60"], program="yes", name="never ends").end() == "ended"


def test_two_texts_are_served_to_a_container(tmp_path: Path) -> None:
    publish("def needle(): pass\n" * 500, tmp_path / "code")
    publish("ok\n" * 900 + "needle failed\n", tmp_path / "logs")
    options = {"image": "the-image", "program": docker_at(tmp_path)}
    cell = """```repl
import os
logs = context["logs"]
assert "lazy" in repr(logs) and not os.path.exists("code")
FINAL([len(context["code"]), logs[logs.find("needle"):].strip(), more.count("needle")])
```"""
    with Monocontext.open(tmp_path / "code") as code, Monocontext.open(tmp_path / "logs") as logs:
        rlm = RLM(lm=ScriptedLM([cell]), runner="docker", runner_options=options, custom_tools={"more": code})
        assert rlm.completion("q", {"code": code, "logs": logs}).answer == "[9500, 'needle failed', 500]"
    assert str(tmp_path / "logs") not in (tmp_path / "argv").read_text()
