"""The ways to answer that are compared, each a function from a question to a `Run`."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.quality import same_words
from benchmarks.quality.questions import Question
from monocontext import Monocontext
from rlm import RLM, RLMError
from rlm.models.lm import CHARACTERS_PER_TOKEN, LM

ARMS = {
    "rlm": "the loop over a lazy text",
    "rlm-str": "the same loop, the text in memory",
    "rlm-no-search": "as rlm, and the prompt does not name context.search",
    "rlm-outline": "as rlm, and the opening message has the outline of the text",
    "rlm-told": "as rlm-str, and the model is told of the text what `rlm` tells it",
    "rlms": "the package rlms, in its own environment",
    "prompt": "as much of the text as fits, from its beginning, in one prompt",
    "search": "the best passages of context.search in one prompt",
}
"""By name."""
IN_MEMORY = ("rlm-str", "rlm-told", "rlms")
"""Arms that hold the text in memory."""
STR_BYTES = 200_000_000
"""The largest text that the arms with the text in memory take: each question copies it to its sandbox."""
PASSAGES = 20
SEARCHED_BYTES = 8 << 20
"""Of text that a search may look at, best frames first: a question of common words costs a second for each MB."""
_ASK = "Text:\n\n{text}\n\nAnswer from the text alone, as short as you can, or say: unknown.\n\n{query}"
_SHARE = 0.8
"""Of the window that a text may fill; the rest is for the question and the answer."""


@dataclass(frozen=True, slots=True)
class Run:
    """What came of one question on one arm."""

    answer: str | None
    reason: str
    turns: int = 1
    tokens: int = 0
    dollars: float | None = None
    """None where no price is known."""
    seconds: float = 0.0
    bytes_read: int | None = None
    """From storage, opening included; None where the text was in memory."""
    refused: int = 0
    """Cells that a limit of the text refused an operation (`ContextTooLarge`)."""
    identical: int = 0
    """Turns that repeated the one before."""
    transcript: list[dict[str, Any]] = field(default_factory=list)
    """Of each turn the reply and what its cells printed."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What all arms share."""

    lm: LM
    """The model that is asked."""
    make_rlm: Callable[..., RLM]
    """Of a model, the dollars that a question may cost, and other options of `RLM` by keyword."""
    context: Monocontext
    text: str | None
    """The same text in memory, where an arm takes it."""
    window_tokens: int
    rlms: tuple[str, str, str | None] | None
    """The Python of an environment with rlms, the model, the base URL."""


def missing(arm: str, size_bytes: int, *, has_rlms: bool) -> str:
    """Why an arm is left out at a size; empty where it is not."""
    if arm == "rlms" and not has_rlms:
        return "it needs --rlms-python, an environment with that package, and a model behind an endpoint"
    if arm in IN_MEMORY and size_bytes > STR_BYTES:
        return f"a text above {STR_BYTES:,} bytes is not copied to a sandbox for each question"
    return ""


def answer(arm: str, question: Question, setting: Setting, dollars: float | None) -> Run:
    """One question on one arm, for at most so many dollars; a failure of the model is a result."""
    began = time.monotonic()
    try:
        match arm:
            case "rlm":
                return _loop(question, setting.context, setting, setting.lm, dollars)
            case "rlm-no-search":
                unnamed = same_words.Reworded(setting.lm, same_words.leave_out("context.search("))
                return _loop(question, setting.context, setting, unnamed, dollars)
            case "rlm-outline":
                return _loop(question, setting.context, setting, setting.lm, dollars, outline=True)
            case "rlm-str":
                return _loop(question, setting.text, setting, setting.lm, dollars)
            case "rlm-told":
                told = same_words.tell(same_words.opening(setting.lm, question.query, setting.context))
                return _loop(question, setting.text, setting, same_words.Reworded(setting.lm, told), dollars)
            case "rlms":
                return _rlms(question, setting)
            case "prompt":
                size = int(_SHARE * setting.window_tokens * CHARACTERS_PER_TOKEN)
                return _one_prompt(question, lambda: setting.context.view(0, size), setting, dollars)
            case "search":
                return _one_prompt(question, lambda: _passages(question, setting), setting, dollars)
            case _:
                raise ValueError(f"no arm is called {arm!r}; there are {', '.join(ARMS)}")
    except RLMError as exc:
        return Run(None, f"failed: {type(exc).__name__}: {exc}"[:300], seconds=time.monotonic() - began)


def _loop(
    question: Question, context: object, setting: Setting, lm: LM, dollars: float | None, **options: object
) -> Run:
    with setting.make_rlm(lm, dollars, **options) as rlm:
        done = rlm.completion(question.query, context)
    lines = done.trajectory[1:]
    outputs = [
        [[block["result"]["stdout"], block["result"]["stderr"]] for block in line["code_blocks"]] for line in lines
    ]
    return Run(
        done.answer, done.reason, done.iterations, done.usage.tokens, done.cost, done.seconds,
        setting.context.stats.bytes_fetched if context is setting.context else None,
        sum("ContextTooLarge" in error for turn in outputs for _, error in turn),
        sum(1 for line in lines if line.get("repeats")),
        [{"reply": line["response"], "output": output} for line, output in zip(lines, outputs, strict=True)],
    )  # fmt: skip


def _one_prompt(question: Question, make_text: Callable[[], object], setting: Setting, dollars: float | None) -> Run:
    began = time.monotonic()
    prompt = _ASK.format(text=make_text(), query=question.query)
    with setting.make_rlm(setting.lm, dollars) as rlm, rlm.sub_calls() as calls:
        said = str(calls.llm_query(prompt))
        usage = calls.gate.usage
    read = setting.context.stats.bytes_fetched
    return Run(said, "answer", 1, usage.tokens, usage.dollars, time.monotonic() - began, read,
               transcript=[{"reply": said, "output": []}])  # fmt: skip


def _passages(question: Question, setting: Setting) -> str:
    room, kept = int(_SHARE * setting.window_tokens * CHARACTERS_PER_TOKEN), list[str]()
    for passage in setting.context.search(question.query, k=PASSAGES, max_bytes=SEARCHED_BYTES):
        room -= len(passage.text)
        if room < 0:
            break
        kept.append(str(passage.text))
    return "\n...\n".join(kept)


def _rlms(question: Question, setting: Setting) -> Run:
    assert setting.rlms is not None
    python, model, base_url = setting.rlms
    asked = {"query": question.query, "text": setting.text, "model": model, "base_url": base_url}
    began = time.monotonic()
    done = subprocess.run(
        [python, "-I", str(Path(__file__).with_name("rlms_client.py"))], input=json.dumps(asked), capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    seconds = time.monotonic() - began
    if done.returncode:
        said = (done.stderr.strip() or "nothing").splitlines()[-1]
        return Run(None, f"failed: {said}"[:300], seconds=seconds)
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Run(result["answer"], "answer", result["turns"], result["tokens"], None, seconds)
