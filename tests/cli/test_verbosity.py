"""`--quiet`, `--verbose` and `NO_COLOR`: the same in every command of both programs."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from ran import Cli

import rlm.cli.commands
from monocontext.cli.commands import app
from monocontext.cli.printing import set_quiet
from monocontext.stores import log
from tests.stores.http.object_server import ObjectServer, error

DATA = random.Random(5).randbytes(3_000)


@pytest.fixture(autouse=True)
def as_it_was() -> Iterator[None]:
    """Loggers and remarks as before, for the tests that come after."""
    levels = {name: logging.getLogger(name).level for name in ("monocontext", "rlm")}
    log.emit()
    yield
    log.emit()
    set_quiet(False)
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)


def commands(group: Any, context: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if hasattr(command, "list_commands"):
            yield path + name, command
            yield from commands(command, click.Context(command, parent=context, info_name=name), f"{path}{name} ")
        else:
            yield path + name, command


@pytest.mark.parametrize("root", [app, rlm.cli.commands.app])
def test_each_command_takes_both_once(root: Any) -> None:
    found = dict(commands(root, click.Context(root)))
    assert len(found) >= 7
    wrong = [
        name
        for name, command in found.items()
        if sorted(opt for each in command.params for opt in each.opts if opt in ("--quiet", "--verbose"))
        != ["--quiet", "--verbose"]
    ]
    assert wrong == []


@pytest.mark.parametrize("before", [True, False])
def test_verbose_prints_the_logs(
    cli: Cli, before: bool, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> None:
    def get(*words: str, program: tuple[str, ...] = ()) -> str:
        (tmp_path / "a").unlink(missing_ok=True)
        with ObjectServer(DATA, error(503, "SlowDown")) as server:
            told = cli(*program, "get", "s3://bucket/ctx/a", tmp_path / "a", "--endpoint", server.endpoint, *words)
        assert told.code == 0
        log.emit()  # as at the end of a process
        return told.err + capfdbinary.readouterr().err.decode()

    loud = get(program=("--verbose",)) if before else get("--verbose")
    assert loud.count("HTTP 503 SlowDown; sent again") == 1
    assert " monocontext INFO " in loud
    assert "503" not in get()  # nothing is left of it


def test_quiet_leaves_out_remarks_and_keeps_errors(cli: Cli, tmp_path: Path) -> None:
    assert cli("ls", tmp_path).err.startswith("note: nothing below")
    assert cli("ls", tmp_path, "--quiet").fine().out == ""
    assert cli("--quiet", "ls", tmp_path).fine().out == ""
    assert cli("ls", tmp_path).err.startswith("note: ")
    cli("info", tmp_path / "none", "--quiet").refused("none")
