"""A scripted model that writes sensible cells and reads what it is shown: runs the benchmark end to end without a key.

As root it writes the cells of the question. Asked with one prompt it answers if all of the evidence is in the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.quality.families import CLASSIFY, MEANINGS
from benchmarks.quality.questions import Question
from rlm import ScriptedLM
from rlm.prompts.examples import QUESTION_OPENS, conversation

UNKNOWN = "unknown"


def make_oracle(questions: Sequence[Question]) -> ScriptedLM:
    """A model that knows these questions."""
    by_query = {question.query: question for question in questions}

    def reply(messages: Any) -> str:
        if isinstance(messages, str):
            return _read(messages, questions)
        said = conversation(messages)
        query = said[0]["content"].removeprefix(QUESTION_OPENS)
        (question,) = [found for text, found in by_query.items() if query.startswith(f'{text}"')]
        turn = sum(message["role"] == "assistant" for message in said)
        return f"```repl\n{question.cells[min(turn, len(question.cells) - 1)]}\n```"

    return ScriptedLM(reply, model="oracle")


def _read(prompt: str, questions: Sequence[Question]) -> str:
    if prompt.startswith(CLASSIFY):
        message = prompt.removeprefix(CLASSIFY)
        return next((kind for kind, said in MEANINGS.items() if message in said), UNKNOWN)
    for question in questions:
        if prompt.endswith(question.query):
            found = all(line in prompt for each in question.evidence for line in each.text.splitlines())
            return question.answer if found else UNKNOWN
    return UNKNOWN
