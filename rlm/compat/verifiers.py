"""Train and evaluate models on questions about one lazy text, as an environment of the library `verifiers` (0.4).

An environment is a module that names a taskset and a harness. Yours is three lines, say `my_questions.py`:

    from rlm.compat.verifiers import Questions, RLMHarness

    __all__ = ["Questions", "RLMHarness"]

Each rollout is a run of `RLM` in this process, and its code runs in the confined process of its runner. All rollouts
share one open context, with one cache. Every call of the root and of sub-calls goes through the endpoint of
`verifiers`, so the trace holds it. `verifiers` is not a dependency of ours: install it separately.
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
    """A question, which is the prompt, its answer, and the address of the text that it is about."""

    answer: str
    context: str


class QuestionTask(vf.Task[QuestionData]):  # type: ignore[misc]
    """One question. Its reward is 1 for the answer, else 0; case and white space do not count."""

    @vf.reward  # type: ignore[untyped-decorator]
    async def is_right(self, task: QuestionData, trace: vf.Trace) -> float:
        return float(_normalise(trace.info.get("answer", "")) == _normalise(task.answer))


class QuestionsConfig(vf.TasksetConfig):  # type: ignore[misc]
    """The place of the questions, and their context."""

    questions: Path
    """A file of JSON lines: `{"question": "...", "answer": "...", "id": "..."}`; the id may be left out."""
    context: str
    """The address of a published text, as `Monocontext.open` takes it."""


class Questions(vf.Taskset[QuestionTask, QuestionsConfig]):  # type: ignore[misc]
    """The questions of a file, one task each."""

    def load(self) -> Iterator[QuestionTask]:
        """Raises ValueError, which names the line that is no question with an answer."""
        for number, line in enumerate(self.config.questions.read_text("utf-8").splitlines(), 1):
            if line.strip():
                try:
                    row = json.loads(line)
                    about = {"prompt": row["question"], "answer": row["answer"], "id": row.get("id")}
                    data = QuestionData(**about, context=self.config.context)
                except (ValueError, TypeError, KeyError, AttributeError) as exc:
                    raise ValueError(f"{self.config.questions}, line {number}: {exc!r}") from exc
                yield QuestionTask(data, self.config.task)


class RLMHarnessConfig(vf.HarnessConfig):  # type: ignore[misc]
    """How runs go."""

    options: Mapping[str, Any] = {}
    """Keywords of `RLM` but its models: `{"max_iterations": 8}`."""


class RLMHarness(vf.Harness[RLMHarnessConfig]):  # type: ignore[misc]
    """A run of `RLM` for each rollout. `trace.info["answer"]` is its answer, and the metrics say how it went."""

    EXECUTES_CODE = False  # not in the runtime of verifiers: in the confined process of our own runner
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
        """Answer the question: 1 GET for the first rollout, to open the text, then what its code looks at. Cancelled,
        it ends with the cell that it is in. Raises LLMError, and what `Monocontext.open` raises."""
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
    """The context at an address, opened once in this process: all rollouts read through one cache."""
    with _opening:
        return _open(address)


@cache
def _open(address: str) -> Monocontext:
    return Monocontext.open(address)


def _normalise(answer: str) -> str:
    return " ".join(answer.casefold().split())
