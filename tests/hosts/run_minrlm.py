"""`minrlm`, its local REPL: the object by reference, under the name `input_0`."""

from __future__ import annotations

from typing import Any

from contract import QUESTION, Turns, lines_for, measure, measure_documents, tell
from openai_server import answering


def cell(code: str) -> str:
    return f"```python\n{code}```"


def final(expression: str) -> str:
    return cell(f"FINAL({expression})\n")


NAME = "input_0"
LazyRLM = lines_for("minrlm")["LazyRLM"]


def logged(folder: str) -> dict[str, Any]:
    """Options of `run` that write the host's log to a folder."""
    return {"log_dir": folder}


def run(context: Any, model: Turns, **options: Any) -> str:
    with answering(model) as url:
        lm = LazyRLM(model="scripted", base_url=url, api_key="none", async_batch=False, **options)
        return lm.completion(QUESTION, context).response


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final, name=NAME) < 4_000_000
    tell(measure("minrlm", run, cell=cell, final=final, name="input_0"))
