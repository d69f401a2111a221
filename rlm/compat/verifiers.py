"""Offer an environment of `verifiers` (0.4), to train and evaluate models on questions about one lazy text.

An environment is a module that exports a taskset and a harness, for example `my_questions.py`:

    from rlm.compat.verifiers import Questions, RLMHarness

    __all__ = ["Questions", "RLMHarness"]

Each rollout is a run of `RLM` in this process, whose code runs in the confined process of its runner. All rollouts
share one open context with its cache. All model calls go through the endpoint of `verifiers`, so the trace holds them.
`verifiers` is not a dependency: install it separately.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import verifiers.v1 as vf

from monocontext import Monocontext
from rlm.models.openai import OpenAILM
from rlm.rlm import RLM

__all__ = ["Questions", "QuestionsConfig", "RLMHarness", "RLMHarnessConfig"]

_opening = threading.Lock()


class QuestionData(vf.TaskData):  # type: ignore[misc]
    """A question (the prompt), its answer, and the URL of its context."""

    answer: str
    context: str


class QuestionTask(vf.Task[QuestionData]):  # type: ignore[misc]
    """One question. The reward is 1 for the right answer, else 0. Case and white space do not matter."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def is_right(self, task: QuestionData, trace: vf.Trace) -> float:
        return float(_normalise(trace.info.get("answer", "")) == _normalise(task.answer))


class QuestionsConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The file of the questions, and their context."""

    questions: Path
    """A file of JSON lines: `{"question": "...", "answer": "...", "id": "..."}`. The id is optional."""
    context: str
    """The URL of a context, as `Monocontext.open` takes it."""


class Questions(vf.Taskset[QuestionTask, QuestionsConfig]):  # type: ignore[misc]
    """The questions of a file, one task each."""

    def load(self) -> Iterator[QuestionTask]:
        """Load the questions. Raises ValueError with the number of the first invalid line."""
        for number, line in enumerate(self.config.questions.read_text("utf-8").splitlines(), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                    about = {"prompt": row["question"], "answer": row["answer"], "id": row.get("id")}
                    data = QuestionData(**about, context=self.config.context)
                except (ValueError, TypeError, KeyError, AttributeError) as exc:
                    raise ValueError(
                        f"{self.config.questions}, line {number}: each line must be a JSON object with 'question' and "
                        f"'answer': {exc!r}"
                    ) from exc
                yield QuestionTask(data, self.config.task)


class RLMHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """The options of runs."""

    options: Mapping[str, Any] = {}
    """Keywords of `RLM` except the models, such as `{"max_iterations": 8}`."""


class RLMHarness(vf.Harness[RLMHarnessConfig]):  # type: ignore[misc]
    """Runs `RLM` for each rollout. `trace.info["answer"]` is the answer; metrics are turns and bytes read."""

    EXECUTES_CODE = False  # our runner executes it, not the runtime of verifiers
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: vf.ModelContext,
        trace: vf.Trace,
        runtime: vf.Runtime,
        endpoint: str,
        secret: str,
        mcp_urls: Mapping[str, str],
        data: QuestionData,
    ) -> vf.ProgramResult:
        """Answer the question (1 GET to open the text in the first rollout, and the reads of the code).

        A cancelled run ends after its current cell. Raises LLMError, and the errors of `Monocontext.open`.
        """
        _, question = self.resolve_text_prompt(data)
        context = await asyncio.to_thread(open_shared, data.context)
        lm = OpenAILM(ctx.model, base_url=endpoint, api_key=secret)
        try:
            with RLM(lm=lm, **self.config.options) as rlm:
                found = await rlm.acompletion(question or "", context)
        finally:
            lm.close()
        trace.info |= {"answer": found.answer, "reason": found.reason}
        trace.record_metrics({"turns": found.iterations, "bytes_read": (found.io or {}).get("bytes", 0)})
        return vf.ProgramResult(exit_code=0, stdout=found.answer, stderr="")


def open_shared(address: str) -> Monocontext:
    """The context at a URL, opened once in this process, so that all rollouts share its cache."""
    with _opening:
        return _open(address)


@cache
def _open(address: str) -> Monocontext:
    return Monocontext.open(address)


def _normalise(answer: str) -> str:
    return " ".join(answer.casefold().split())
