"""Ctrl-C while a cell runs in a worker: the cell ends, its variables stay, no other cell is hit."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

from rlm.runners.process import ProcessRunner

Make = Callable[[], ProcessRunner]


def interrupted_in(runner: Any, code: str) -> None:
    """Run a cell that says by a sub-call that it has begun, and is interrupted a little later."""
    began = threading.Event()
    runner._requests.functions["llm_query"] = lambda prompt, model=None: began.set() or "begun"

    def interrupt() -> None:
        began.wait(60)
        threading.Event().wait(0.3)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        runner.run(f"llm_query('x')\n{code}")
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    ["while True: pass", "import time; time.sleep(1000)", "import re; re.match('(a+)+$', 'a' * 40 + 'b')",
     "import threading\nt = threading.Thread(target=lambda: None)\nthreading.Event().wait()"],
)  # fmt: skip
def test_ctrl_c_ends_the_cell_and_keeps_the_worker(sandbox: Make, code: str) -> None:
    runner = sandbox()
    runner.run("kept = 41")
    for n in range(2):
        interrupted_in(runner, f"half = {n}; context = 'mine'\n{code}")
        result = runner.run("print(kept + 1, half, context[:3])")
        assert (result.stdout, result.stderr) == (f"42 {n} the\n", "")


def test_an_interrupt_that_comes_too_late_is_not_for_the_next_cell(sandbox: Make) -> None:
    runner = sandbox()
    for n in range(20):
        runner._send({"op": "interrupt"})
        assert runner.run(f"for i in range(200_000): pass\nprint({n})").stdout == f"{n}\n"


@pytest.mark.slow
def test_a_cell_that_does_not_end_takes_its_variables_and_the_next_cell_is_told(
    sandbox: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rlm.runners.remote._GRACE_SECONDS", 1.0)
    runner = sandbox()
    runner.run("kept = 41")
    interrupted_in(runner, "sum(range(10**12))")  # C that looks at no signal
    result = runner.run("print('kept' in globals())")
    assert result.stdout == "False\n"
    assert "cell and its process were ended. The variables are lost: kept" in result.stderr
    assert runner.run("1").stderr == ""
