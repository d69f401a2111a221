"""The local runner: namespace, errors, time. Faults of the peers each have a test named after them."""

from __future__ import annotations

import linecache
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from monocontext import Monocontext, publish
from monocontext.stores.memory import MemoryStore, forget
from monocontext.testing import SlowStore
from rlm.calls.waiting import CellClock
from rlm.runners.local import LocalRunner

Make = Callable[..., LocalRunner]


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["import math\ndef f(): return math.floor(x)\nclass C: pass\nx = 2.5", "f(), C.__name__"], "(2, 'C')\n"),
        (["runs = []", "runs.append(1)\nruns.append(2) or 1/0", "runs"], "[1, 2]\n"),
        (["import sqlite3; db = sqlite3.connect(':memory:')", "db.execute('select 1').fetchone()"], "(1,)\n"),
        (["from __future__ import annotations\ndef f(x: Nope): return 1\nf(0)"], "1\n"),
        (["1; 'two'"], "'two'\n"),
        (["None"], ""),
        (["print('once')"], "once\n"),
        ([""], ""),
        (["import re\nlen(re.findall('\\d', '1 2'))"], "2\n"),
    ],
)
def test_cells_share_a_namespace_and_show_their_last_value(runner_of: Make, cells: list[str], shown: str) -> None:
    runner = runner_of()
    assert [runner.run(cell) for cell in cells][-1].stdout == shown


@pytest.mark.parametrize("end", ["", "\n1/0", "\nraise SystemExit", "\nFINAL(1)"])
def test_reserved_names_are_restored_after_each_cell_also_after_an_exception(runner_of: Make, end: str) -> None:
    names = ["context", "llm_query", "llm_query_batched", "SHOW_VARS", "FINAL", "FINAL_VAR", "SUBMIT", "LLMError"]
    runner = runner_of("the text")
    result = runner.run("; ".join(f"{name} = 0" for name in names) + end)
    assert "`context` has been restored: never assign to it" in result.stdout
    assert "print(context[:1000])" in result.stdout
    assert "`llm_query` is reserved and was restored" in result.stdout
    assert runner.run("print(context, callable(llm_query))").stdout == "the text True\n"
    assert runner.run("; ".join(f"del {name}" for name in names) + end) is not None
    assert runner.run("print(context, callable(FINAL))").stdout == "the text True\n"


def test_context_is_never_copied_serialised_or_made_a_str(runner_of: Make) -> None:
    class Untouchable:
        def refuse(self, *args: object) -> Any:
            raise AssertionError("touched")

        __str__ = __format__ = __copy__ = __deepcopy__ = __reduce__ = __iter__ = __len__ = refuse  # type: ignore[assignment]

        def __repr__(self) -> str:
            return "<Untouchable>"

    runner = runner_of(Untouchable())
    assert runner.run("context").stdout == "<Untouchable>\n"
    assert runner.run("alias = context").variables == {"context": "<Untouchable>", "alias": "<Untouchable>"}


def test_a_lazy_text_brings_names_and_builtins(runner_of: Make, lazy: Any) -> None:
    runner = runner_of({"of": [lazy]})
    assert runner.run("print(magic, open('x'), is_text(context['of'][0]))").stdout == "7 shimmed open True\n"
    assert "magic" not in runner.run("a = 1").variables


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import json\njson.loads('{')", ["json.loads('{')", "JSONDecodeError"]),
        ("try:\n    1/0\nexcept Exception as e:\n    raise ValueError('second') from e",
         ["ZeroDivisionError", "direct cause", "ValueError: second"]),
        ("e = None\nfor i in range(3000):\n    try:\n        raise ValueError(i) from e\n    except ValueError as x:\n"
         "        e = x\nraise e", ["ValueError: 0\n", "ValueError: 2999\n"]),
        *((code, ["SyntaxError"]) for code in ("a\0b", "return 1", "(" * 10_000)),
        *((code, ["SystemExit"]) for code in ("import sys; sys.exit(3)", "exit()", "quit(1)", "raise SystemExit(1)")),
        *((f"raise {name}(1)", [f"{name}: 1\n"]) for name in ("KeyboardInterrupt", "GeneratorExit", "BaseException")),
        *((call, ["waits for a person"]) for call in ("input('name?')", "breakpoint()")),
    ],
)  # fmt: skip
def test_an_error_is_told_with_the_frames_of_cells_alone(runner_of: Make, code: str, words: list[str]) -> None:
    runner = runner_of()
    stderr = runner.run(code).stderr
    assert [word for word in words if word not in stderr] == []
    assert "decoder.py" not in stderr
    assert not sys.stdin.closed
    assert runner.run("1").stdout == "1\n"


