"""What cells print and what of it is kept: bounded, head and tail, apart from other threads."""

from __future__ import annotations

import ast
import re
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from rlm.calls.waiting import CellClock
from rlm.context.excerpt import shorten
from rlm.runners.cell_thread import Buffer, Router
from rlm.runners.local import LocalRunner

Make = Callable[..., LocalRunner]


def test_a_buffer_without_room_keeps_no_text() -> None:
    buffer = Buffer(0)
    for _ in range(3):
        buffer.write("x" * 1000)
    assert buffer.text() == "\n... [3,000 characters omitted] ...\n"
    assert "".join(buffer._tail) == ""


def test_output_keeps_head_tail_and_traceback_and_states_what_was_omitted(runner_of: Make) -> None:
    runner = runner_of(output_limit=1000)
    out = runner.run("for i in range(1000): print(f'{i:04d}')").stdout
    assert out.startswith("0000\n0001\n")
    assert out.endswith("0998\n0999\n")
    assert "[4,000 characters omitted]" in out
    result = runner.run("for i in range(10**5): print('flood')\n1/0")
    assert "ZeroDivisionError" in result.stderr
    assert len(result.stdout) + len(result.stderr) < 1100


@pytest.mark.slow
@pytest.mark.parametrize("text", ["x" * 30_000, "line\n" * 6_000, "'\\\u0001" * 10_000, "\u20ac\U0001f600" * 15_000])
@pytest.mark.parametrize("before", [0, 9_000, 25_000])
def test_a_bare_slice_is_cut_once_and_its_note_says_how_much(runner_of: Make, text: str, before: int) -> None:
    """What was printed before may be cut too; what the value shows of itself is never cut a second time."""
    shown = runner_of(text).run(f"print('-' * {before}) if {before} else None\ncontext[:30_000]").stdout
    notes = re.findall(r"(\S*)\s\.\.\. \[([\d,]+) characters omitted\] \.\.\.\s", shown)
    assert len(notes) == 1 + (before > 9_000)
    value = shown.rstrip("\n").rpartition("\n")[2]
    head, omitted, tail = re.fullmatch(r"(.*) \.\.\. \[([\d,]+) characters omitted\] \.\.\. (.*)", value).groups()
    head, tail = ast.literal_eval(head), ast.literal_eval(tail)
    assert text.startswith(head)
    assert text[:30_000].endswith(tail)
    assert len(head) + int(omitted.replace(",", "")) + len(tail) == 30_000
    assert len(shown) < 20_300


def test_notes_of_the_runner_take_nothing_of_the_output(runner_of: Make) -> None:
    names = ["llm_query", "llm_query_batched", "SHOW_VARS", "FINAL", "FINAL_VAR", "SUBMIT", "LLMError", "context"]
    shown = runner_of("t").run("print('x' * 19_999)\n" + "; ".join(f"{name} = 0" for name in names)).stdout
    assert shown.startswith("x" * 19_999 + "\n[You assigned to `context`")
    assert all(f"[`{name}` is reserved and was restored" in shown for name in names[:-1])


def test_a_text_that_was_cut_is_not_cut_again_for_its_note() -> None:
    once = shorten("x" * 5_000, 1_200)
    assert shorten(once, 1_200) == once
    twice = shorten(once, 400)
    assert "[4,600 characters omitted]" in twice
    assert twice.count("omitted") == 1


def test_a_huge_last_value_is_bounded(runner_of: Make) -> None:
    runner = runner_of("x" * 10_000_000, output_limit=1000)
    shown = runner.run("context").stdout
    assert len(shown) < 1100
    assert "characters omitted" in shown
    assert len(runner.run("[context] * 10**6").stdout) < 1100
    assert len(runner.run("{i: context for i in range(1000)}").stdout) < 1100


def test_locals_are_recorded_by_bounded_repr(runner_of: Make) -> None:
    code = (
        "big = list(range(10**6)); deep = []; deep.append(deep)\nclass Bad:\n    def __repr__(self): 1/0\nbad = Bad()"
    )
    variables = runner_of().run(code).variables
    assert variables["big"].startswith("[0, 1, 2")
    assert all(len(text) < 300 for text in variables.values())
    assert variables["bad"] == "<Bad, whose repr raises ZeroDivisionError>"


def test_stdout_of_concurrent_runs_and_other_threads_is_kept_apart(
    runner_of: Make, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sys.stdout
    stop = threading.Event()

    def host() -> None:
        while not stop.wait(0.001):
            print("host")

    other = threading.Thread(target=host)
    other.start()
    try:
        runners = [runner_of(str(i)) for i in range(8)]
        code = "import sys, time\nfor _ in range(50):\n    sys.stdout.write(context); print(context); time.sleep(0)"
        with ThreadPoolExecutor(8) as pool:
            outputs = list(pool.map(lambda runner: runner.run(code).stdout, runners))
    finally:
        stop.set()
        other.join()
    assert outputs == [f"{i}{i}\n" * 50 for i in range(8)]
    assert set(capsys.readouterr().out.split()) <= {"host"}
    assert sys.stdout is before
    assert not isinstance(sys.stderr, Router)


def test_print_obeys_redirect_and_file(runner_of: Make) -> None:
    code = (
        "import io, sys, contextlib\nf = io.StringIO()\nwith contextlib.redirect_stdout(f): print('in')\n"
        "print('err', file=sys.stderr)\nprint(f.getvalue().strip(), 'out', sep='-')"
    )
    result = runner_of().run(code)
    assert (result.stdout, result.stderr) == ("in-out\n", "err\n")


@pytest.mark.slow
def test_a_cell_left_behind_keeps_no_stream(
    runner_of: Make, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, time_up, held, done = sys.stdout, threading.Lock(), threading.Lock(), threading.Event()
    monkeypatch.setattr(CellClock, "seconds_left", lambda _: 0.0 if time_up.locked() else 60.0)
    runner = runner_of({"block": [time_up.acquire, held.acquire], "done": done.set})
    code = (
        "import operator, threading\nanswer.update(content='kept', ready=True)\n"
        "try: list(map(operator.call, context['block']))  # without leaving C code\n"
        "finally:\n    print('later')\n    late = threading.Thread(target=print, args=['late'])\n"
        "    late.start(); late.join()\n    context['done']()"
    )
    with held:
        result = runner.run(code)
        assert "could not be stopped" in result.stderr
        assert result.final_answer == "kept"
        assert sys.stdout is before
        time_up.release()
        assert runner.run("print('on')").stdout == "on\n"
    assert done.wait(60)  # or it would print when pytest has closed its own stream
    assert capsys.readouterr().out == ""
