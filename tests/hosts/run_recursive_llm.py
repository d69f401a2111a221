"""`recursive-llm`: a process of its own, which opens the text again."""

from __future__ import annotations

from typing import Any

from contract import QUESTION, Turns, lines_for, measure, measure_documents, tell


def cell(code: str) -> str:
    return f"```python\n{code}```"


def final(expression: str) -> str:
    return cell(f'answer["content"] = {expression}\nanswer["ready"] = True\n')


def run(context: Any, model: Turns) -> str:
    async def complete(*, model: str, messages: Any, **_: Any) -> Any:
        return {"choices": [{"message": {"content": turns(messages)}}]}

    turns = model
    lm = lines_for("recursive-llm", context)["make_rlm"]("scripted", completion_handler=complete)
    return lm.complete(QUESTION, context=context)


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final) < 4_000_000
    tell(measure("recursive-llm", run, cell=cell, final=final))