def test_traceback_has_line_numbers_and_source_lines_and_no_frames_of_ours(runner_of: Make) -> None:
    runner = runner_of()
    runner.run("def f(x):\n    y = x\n    return 1 / y")
    stderr = runner.run("a = 1\nf(0)").stderr
    assert "line 2, in <module>\n    f(0)" in stderr
    assert "line 3, in f\n    return 1 / y" in stderr
    assert stderr.endswith("ZeroDivisionError: division by zero\n")
    assert "rlm/" not in stderr


@pytest.mark.parametrize("tracer", [None, lambda *_: None])
def test_an_endless_loop_is_stopped_and_says_where(
    runner_of: Make, monkeypatch: pytest.MonkeyPatch, tracer: Any
) -> None:
    """CPython 3.11 began no traced call again after an exception had been withdrawn: `make coverage` hung here."""
    time_up, before = threading.Lock(), sys.gettrace()
    monkeypatch.setattr(CellClock, "seconds_left", lambda _: 0.0 if time_up.locked() else 60.0)
    runner = runner_of(time_up, cell_timeout=0.2)
    sys.settrace(tracer or before)
    try:
        result = runner.run("kept = 1\ncontext.acquire()\nwhile True:\n    kept += 1")
    finally:
        sys.settrace(before)
    assert "CellTimeout: stopped after 0.2 s" in result.stderr
    assert "line 4" in result.stderr or "line 3" in result.stderr
    time_up.release()
    assert runner.run("kept > 0").stdout == "True\n"


def test_an_endless_loop_that_catches_everything_is_stopped(runner_of: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    time_up = threading.Lock()
    monkeypatch.setattr(CellClock, "seconds_left", lambda _: 0.0 if time_up.locked() else 60.0)
    runner = runner_of(time_up)
    code = "import time\ncontext.acquire()\nwhile 1:\n    try:\n        time.sleep(0)\n    except Exception: pass\n"
    assert "CellTimeout" in runner.run(code).stderr
    time_up.release()
    runner.run(code.replace("except Exception: pass", "except:\n        left = True\n        break"))
    time_up.release()
    assert runner.run("left").stdout == "True\n"


@pytest.mark.slow
@pytest.mark.parametrize("cell", ["while True: pass", "import time; time.sleep(3)"])
def test_a_traced_call_ends_after_a_stopped_cell(cell: str) -> None:
    """CPython 3.11 runs a traced call for ever while it believes that an exception is pending."""
    code = f"""
import sys
from rlm import RLM, ScriptedLM
RLM(lm=ScriptedLM(["```repl\\n{cell}\\n```", "FINAL(done)"]), runner="local", cell_timeout=0.1).completion("q", "text")
sys.setprofile(lambda *_: None)
(lambda: None)()
sys.setprofile(None)
print("ended")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "ended\n", done.stderr


def test_waiting_for_sub_calls_does_not_count_as_the_cells_time(runner_of: Make) -> None:
    def slow(prompt: str) -> str:
        time.sleep(1.2)
        return "ok"

    assert runner_of(script=slow, cell_timeout=1).run("llm_query('x')").stdout == "'ok'\n"


def test_closing_leaves_no_thread_and_no_source(runner_of: Make) -> None:
    def ours() -> list[str]:
        return [thread.name for thread in threading.enumerate() if thread.name == "rlm-cells"]

    deadline = time.monotonic() + 60
    before = len(ours())
    runner = runner_of()
    runner.run("1")
    name = next(name for name in linecache.cache if name.startswith(runner._file_prefix))
    runner.close()
    while len(ours()) > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(ours()) <= before
    assert name not in linecache.cache


def test_builtins_that_a_cell_changed_are_put_back(runner_of: Make) -> None:
    runner = runner_of()
    noted = runner.run("__builtins__['print'] = None\ndel __builtins__['len']").stdout
    assert noted == "[Python's builtins are shared by all cells; these were restored: len, print]\n"
    assert runner.run("print(len('abc'))").stdout == "3\n"
    assert runner.run("__builtins__['mine'] = 1").stdout == ""
    assert runner.run("mine").stdout == "1\n"


@pytest.mark.slow
def test_cells_after_one_whose_time_was_up_in_a_read(runner_of: Make) -> None:
    text = "".join(f"line {number}\n" for number in range(20_000))
    store = MemoryStore("local-reads", "ctx")
    publish(text, store, codec="raw", frame_bytes=2_000, segment_bytes=8_000)
    try:
        with Monocontext.open(SlowStore(store, 0.001), cache_bytes=20_000) as context:
            runner = runner_of(context, cell_timeout=0.2)
            for _ in range(5):
                stopped = runner.run(
                    "while True:\n    for piece in context.chunks(5_000): pass\n    context.find('nothing')"
                )
                assert "CellTimeout" in stopped.stderr
                assert runner.run("context[50_000:50_010]").stdout == repr(text[50_000:50_010]) + "\n"
    finally:
        forget("local-reads")
