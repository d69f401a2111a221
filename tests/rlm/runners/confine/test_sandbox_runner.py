"""The runner `subprocess` from its caller's side: namespace, calls, time, loss, contexts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from rlm_replies import calls, runs

import rlm
from monocontext import Monocontext, publish
from rlm import RLM, LLMError, ScriptedLM
from rlm.errors import ChannelAbuse, RunnerUnavailable
from rlm.runners.confine import bubblewrap
from rlm.runners.process import Process, ProcessRunner
from rlm.runners.pyodide import what_is_missing

Make = Callable[..., ProcessRunner]


@pytest.mark.parametrize("context", ["tëxt 🎉", ["a", {"k": (1, 2.5, None)}], {"k": ["v"]}, 7, None, ("t", {1, 2})])
def test_data_crosses_as_what_it_is(sandbox: Make, context: object) -> None:
    assert sandbox(context).run("print(repr(context))").stdout == f"{context!r}\n"


def test_an_empty_text_in_a_dict_stays_lazy(sandbox: Make) -> None:
    publish("", "memory://sandbox-empty", replace=True)
    with Monocontext.open("memory://sandbox-empty") as empty:
        assert sandbox({"a": empty}).run("len(context['a']), hasattr(context['a'], 'grep')").stdout == "(0, True)\n"


def test_half_a_pair_leaves_the_sandbox_escaped(sandbox: Make) -> None:
    runner = sandbox(names={"size": len, "same": lambda value: value})
    code = "print(bad, llm_query(bad), size(bad), same([None, True, -1.5, '', (1, {bad: ()})]))"
    result = runner.run(f"bad = 'x\\udc80'\n{code}\nFINAL(bad)")
    assert result.stdout == "x\\udc80 X\\UDC80 7 [None, True, -1.5, '', [1, {'x\\\\udc80': []}]]\n"
    assert result.final_answer == "x\\udc80"
    assert result.variables["bad"] == "'x\\udc80'"


def test_a_context_that_is_neither_data_nor_served_is_refused_by_name(sandbox: Make) -> None:
    with pytest.raises(RunnerUnavailable, match=r"this Foo is not plain data.*--runner local"):
        sandbox(type("Foo", (), {})())
    with pytest.raises(RunnerUnavailable, match=r"this list is not plain data throughout"):
        sandbox([object()])
    with pytest.raises(RunnerUnavailable, match=r"cannot pass 'tool' to its worker"):
        sandbox("c", names={"tool": [object()]})


def test_a_failed_call_is_an_error_that_the_model_can_catch(sandbox: Make) -> None:
    def script(prompt: str) -> str:
        if "b" in prompt:
            raise LLMError("the endpoint is down")
        return prompt.upper()

    runner = sandbox(script=script)
    assert runner.run("try: llm_query('b')\nexcept LLMError as e: print('caught', e)").stdout.startswith("caught the")
    assert "1 of 2 calls failed" in runner.run("llm_query_batched(['a', 'b'])").stderr
    shown = runner.run("[type(x).__name__ for x in llm_query_batched(['a', 'b'], return_exceptions=True)]")
    assert shown.stdout == "['str', 'LLMError']\n"
    assert "TypeError: a prompt must be a str, not int" in runner.run("llm_query(5)").stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "told"),
    [
        ("llm_query('x' * (65 << 20))", "ValueError: a message of 68,"),
        ("llm_query_batched([None] * 300_000)", "ValueError: a message of 1,"),
        ("FINAL('x' * (65 << 20))", "refused: an answer must have at most 66,"),
        ("answer['content'] = 'x' * (65 << 20); answer['ready'] = True", "refused: an answer must have at most 66,"),
    ],
)
def test_what_is_too_large_to_leave_is_told_and_the_run_goes_on(sandbox: Make, code: str, told: str) -> None:
    runner = sandbox()
    result = runner.run(f"kept = 1\n{code}")
    assert told in result.stderr
    assert result.final_answer is None
    assert runner.run("print(kept)").stdout == "1\n"


def test_calls_of_many_threads_of_a_cell_run_at_once(sandbox: Make) -> None:
    together = threading.Barrier(4, timeout=60)

    def script(prompt: str) -> str:
        together.wait()
        return prompt.upper()

    runner = sandbox(script=script)
    code = "from concurrent.futures import ThreadPoolExecutor as P\nwith P(4) as p: print(*p.map(llm_query, 'abcd'))"
    assert runner.run(code).stdout == "A B C D\n"


def test_functions_of_the_host_are_names_in_the_namespace(sandbox: Make) -> None:
    def look_up(key: str, *, times: int = 1) -> dict[str, Any]:
        """Look a key up."""
        if key == "none":
            raise KeyError(key, *range(1, times))
        return {"key": key * times, "list": [1, (2, None)]}

    runner = sandbox(names={"look_up": look_up, "bad": lambda: object()})
    assert runner.run("print(look_up('ab', times=2), look_up.__doc__)").stdout == (
        "{'key': 'abab', 'list': [1, (2, None)]} Look a key up.\n"
    )
    assert "KeyError: 'none'" in runner.run("look_up('none')").stderr
    assert "('none', 1)" in runner.run("look_up('none', times=2)").stderr
    assert "TypeError" in runner.run("bad()").stderr
    kinds = "class Table:\n    def __iter__(self): return iter(['a', 'b'])\n"
    for value in ("object()", "open", "{1: 2}", "b'x'", "bytearray(b'x')", "1 << 20_000", "Table()"):
        assert "cannot leave the sandbox" in runner.run(f"{kinds}look_up({value})").stderr, value
    assert runner.run("len(look_up('é' * 100_000)['key'])").stdout == "100000\n"


@pytest.mark.parametrize("context", ["a text", ["a", "list"]])
def test_the_context_itself_reaches_a_function_by_name(sandbox: Make, context: object) -> None:
    seen: list[object] = []
    runner = sandbox(context, names={"ask": lambda prompt, context=None: seen.append(context)})
    assert runner.run("ask('q', context=context)\nask('q', [context])\nask('q', 'x')").stderr == ""
    assert seen[0] is context
    assert seen[1:] == [[context], "x"]


@pytest.mark.slow
def test_what_is_left_of_the_runs_time_bounds_a_cell() -> None:
    sub_calls = calls()
    sub_calls.seconds_left = lambda: 0.2  # type: ignore[attr-defined]
    runner = ProcessRunner("c", sub_calls, cell_timeout=None)
    assert "CellTimeout" in runner.run("kept = 1\nimport time; time.sleep(60)").stderr
    assert runner.run("print(kept)").stdout == "1\n"
    runner.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    "stuck",
    ["import time; time.sleep(60)", "while True: pass", "import threading; threading.Event().wait()",
     "import re; re.match('(a+)+$', 'a' * 40 + 'b')", "import os; os.read(os.pipe()[0], 1)"],
)  # fmt: skip
def test_what_a_signal_interrupts_keeps_the_variables(sandbox: Make, stuck: str) -> None:
    runner = sandbox(cell_timeout=0.5)
    runner.run("kept = 1")
    result = runner.run(f"also = 2\n{stuck}")
    assert "CellTimeout: stopped after 0.5 s; variables set before that are kept" in result.stderr
    assert runner.run("print(kept, also)").stdout == "1 2\n"


@pytest.mark.slow
def test_what_nothing_interrupts_costs_the_worker_and_the_model_is_told_what(sandbox: Make) -> None:
    runner = sandbox(cell_timeout=0.5)
    runner.run("table, rows = {}, []")
    result = runner.run("import signal\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)\nwhile True: pass")
    assert "CellTimeout" in result.stderr
    assert "The variables are lost: table, rows." in result.stderr
    assert list(result.variables) == ["context"]
    assert runner.run("print(context, 'table' in globals())").stdout == "the context False\n"


@pytest.mark.slow
def test_waiting_for_calls_is_not_the_cells_own_time(sandbox: Make) -> None:
    runner = sandbox(script=lambda prompt: time.sleep(1.5) or prompt.upper(), cell_timeout=0.6)
    assert runner.run("print(llm_query('slow'))").stdout == "SLOW\n"


def test_a_worker_that_is_killed_from_outside_is_replaced(sandbox: Make) -> None:
    runner = sandbox()
    runner.run("x = 1")
    worker: Any = runner._worker
    children = _children(worker._popen.pid)
    os.kill(worker._popen.pid, signal.SIGKILL)
    _wait_for_the_end_of(children)
    result = runner.run("x")
    assert "WorkerDied" in result.stderr
    assert "lost: x" in result.stderr
    assert runner.run("print(context)").stdout == "the context\n"


@pytest.mark.slow
def test_a_batch_of_a_worker_that_is_gone_is_not_asked_to_its_end(sandbox: Make) -> None:
    asked: list[str] = []

    def script(prompt: str) -> str:
        asked.append(prompt)
        time.sleep(0.02)
        return prompt

    runner = sandbox(script=script)
    code = "import os, threading\nthreading.Timer(0.3, os._exit, [1]).start()\n"
    assert "WorkerDied" in runner.run(code + "llm_query_batched([str(i) for i in range(2_000)])").stderr
    count = -1
    while len(asked) != count:  # what was under way ends
        count = len(asked)
        time.sleep(0.3)
    assert count < 2_000
    assert runner.run("print(llm_query('again'))").stdout == "again\n"


def test_a_worker_ends_with_its_host_even_when_that_is_killed() -> None:
    code = (
        "import time\nfrom rlm import ScriptedLM\nfrom rlm.runners.process import ProcessRunner\n"
        "from rlm.calls.subcalls import SubCalls\nfrom rlm.calls.usage import Usage\n"
        "runner = ProcessRunner('c', SubCalls(ScriptedLM(str.upper), Usage()))\n"
        "print(runner._worker._popen.pid, flush=True)\n"
        "runner.run('import signal, time\\nwhile True:\\n  try: time.sleep(9)\\n  except BaseException: pass')"
    )
    host = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=Path(__file__).parents[4])
    assert host.stdout
    launcher = int(host.stdout.readline())
    children = _children(launcher)
    time.sleep(0.3)
    host.kill()
    host.communicate()
    _wait_for_the_end_of([launcher, *children])


def _children(pid: int) -> list[int]:
    """Of a launcher: its worker. Told by who names it as parent; the kernel's own list of children may be empty."""
    found = [int(place.name) for place in Path("/proc").iterdir() if place.name.isdigit() and _parent(place) == pid]
    assert found
    return found


