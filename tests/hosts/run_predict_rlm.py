"""`predict-rlm` with its local Python backend, which opens the text from a handle."""

from __future__ import annotations

import json
from typing import Any

import dspy
from contract import QUESTION, Turns, lines_for, measure, measure_documents, tell
from openai_server import answering
from predict_rlm import DirectPythonBackend, PredictRLM


def cell(code: str) -> str:
    """The input is a handle, opened once; a host's own start has a plain `str` there."""
    return (
        "if isinstance(context, str):\n    text = context\n"
        "else:\n    import base64, pickle\n    text = pickle.loads(base64.b64decode(context['pickle']))\n"
    ) + code


def final(expression: str) -> str:
    return f"SUBMIT(answer={expression})\n"


def run(given: Any, model: Turns) -> str:
    context, skills = given
    kind = "dict" if skills else "str"
    with answering(lambda messages: json.dumps({"plan": "look", "reasoning": "look", "code": model(messages)})) as url:
        lm = dspy.LM("openai/scripted", api_base=url, api_key="none", cache=False)
        rlm = PredictRLM(
            f"context: {kind}, question: str -> answer: str",
            lm=lm,
            sub_lm=lm,
            skills=skills,
            interpreter=DirectPythonBackend(),
            verbose=False,
        )
        return str(rlm(context=context, question=QUESTION).answer)


def given(context: Any) -> Any:
    names = lines_for("predict-rlm", context)
    return names["handle"], [names["skill"]]


if __name__ == "__main__":
    assert measure_documents(run, cell=cell, final=final, given=given, name="text") < 4_000_000
    tell(
        measure(
            "predict-rlm",
            run,
            bare=lambda text, model: run((text, []), model),
            name="text",
            cell=cell,
            final=final,
            given=given,
        )
    )
