"""Models of DSPy and of rlm serve each other; `sub_lm`, async and batch of `dspy.RLM` over a large text."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import Callable
from typing import Any

import dspy
from contract import ANSWER, QUESTION, served
from dspy import lm15
from dspy.primitives.local_interpreter import LocalInterpreter

from monocontext.adapters import dspy as lazy
from rlm import RLM, ScriptedLM
from rlm.errors import LLMError, RateLimited
from rlm.models.dspy import DSPyEngine, DSPyLM

warnings.filterwarnings("error", message=".*DSPy 3.5.*")
FIND = "at = context.find('zebra', 1000)\nfound = context[at:at + 60].split('password is ')[1].split()[0]\n"


def reply(code: str) -> str:
    return f"[[ ## reasoning ## ]]\nlook\n\n[[ ## code ## ]]\n```python\n{code}```\n\n[[ ## completed ## ]]"


def made(model: Any) -> Any:
    """A model of rlm, or a script, as one of DSPy."""
    engine = DSPyEngine(model)
    return dspy.LM("rlm/scripted", engine=engine, async_engine=engine.asynchronous, cache=False)


def run_sub_lm_async_and_batch() -> None:
    """`llm_query` goes to `sub_lm`; `acall` and threads give the same answer."""
    asked: list[str] = []
    lock = threading.Lock()

    def answer(prompt: Any) -> str:
        with lock:
            asked.append(str(prompt))
        return "a sub-answer"

    code = FIND + "print(llm_query('about ' + found))\nSUBMIT(answer=found)\n"
    root = made(ScriptedLM(lambda messages: reply(code)))
    with served() as text, dspy.context(lm=root):
        rlm = dspy.RLM(
            "context, question -> answer", tools=lazy.wrap(text.context).tools(),
            sub_lm=made(ScriptedLM(answer)), interpreter_factory=LocalInterpreter,
        )  # fmt: skip
        given = {"context": lazy.wrap(text.context), "question": QUESTION}
        assert rlm(**given).answer == ANSWER
        assert asyncio.run(rlm.acall(**given)).answer == ANSWER
        examples = [dspy.Example(**given).with_inputs("context", "question") for _ in range(4)]
        assert [done.answer for done in rlm.batch(examples, num_threads=2)] == [ANSWER] * 4
        assert len(asked) == 6
        assert all(ANSWER in prompt for prompt in asked), asked[0]
        assert text.sent() < 600_000, f"{text.sent():,} characters were read"


def run_rlm_with_a_model_of_dspy() -> None:
    """Our loop, asked through `dspy.LM`; usage arrives, and a refusal is an error of ours."""
    tokens: list[int] = []

    class Engine:
        def complete(self, request: Any) -> Any:
            tokens.append(len(request.messages))
            words = f"```repl\n{FIND}FINAL(found)\n```"
            return lm15.Response(None, request.model, lm15.Message.assistant(words), "stop", lm15.Usage(100, 20, 120))

    class Refusing:
        def complete(self, request: Any) -> Any:
            raise lm15.RateLimitError("slow down", retry_after=0.01)

    with served() as text:
        lm = DSPyLM(dspy.LM("test/engine", engine=Engine(), cache=False))
        done = RLM(lm=lm, runner="local").completion(QUESTION, text.context)
        assert done.answer == ANSWER
        assert (done.usage.input_tokens, done.usage.output_tokens) == (100, 20)
        assert list(done.usage.models) == ["test/engine"], done.usage.models
    refused = DSPyLM(dspy.LM("test/engine", engine=Refusing(), cache=False, num_retries=0))
    check_error(RateLimited, "slow down", lambda: refused.complete([{"role": "user", "content": "hi"}]))


def run_dspy_with_a_model_of_rlm() -> None:
    """`dspy.Predict` over a model of ours: usage and errors arrive."""
    lm = made(ScriptedLM(["[[ ## answer ## ]]\nblue\n\n[[ ## completed ## ]]", LLMError("no such model")]))
    with dspy.context(lm=lm, track_usage=True):
        told = dspy.Predict("question -> answer")(question="Which colour?")
        assert told.answer == "blue"
        assert told.get_lm_usage()["rlm/scripted"]["completion_tokens"] > 5, told.get_lm_usage()
        check_error(dspy.LMError, "no such model", lambda: dspy.Predict("question -> answer")(question="And now?"))


def check_error(kind: type[Exception], words: str, call: Callable[[], object]) -> None:
    try:
        call()
    except kind as exc:
        found = str(exc)
    else:
        found = "no error"
    assert words in found, found


if __name__ == "__main__":
    run_sub_lm_async_and_batch()
    run_rlm_with_a_model_of_dspy()
    run_dspy_with_a_model_of_rlm()
    print("dspy: models both ways")