def _parent(place: Path) -> int:
    try:
        return int((place / "stat").read_text().rsplit(")", 1)[1].split()[1])
    except OSError:
        return 0


def _wait_for_the_end_of(pids: list[int]) -> None:
    deadline = time.monotonic() + 60
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(map(runs, pids))


def test_closing_leaves_no_process_and_no_descriptor(sandbox: Make) -> None:
    sandbox().close()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(8):
        runner = sandbox()
        worker: Any = runner._worker
        runner.close()
        runner.close()
        assert worker._popen.returncode is not None
    assert len(os.listdir("/proc/self/fd")) < before + 8  # threads that other tests left open and close some, too


WHERE = """
import sys
from rlm import ScriptedLM
from rlm.runners.process import ProcessRunner
from rlm.calls.subcalls import SubCalls
from rlm.calls.usage import Usage
runner = ProcessRunner("c", SubCalls(ScriptedLM(str.upper), Usage()), mechanisms=sys.argv[1:])
print(runner.confinement, runner.run("import rlm; rlm.__file__").stdout)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanisms", "mode", "used"),
    [(["namespaces"], 0o755, "namespaces"), (["landlock"], 0o755, "landlock"), (["bubblewrap"], 0o755, "bubblewrap"),
     (["namespaces", "landlock"], 0o700, "landlock")],
)  # fmt: skip
def test_python_may_lie_below_tmp_and_be_read_by_root_alone(mechanisms: list[str], mode: int, used: str) -> None:
    if (used == "bubblewrap" and not bubblewrap.find()) or (mode == 0o700 and os.geteuid()):
        pytest.skip("bwrap is not installed, or an ordinary user reads its own files")
    shut = Path(tempfile.mkdtemp(dir="/tmp"))  # open to its owner alone
    shutil.copytree(Path(rlm.__file__).parent, shut / "rlm", ignore=shutil.ignore_patterns("__pycache__"))
    (shut / "rlm").chmod(mode)
    program = [sys.executable, "-c", WHERE, *mechanisms]
    environment = {"PYTHONPATH": str(shut), "PATH": os.environ["PATH"]}
    try:
        done = subprocess.run(program, env=environment, capture_output=True, cwd="/")
    finally:
        shutil.rmtree(shut)
    assert done.stdout.decode().split() == [used, repr(str(shut / "rlm" / "__init__.py"))], done.stderr.decode()


@pytest.fixture(scope="module")
def text() -> str:
    return "".join(f"Line {i} é needle{i % 997} and some words\n" for i in range(60_000))


@pytest.fixture(scope="module")
def stored(text: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monocontext]:
    place = str(tmp_path_factory.mktemp("served") / "context")
    publish([text], place, frame_bytes=65536)
    with Monocontext.open(place) as context:
        yield context


def test_what_is_read_in_the_worker_is_counted_on_the_host(sandbox: Make, stored: Monocontext) -> None:
    runner = sandbox(stored)
    used = stored.stats.hits + stored.stats.misses
    runner.run("context[500_000:500_010]")
    assert stored.stats.hits + stored.stats.misses > used
    assert runner.run("print(context.stats.gets)").stdout == f"{stored.stats.gets}\n"


def test_errors_of_reading_are_the_same_errors(sandbox: Make, text: str) -> None:
    publish([text], "memory://sandbox-errors", frame_bytes=65536)
    context = Monocontext.open("memory://sandbox-errors")
    runner = sandbox(context)
    runner.run("context[0:10]")
    context.close()
    result = runner.run("context[900_000:900_010]")
    assert "ContextClosed: memory://sandbox-errors is closed" in result.stderr


def test_a_worker_gets_its_texts_and_no_other(sandbox: Make, stored: Monocontext, text: str) -> None:
    view = stored.view(100_000, 300_000)
    runner = sandbox(view)
    assert runner.run("print(len(context), context[0:9], context[-9:] == str(context)[-9:])").stdout == (
        f"200000 {text[100_000:100_009]} True\n"
    )
    find = "import gc; gc.unfreeze()\nfrom rlm.runners.link import WorkerLink as L\n"
    find += "link = next(o for o in gc.get_objects() if type(o) is L)\n"
    for ask, reason in (
        ("link.call({'op': 'read', 'text': 1}, [b'{}'])", "an unknown message: 'read'"),
        ("link.call({'op': 'read', 'text': -1}, [b'{}'])", "an unknown message: 'read'"),
        ("link.call({'op': 'read', 'text': True}, [b'{}'])", "a request must be|unknown message"),
        ('link.call({"op": "read", "text": 0}, [b\'{"verb": "get", "key": "manifest.json"}\'])', "unknown verb 'get'"),
    ):
        with pytest.raises(ChannelAbuse, match=reason):
            runner.run(find + ask)


wasm = pytest.mark.skipif(bool(what_is_missing()), reason="no Pyodide: `make test-wasm`")
SEVERAL = """\
import re
print(type(context), context["logs"] is logs, isinstance(logs, str), context["code"][:12], limits)
FINAL((logs.count("needle77\\n"), context["code"].find("f777("), len(re.findall("f77.[(]", context["code"])),
       who(logs), who(context["code"]), who(context), who([logs]), llm_query(logs[:3]), context["code"].lines[2]))
