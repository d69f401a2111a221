"""Cells that damage their interpreter: what can be repaired is, else the process is replaced, and the model told."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rlm_replies import calls

from rlm.runners.process import ProcessRunner

CHECK = "import json, re, collections\nprint(len(context), json.dumps({'a': 1}), re.sub('a', 'b', 'a'), isinstance(3, int))\nlen('abc')"
REPAIRED = [
    "__builtins__['print'] = None", "__builtins__.clear()", "del __builtins__['len']", "__builtins__['__import__'] = None",
    "import builtins; builtins.print = None", "import builtins; del builtins.len", "import builtins; builtins.isinstance = lambda *a: False",
    "import sys; sys.stdout = sys.stderr = None", "import sys, io; sys.stdout = io.StringIO()", "import os; os.close(1); os.close(2)",
    "import sys\ntry: sys.setrecursionlimit(20)\nexcept RecursionError: sys.setrecursionlimit(40)", "import gc; gc.disable()",
    "import signal; signal.signal(signal.SIGALRM, signal.SIG_IGN)", "import signal; signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM])",
    "import sys; sys.path.clear(); sys.meta_path.clear(); sys.path_hooks.clear()", "import sys; sys.settrace(lambda *a: 1/0)", "raise SystemExit",
]  # fmt: skip
REPLACED = [
    "import sys; sys.modules.clear()", "import sys\nfor name in list(sys.modules):\n    if name != 'sys': del sys.modules[name]",
    "import sys; sys.modules['json'] = None", "import builtins; vars(builtins).clear()", "import ast; ast.parse = None", "import warnings; warnings.catch_warnings = None",
    "import threading; threading.Lock = None", "import time; time.perf_counter = None", "import os; os.closerange(0, 100)", "import os; os._exit(3)",
]  # fmt: skip


@pytest.fixture(scope="module")
def sandbox() -> Iterator[ProcessRunner]:
    runner = ProcessRunner("the context", calls())
    yield runner
    runner.close()


def _works(sandbox: ProcessRunner) -> None:
    after = sandbox.run(CHECK)
    assert (after.stdout, after.stderr) == ('11 {"a": 1} b True\n3\n', "")
    assert sandbox.run("FINAL('done')").final_answer == "done"


@pytest.mark.parametrize("cell", REPAIRED)
def test_what_can_be_repaired_keeps_the_variables(sandbox: ProcessRunner, cell: str) -> None:
    sandbox.run("kept = 5")
    sandbox.run(cell)
    _works(sandbox)
    assert sandbox.run("kept").stdout == "5\n"


@pytest.mark.slow
@pytest.mark.parametrize("cell", REPLACED)
def test_what_cannot_is_replaced_and_the_lost_names_are_told(sandbox: ProcessRunner, cell: str) -> None:
    sandbox.run("lost_one = 5\nlost_two = 6")
    result = sandbox.run(f"print('before')\n{cell}")
    assert "lost_one, lost_two" in result.stderr
    assert "are available again in a new process" in result.stderr
    assert list(result.variables) == ["context"]
    _works(sandbox)
    assert "NameError" in sandbox.run("lost_one").stderr


@pytest.mark.parametrize("error", ["SystemExit", "KeyboardInterrupt", "GeneratorExit", "ValueError"])
@pytest.mark.parametrize("value", ["A()", "[A()]", "{1: A()}"])
def test_a_repr_that_raises_spoils_no_later_cell(sandbox: ProcessRunner, error: str, value: str) -> None:
    made = sandbox.run(f"class A:\n    def __repr__(self): raise {error}\nbad = {value}\ngood = 1\nglobals()[5] = 6")
    assert made.stderr == ""
    assert made.variables["good"] == "1"
    assert "bad" in made.variables
    _works(sandbox)
    assert sandbox.run("sorted(SHOW_VARS())[-2:]").stderr == ""
    sandbox.run("del bad")
