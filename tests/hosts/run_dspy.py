"""`dspy.RLM` with `LocalInterpreter`, or in its own sandbox of Deno and Pyodide: `run_dspy.py deno`."""

from __future__ import annotations

import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import dspy
from contract import ANSWER, QUESTION, Turns, measure, measure_documents, served, tell
from dspy import lm15
from dspy.primitives.local_interpreter import LocalInterpreter
from dspy.primitives.python_interpreter import PythonInterpreter

from monocontext.adapters import dspy as lazy

warnings.filterwarnings("error", message=".*DSPy 3.5.*")
DENO = sys.argv[1:] == ["deno"]


def cell(code: str) -> str:
    """In Pyodide, which has 32 bits, `len` of so much is an `OverflowError`; every `str` is short enough there."""
    return code.replace("len(context)", "getattr(context, 'n', 0)") if DENO else code


def final(expression: str) -> str:
    return f"SUBMIT(answer={expression})\n"


class Script:
    """An engine of DSPy that replies from a list."""

    def __init__(self, model: Turns) -> None:
        self._turns = model

    def complete(self, request: lm15.Request) -> lm15.Response:
        code = self._turns([{"role": each.role, "content": each.text} for each in request.messages])
        said = f"[[ ## reasoning ## ]]\nlook\n\n[[ ## code ## ]]\n```python\n{code}```\n\n[[ ## completed ## ]]"
        return lm15.Response(None, request.model, lm15.Message.assistant(said), "stop", lm15.Usage(1, 1, 2))


READ_LINES = """
export async function* readLines(reader) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const chunk of reader.readable) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split("\\n");
    rest = lines.pop();
    yield* lines;
  }
}
"""
"""The one function that dspy's runner takes from deno.land, a host that cannot be reached everywhere."""


def deno_interpreter() -> PythonInterpreter:
    """dspy's own, with the permissions that it gives Deno, and Pyodide from npm."""
    folder = Path(tempfile.mkdtemp())
    (folder / "io.js").write_text(READ_LINES)
    imports = {"https://deno.land/std@0.186.0/io/mod.ts": str(folder / "io.js")}
    (folder / "map.json").write_text(json.dumps({"imports": imports}))
    interpreter = PythonInterpreter()
    interpreter.deno_command.insert(2, f"--import-map={folder / 'map.json'}")
    return interpreter


def run(context: Any, model: Turns) -> str:
    factory = deno_interpreter if DENO else LocalInterpreter
    tools = [] if isinstance(context, str) else context.tools()
    rlm = dspy.RLM("context, question -> answer", tools=tools, interpreter_factory=factory)
    with dspy.context(lm=dspy.LM("scripted/turns", engine=Script(model), cache=False)):
        return str(rlm(context=context, question=QUESTION).answer)


GIVEN = lazy.wrap


def run_as_a_str() -> None:
    """Methods that make large results, and `re`, on 4 GiB."""
    ask = (
        "import re\n"
        "words = context.lower().split('\\n')[0].split()\n"
        "hits = [m.span() for m, _ in zip(re.finditer('quic.', context), range(3))]\n"
        "print(words[:2], hits, context.replace('the', 'THE')[:3], context.upper().startswith('THE'))\n"
    )
    with served() as text:
        model = Turns([ask, final(repr(ANSWER))])
        assert run(lazy.wrap(text.context), model) == ANSWER
        assert "['the', 'quick'] [(4, 9), " in str(model.asked[1]), str(model.asked[1])[-900:]
        assert "THE True" in str(model.asked[1]), str(model.asked[1])[-900:]


if __name__ == "__main__":
    if not DENO:
        run_as_a_str()
        assert measure_documents(run, cell=cell, final=final, given=lazy.wrap) < 4_000_000
    tell(measure("dspy, Deno" if DENO else "dspy", run, cell=cell, final=final, given=GIVEN))