"""


@pytest.fixture(scope="module")
def several() -> Iterator[tuple[Monocontext, Monocontext]]:
    publish("".join(f"def f{i}(): return {i}\n" for i in range(20_000)), "memory://several-code", frame_bytes=65536)
    publish("".join(f"a line {i} needle{i % 1000}\n" for i in range(60_000)), "memory://several-logs")
    with Monocontext.open("memory://several-code") as code, Monocontext.open("memory://several-logs") as logs:
        yield code, logs


@pytest.mark.parametrize("runner", ["local", "subprocess", pytest.param("wasm", marks=[pytest.mark.slow, wasm])])
def test_several_lazy_texts_in_one_question(runner: str, several: tuple[Monocontext, Monocontext]) -> None:
    code, logs = several
    named = {id(code): "code", id(logs): "logs"}
    tools: dict[str, Any] = {"logs": logs, "limits": {"most": [1, (2, 3)]}}
    tools["who"] = lambda value: named.get(id(value), type(value).__name__)
    lm = ScriptedLM(["```repl\nFINAL(context['logs'])\n```", f"```repl\n{SEVERAL}\n```"])
    model = RLM(lm=lm, sub_lm=ScriptedLM(str.upper), runner=runner, custom_tools=tools)
    done = model.completion("q", {"code": code, "logs": logs})
    assert done.answer == str((60, 17655, 10, "logs", "code", "dict", "list", "A L", "def f2(): return 2\n"))
    results = [line["code_blocks"][0]["result"] for line in done.trajectory[1:]]
    assert results[0]["stderr"].startswith("Answer refused: a whole stored text is not an answer")
    assert results[1]["stdout"] == ("<class 'dict'> True True def f0(): re {'most': [1, (2, 3)]}\n")
    assert done.io is not None
    assert done.io["hits"] > 0
    said = lm.calls[0][0]["content"] + lm.calls[0][-1]["content"]
    assert f"'code' is a Monocontext: text of {len(code):,} characters" in said
    assert f"- `logs`, a Monocontext: text of {len(logs):,} characters" in said
    assert "`text.grep(pattern)`" in said


def test_a_worker_that_gives_up_says_why() -> None:
    """As the last line on its stderr, of which a terminal obeys nothing."""
    program = "import sys; sys.stderr.write('first\\nno room \\x1b[31mleft\\n'); sys.exit(70)"
    process = Process([sys.executable, "-c", program])
    assert process.end(hung_up=True) == process.end() == "exit status 70: no room [31mleft"
