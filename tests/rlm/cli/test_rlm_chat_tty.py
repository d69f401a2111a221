"""`rlm chat` on a terminal: what Ctrl-C does at the prompt, while a model is waited for, and while a cell runs."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import repl

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")

WAIT_SECONDS = 60.0
READS_STDIN = ("0 0x0 ", "63 0x0 ")
"""How /proc/PID/syscall begins, on x86_64 and aarch64."""
CTRL_C = "\x03"
RUNNERS = ["subprocess", "local"]


class Terminal:
    """A command with a terminal of its own: what is typed, and what is seen so far."""

    def __init__(self, *args: str, **environment: str) -> None:
        master, slave = pty.openpty()
        self._master = master
        setup = (
            "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", setup, sys.executable, "-m", "rlm", *args],
            stdin=slave, stdout=slave, stderr=slave, start_new_session=True, close_fds=True,
            env={**os.environ, "TERM": "dumb", "COLUMNS": "200", **environment},
        )  # fmt: skip
        os.close(slave)
        self.seen = ""

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def _read(self) -> None:
        if select.select([self._master], [], [], 0.1)[0]:
            try:
                self.seen += os.read(self._master, 65536).decode(errors="replace")
            except OSError:  # it has ended
                time.sleep(0.05)

    def until(self, pattern: str) -> str:
        """What was seen up to the first match behind what was looked at before."""
        deadline = time.monotonic() + WAIT_SECONDS
        while (found := re.search(pattern, self.seen)) is None:
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.seen!r}"
            self._read()
        before, self.seen = self.seen[: found.end()], self.seen[found.end() :]
        return before

    def prompted(self) -> None:
        """Wait until it reads: Python notices a signal between prompt and read only with the next line."""
        self.until("> ")
        syscall = Path(f"/proc/{self.process.pid}/syscall")
        deadline = time.monotonic() + WAIT_SECONDS
        while not syscall.read_text().startswith(READS_STDIN):
            assert time.monotonic() < deadline, "it does not read"
            time.sleep(0.01)

    def ended(self) -> int:
        deadline = time.monotonic() + WAIT_SECONDS
        while self.process.poll() is None:
            assert time.monotonic() < deadline, f"it goes on: {self.seen!r}"
            self._read()
        return self.process.returncode

    def close(self) -> None:
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self._master)


@pytest.fixture
def chat(endpoint: Any, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    made: list[Terminal] = []

    def make(runner: str) -> Terminal:
        made.append(Terminal("chat", str(tmp_path / "notes.txt"), "--runner", runner, "--quiet",
                             "--trajectory", str(tmp_path / "t.jsonl"),
                             OPENAI_BASE_URL=endpoint.url, OPENAI_API_KEY="sk-of-the-test"))  # fmt: skip
        made[-1].prompted()
        return made[-1]

    yield make
    for terminal in made:
        terminal.close()


def question_of(body: dict[str, Any]) -> str:
    """The newest question in a request."""
    asked = [m["content"] for m in body["messages"] if m["role"] == "user" and "query: " in m["content"]]
    return str(re.findall(r'query: "(.*?)"', asked[-1])[-1])


@pytest.mark.slow
@pytest.mark.parametrize("runner", RUNNERS)
def test_ctrl_c_stops_a_question_and_the_variables_are_kept(
    endpoint: Any, chat: Callable[..., Terminal], runner: str
) -> None:
    slow, waiting = threading.Event(), threading.Event()

    def reply(body: dict[str, Any]) -> str:
        if len(body["messages"]) == 1:
            return "a sub-call, so the cell has begun"
        match question_of(body):
            case "make":
                return repl("kept = 41; FINAL('made')")
            case "wait":
                waiting.set()
                slow.wait(WAIT_SECONDS)
                return "FINAL(too late)"
            case "loop":
                return repl("llm_query('x'); context = 'mine'; half = 1\nwhile True:\n    half += 1")
            case "sleep":
                return repl("llm_query('x'); import time\ntime.sleep(1000)")
            case _:
                return repl("FINAL(f'{kept + 1} {half > 1} {context[:3]}')")

    endpoint.reply = reply
    terminal = chat(runner)
    terminal.type("make\n")
    terminal.until("made")
    terminal.prompted()
    terminal.type("wait\n")
    assert waiting.wait(WAIT_SECONDS)
    terminal.type(CTRL_C)
    terminal.until("Stopped; variables are kept.")
    terminal.prompted()
    slow.set()
    for question in ("loop", "sleep") if runner == "subprocess" else ("loop",):
        asked = len(endpoint.requests)
        time.sleep(2.1)  # else it would be the second of two that end the chat
        terminal.type(f"{question}\n")
        deadline = time.monotonic() + WAIT_SECONDS
        while len(endpoint.requests) < asked + 2 and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.3)  # the answer has come back
        terminal.type(CTRL_C)
        terminal.until("Stopped; variables are kept.")
        terminal.prompted()
    terminal.type("sum\n")
    terminal.until("42 True one")
    assert "broken off" in str(endpoint.requests[-1]["messages"])
    terminal.prompted()
    time.sleep(2.1)
    terminal.type("half a quest" + CTRL_C)
    terminal.until("Press Ctrl-C again now, or type /quit, to end the chat.")
    terminal.prompted()
    terminal.type(CTRL_C)
    assert terminal.ended() == 130
    assert "Traceback" not in terminal.seen
