"""The runner `sandbox`, with the classes of examples/sandboxes over doubles of the providers; the worker is real."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from rlm_replies import calls

from rlm import RLM, ScriptedLM
from rlm.errors import RunnerUnavailable
from rlm.runners import make_runner
from rlm.runners.relay import FROM_WORKER, LineDecoder, encode_lines
from rlm.runners.sandbox import SandboxRunner
from tests.rlm.runners import provider_doubles

EXAMPLES = Path(__file__).parents[3] / "examples" / "sandboxes"
PROVIDERS = {"e2b": "E2BSandbox", "daytona": "DaytonaSandbox", "vercel": "VercelSandbox", "modal": "ModalSandbox"}


@pytest.fixture
def make_of(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Any]]:
    """The class of the examples for a provider."""
    for name, module in provider_doubles.MODULES.items():
        monkeypatch.setitem(sys.modules, name, module)

    def take(provider: str) -> Any:
        return runpy.run_path(str(EXAMPLES / f"with_{provider}.py"))[PROVIDERS[provider]]

    provider_doubles.started.clear()
    yield take
    assert all(process.popen.poll() is not None for process in provider_doubles.started)
    for process in provider_doubles.started:
        process.popen.communicate()


@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_provider_of_the_examples_runs_cells(provider: str, make_of: Callable[[str], Any]) -> None:
    options: Any = {"make": make_of(provider), "python": sys.executable}
    runner = SandboxRunner("the contéxt" * 50_000, calls(), **options)
    assert runner.confinement == "sandbox"
    assert runner.run("x = 1\nprint(len(context), context[4:11], llm_query('hi'))").stdout == "550000 contéxt HI\n"
    assert "PermissionError" in runner.run("import socket; socket.socket()").stderr
    assert "lost: x" in runner.run("import os; os._exit(1)").stderr
    assert runner.run("print(len(context))").stdout == "550000\n"
    runner.close()
    assert len(provider_doubles.started) == 2


def test_a_volume_has_a_folder_in_the_sandbox_or_is_refused(make_of: Callable[[str], Any], tmp_path: Path) -> None:
    folder, options = tmp_path / "data", {"make": make_of("e2b"), "python": sys.executable}
    options |= {"cell_timeout": 30, "output_limit": 1000}
    runner = make_runner("sandbox", "c", calls(), scratch=str(folder), **options)
    assert runner.run(f"open({str(folder / 'a')!r}, 'w').write('kept')").stderr == ""
    runner.close()
    assert (folder / "a").read_text() == "kept"
    with pytest.raises(RunnerUnavailable, match="NotADirectoryError"):
        make_runner("sandbox", "c", calls(), scratch=str(folder / "a" / "b"), **options)


def test_what_the_sandbox_printed_is_the_reason(make_of: Callable[[str], Any]) -> None:
    with pytest.raises(RunnerUnavailable, match=r"did not start: .*No module named 'rlm'"):
        SandboxRunner("c", calls(), make=make_of("e2b"), python=f"env -u PYTHONPATH {sys.executable} -S")


def test_a_provider_that_refuses_is_the_reason() -> None:
    class Refused:
        def __init__(self) -> None:
            raise PermissionError("no such key")

    with pytest.raises(RunnerUnavailable, match="runner 'sandbox': PermissionError: no such key"):
        SandboxRunner("c", calls(), make=Refused)  # type: ignore[arg-type]
    with pytest.raises(RunnerUnavailable, match=r"runner_options=\{'make'"):
        RLM(lm=ScriptedLM([]), runner="sandbox")


@pytest.mark.parametrize("where", ["start", "listen"])
def test_a_ctrl_c_while_a_sandbox_starts_ends_it(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Interrupted:
        def start(self, command: str) -> None:
            if where == "start":
                raise KeyboardInterrupt

        def listen(self, receive: Callable[[str], object]) -> None:
            receive("Welcome\n")

        def write(self, text: str) -> None: ...

        def end(self) -> None:
            ended.append(where)

    monkeypatch.setattr("rlm.runners.channel.Channel.receive", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        SandboxRunner("c", calls(), make=Interrupted)
    assert ended == [where]


@pytest.mark.parametrize("piece", [1, 7, 4096, 1 << 20])
def test_lines_carry_bytes_through_echo_and_greetings(piece: int) -> None:
    data = bytes(range(256)) * 30
    lines = list(encode_lines(FROM_WORKER, data))
    assert max(map(len, lines)) < 4096
    text = "Welcome\r\n<ZWNobw==\n" + "".join(lines).replace("\n", "\r\n") + "\nNo module named x\n"
    decoder = LineDecoder(FROM_WORKER)
    decoded = [part for at in range(0, len(text), piece) for part in decoder.decode(text[at : at + piece])]
    assert b"".join(decoded) == data
    assert decoder.unmarked == "No module named x"


@pytest.mark.parametrize("text", [">not base64\n", "x" * (1 << 20)])
def test_what_is_no_line_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r"a line (that|of more)"):
        list(LineDecoder(FROM_WORKER).decode(text))
