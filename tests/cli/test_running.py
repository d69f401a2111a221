"""How a command ends as a process: Ctrl-C at any moment, closed streams, and what it imports."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from ran import TEXT, Cli, on_a_terminal, process

import rlm.cli.commands
from monocontext import publish
from monocontext.cli.commands import app

PROGRAMS = {"monocontext": app, "rlm": rlm.cli.commands.app}


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("running") / "ctx"
    publish({"a.txt": "needle\n"}, place)
    return place


INTERRUPT_AT = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            import os, signal
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["monocontext", "grep", "needle", {place!r}]
from monocontext.cli import main
main()
"""


@pytest.mark.parametrize(
    "module",
    ["click", "monocontext.cli.commands", "monocontext.cli.searching", "monocontext.text.monocontext", "json.decoder"],
)
def test_ctrl_c_while_modules_are_imported(context: Path, module: str) -> None:
    program = INTERRUPT_AT.format(module=module, place=str(context))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode == 0:
        assert done.stdout == "needle\n", "the module was imported before"
    else:
        assert (done.returncode, done.stdout, done.stderr) == (130, "", "monocontext: interrupted\n")


def test_ctrl_c_in_a_callback_of_the_interpreter() -> None:
    program = """
import os, signal, sys, weakref
class It: pass
from monocontext.cli import running
def work():
    it = It()
    weakref.finalize(it, os.kill, os.getpid(), signal.SIGINT)
    class Cycle: pass
    del it
    print("goes on")
running._leave_on_interrupt("monocontext")
running.call_command(work, {}, "monocontext")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert "interrupted" in done.stderr


@pytest.mark.parametrize("words", [["grep", "needle"], ["cat"], ["info"]])
def test_a_closed_stdout_is_one_line(context: Path, words: list[str]) -> None:
    command = f"{sys.executable} -m monocontext {' '.join(words)} {context} >&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "monocontext: standard output is closed\n")


def test_a_closed_stdin_is_one_line(tmp_path: Path) -> None:
    command = f"{sys.executable} -m monocontext put - {tmp_path}/x <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, "monocontext: standard input is closed\n")
    assert not (tmp_path / "x").exists()


def test_an_ignored_interrupt_stays_ignored(context: Path) -> None:
    """As of a command behind `nohup`, or in the background of a script."""
    program = INTERRUPT_AT.format(module="monocontext.cli.searching", place=str(context))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "needle\n")


@pytest.mark.parametrize("program", sorted(PROGRAMS))
def test_the_help_of_each_command_ends_in_an_example_that_parses(program: str) -> None:
    group: Any = PROGRAMS[program]
    root = click.Context(group, info_name=program)
    for name in group.list_commands(root):
        told = CliRunner().invoke(group, [name, "--help"])
        assert told.exit_code == 0, told.output
        example = " ".join(told.stdout.partition("\n  Example: ")[2].split())
        words = shlex.split(example)
        assert words[:2] == [program, name]
        group.get_command(root, name).make_context(name, words[2:], parent=root)


HEAVY = ("typer", "pydantic", "rich", "boto3", "numpy", "asyncio", "openai")


@pytest.mark.parametrize("words", ["monocontext cat .", "monocontext info .", "rlm --version"])
def test_a_quick_command_imports_little(words: str, context: Path) -> None:
    """Agents call these commands hundreds of times: a module is 0.3 ms, pydantic 120 ms."""
    code = f"""
import sys
sys.argv = {words.split()!r}
from {words.split()[0]}.cli import main
try:
    main()
except SystemExit as end:
    print("loaded", end.code, *(name for name in {HEAVY} if name in sys.modules), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=context)
    assert done.stderr.splitlines()[-1] == "loaded 0"


@pytest.mark.parametrize(("unbuffered", "size"), [("", 3_000_000), ("1", 3_000_000), ("1", 200_000)])
def test_head_has_seen_enough(
    unbuffered: str, size: int, tmp_path: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The pipe closes while more is still to come, perhaps of a single write: no error, no word."""
    monkeypatch.setenv("PYTHONUNBUFFERED", unbuffered)
    cli("upload", "-", tmp_path / "ctx", stdin=(TEXT * 20).encode()[:size]).fine()
    with subprocess.Popen(process("cat", tmp_path / "ctx"), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        assert running.stdout.read(10) == TEXT.encode()[:10]
        running.stdout.close()
        assert running.wait(60) == 141
        assert running.stderr.read() == b""


def test_nobody_reads_the_version() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(process("--version"), stdout=writer, stderr=subprocess.PIPE)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.slow
def test_a_bar_on_a_terminal(uploaded: Path, file: Path, tmp_path: Path) -> None:
    for command in (["upload", file, tmp_path / "new"], ["append", file, uploaded], ["verify", uploaded]):
        code, seen = on_a_terminal("stderr", *command)
        assert code == 0
        assert str(command[0]) in seen
        assert "━" in seen
    done = subprocess.run(process("verify", uploaded), capture_output=True)
    assert (done.returncode, done.stderr) == (0, b""), "silence where there is no terminal"
    code, seen = on_a_terminal("stderr", "upload", file, uploaded)
    assert (code, seen.count("monocontext: ")) == (2, 1)
    assert "Traceback" not in seen
