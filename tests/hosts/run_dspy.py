"""`dspy.RLM` with `LocalInterpreter`, or with Deno where `dspy` finds it: `run_dspy.py deno`."""

from __future__ import annotations

import sys
from typing import Any

import dspy
from contract import ANSWER, QUESTION, Turns, measure, measure_documents, served, tell
from dspy.primitives.local_interpreter import LocalInterpreter

from monocontext.adapters import dspy as lazy

DENO = sys.argv[1:] == ["deno"]


def cell(code: str) -> str:
    """In Pyodide, which has 32 bits, `len` of so much is an `OverflowError`; every `str` is short enough there."""
    return code.replace("len(context)", "getattr(context, 'n', 0)") if DENO else code


def final(expression: str) -> str:
    return f"SUBMIT(answer={expression})\n"


class Scripted(dspy.BaseLM):  # type: ignore[misc]
    def __init__(self, model: Turns) -> None:
        super().__init__("scripted")
        self._turns = model

    def __call__(self, prompt: Any = None, messages: Any = None, **_: Any) -> list[str]:
        return [
            f"[[ ## reasoning ## ]]\nlook\n\n[[ ## code ## ]]\n```python\n{self._turns(messages)}```\n\n"
            "[[ ## completed ## ]]"
        ]


def run(context: Any, model: Turns) -> str:
    options = {} if DENO else {"interpreter_factory": LocalInterpreter}
    tools = [] if isinstance(context, str) else context.tools()
    rlm = dspy.RLM("context, question -> answer", tools=tools, **options)
    with dspy.context(lm=Scripted(model)):
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
