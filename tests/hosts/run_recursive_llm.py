"""`recursive-llm`: a process of its own, which opens the text again."""

from __future__ import annotations

from typing import Any

from contract import QUESTION, Turns, measure, measure_documents, tell
from rlm import RLM

from monocontext.adapters import recursive_llm


def cell(code: str) -> str:
    return f"```python\n{code}```"


def final(expression: str) -> str:
    return cell(f'answer["content"] = {expression}\nanswer["ready"] = True\n')


def run(context: Any, model: Turns) -> str:
    async def complete(*, model: str, messages: Any, **_: Any) -> Any:
        return {"choices": [{"message": {"content": turns(messages)}}]}

    turns = model
    lm = RLM("scripted", completion_handler=complete, **recursive_llm.ARGUMENTS)
    return lm.complete(QUESTION, context=context)


GIVEN = recursive_llm.prepared


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final, given=GIVEN, text="str(d)") < 4_000_000
    tell(measure("recursive-llm", run, cell=cell, final=final, given=GIVEN))
