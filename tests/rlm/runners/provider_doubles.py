"""What examples/sandboxes use of e2b 2.63.0, daytona 0.226.1, vercel-sandbox 0.10.0 and modal, with a local process."""

from __future__ import annotations

import asyncio
import codecs
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

ROOT = Path(__file__).parents[3]
started: list[LocalProcess] = []


class LocalProcess:
    """A command of a shell, whose output is decoded as the packages decode it."""

    def __init__(self, command: str) -> None:
        self.popen = subprocess.Popen(
            ["sh", "-c", "exec " + command.replace(" -I ", " ")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}, cwd="/",
        )  # fmt: skip
        started.append(self)

    def output(self) -> Iterator[str]:
        assert self.popen.stdout
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        while data := os.read(self.popen.stdout.fileno(), 1000):  # cut where no line ends
            yield decoder.decode(data)

    def send(self, data: bytes) -> None:
        assert self.popen.stdin
        self.popen.stdin.write(data)
        self.popen.stdin.flush()

    def kill(self) -> None:
        self.popen.kill()
        self.popen.wait()


class E2BSandbox:
    """Its commands and the handle of a command, too."""

    def __init__(self) -> None:
        self.commands = self

    @classmethod
    def create(cls, template: str, timeout: int, *, allow_internet_access: bool) -> E2BSandbox:
        assert not allow_internet_access
        return cls()

    def run(self, cmd: str, background: bool, stdin: bool, timeout: float, *, retain_output: bool) -> E2BSandbox:
        assert (background, stdin, timeout) == (True, True, 0)
        self._process = LocalProcess(cmd)
        return self

    def wait(self, on_stdout: Callable[[str], None]) -> None:
        for text in self._process.output():
            on_stdout(text)
        if code := self._process.popen.wait():
            raise RuntimeError(f"Command exited with code {code}")

    def send_stdin(self, data: str) -> None:
        self._process.send(data.encode())

    def kill(self) -> None:
        started[-1].kill()


class DaytonaProcess:
    """It echoes the input, and Daytona's shell adds a newline to what has none."""

    def create_session(self, session_id: str) -> None:
        self._session = session_id

    def execute_session_command(self, session_id: str, req: SimpleNamespace) -> SimpleNamespace:
        assert session_id == self._session
        assert req.run_async
        self._process = LocalProcess(req.command)
        self._echo: list[str] = ["Welcome to this sandbox.\n"]
        return SimpleNamespace(cmd_id="command-1")

    async def get_session_command_logs_async(
        self, session_id: str, command_id: str, on_stdout: Callable[[str], object], on_stderr: Callable[[str], object]
    ) -> None:
        assert (session_id, command_id) == (self._session, "command-1")
        output = self._process.output()
        rest = ""
        while text := await asyncio.to_thread(next, output, ""):
            *lines, rest = (rest + text).split("\n")
            for line in lines:
                on_stdout("".join(self._echo))
                self._echo.clear()
                on_stdout(line + "\n")

    def send_session_command_input(self, session_id: str, command_id: str, data: str) -> None:
        self._echo.append(data)
        self._process.send(data.encode())


class Daytona:
    def create(self, params: SimpleNamespace) -> SimpleNamespace:
        assert params.network_block_all
        return SimpleNamespace(process=DaytonaProcess())

    def delete(self, sandbox: SimpleNamespace) -> None:
        started[-1].kill()


class VercelSandbox:
    def create_process(self, command: str, args: list[str], *, stdin: int) -> SimpleNamespace:
        assert (command, args[0], stdin) == ("sh", "-c", subprocess.PIPE)
        process = LocalProcess(args[1])
        return SimpleNamespace(stdin=SimpleNamespace(write=process.send), stdout=process.output())

    def destroy(self) -> None:
        started[-1].kill()


def create_sandbox(*, source: SimpleNamespace, network_policy: str, execution_time_limit: float) -> VercelSandbox:
    assert network_policy == "deny-all"
    return VercelSandbox()


class ModalSandbox:
    @classmethod
    def create(cls, *, app: str, image: str, block_network: bool, timeout: float) -> ModalSandbox:
        assert block_network
        return cls()

    def exec(self, *words: str) -> SimpleNamespace:
        assert words[:2] == ("sh", "-c")
        process = LocalProcess(words[2])
        return SimpleNamespace(
            stdout=process.output(),
            stdin=SimpleNamespace(write=lambda text: process.send(text.encode()), drain=lambda: None),
        )

    def terminate(self) -> None:
        started[-1].kill()


MODULES: dict[str, Any] = {
    "e2b": SimpleNamespace(Sandbox=E2BSandbox),
    "daytona": SimpleNamespace(
        Daytona=Daytona, CreateSandboxFromSnapshotParams=SimpleNamespace, SessionExecuteRequest=SimpleNamespace
    ),
    "modal": SimpleNamespace(
        Sandbox=ModalSandbox,
        App=SimpleNamespace(lookup=lambda name, create_if_missing: name),
        Image=SimpleNamespace(debian_slim=lambda: SimpleNamespace(pip_install=lambda *names: "image")),
    ),
    "vercel": SimpleNamespace(),
    "vercel.sandbox": SimpleNamespace(
        NetworkPolicy=SimpleNamespace(deny_all=lambda: "deny-all"),
        SnapshotSource=SimpleNamespace,
        sync=SimpleNamespace(create_sandbox=create_sandbox),
    ),
}
