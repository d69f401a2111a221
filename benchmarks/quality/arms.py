"""Answer a question in one of several ways, the arms. Each gives a `Run`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from benchmarks.quality.questions import Question
from monocontext import Monocontext
from rlm import RLM, RLMError, Usage
from rlm.calls.gateway import Gateway
from rlm.models.lm import CHARACTERS_PER_TOKEN

ARMS = {  # descriptions by name
    "rlm": "the loop over a lazy text",
    "rlm-str": "the same loop, the text in memory",
    "prompt": "as much of the text as fits, from its beginning, in one prompt",
    "search": "the best passages of context.search in one prompt",
}
IN_MEMORY = "rlm-str"
STR_BYTES = 200_000_000  # the largest text for that arm, which copies it to a sandbox for each question
PASSAGES = 20
SEARCHED_BYTES = 8 << 20  # the most for one search, best frames first: common words cost a second for each MB
_ASK = "Text:\n\n{text}\n\nAnswer from the text alone, as short as you can, or say: unknown.\n\n{query}"
_TEXT_SHARE = 0.8  # the share of the window for the text; the rest is for the question and the answer


@dataclass(frozen=True, slots=True)
class Run:
    """The result of one question on one arm."""

    answer: str | None
    reason: str
    turns: int = 1
    tokens: int = 0
    dollars: float | None = None  # `None` if the price is not known
    seconds: float = 0.0
    bytes_read: int | None = None  # bytes read from storage, opening included; `None` if the text was in memory
    transcript: list[dict[str, Any]] = field(default_factory=list)  # the reply and the output of each turn


@dataclass(frozen=True, slots=True)
class Setting:
    """The text, the models and the limits that all arms share."""

    make_rlm: Callable[[float | None], RLM]  # makes an `RLM` that may spend so many dollars; None for no limit
    context: Monocontext
    text: str | None  # the text in memory, if an arm needs it
    window_tokens: int

    @property
    def text_characters(self) -> int:
        """The number of characters of text that fit into a prompt."""
        return int(_TEXT_SHARE * self.window_tokens * CHARACTERS_PER_TOKEN)


def is_left_out(arm: str, size_bytes: int) -> bool:
    """Whether the text is too large for this arm."""
    return arm == IN_MEMORY and size_bytes > STR_BYTES


def answer(arm: str, question: Question, setting: Setting, dollars: float | None) -> Run:
    """Ask one question on one arm, for at most `dollars`. A failure of the model is a result, not an exception."""
    began = time.monotonic()
    context = setting.context
    try:
        match arm:
            case "rlm":
                return _loop(question, context, setting, dollars)
            case "rlm-str":
                return _loop(question, setting.text, setting, dollars)
            case "prompt":
                return _one_prompt(question, lambda: context.view(0, setting.text_characters), setting, dollars)
            case _:  # "search"
                return _one_prompt(question, lambda: _passages(question, setting), setting, dollars)
    except RLMError as exc:
        return Run(None, f"failed: {type(exc).__name__}: {exc}"[:300], seconds=time.monotonic() - began)


def _loop(question: Question, context: object, setting: Setting, dollars: float | None) -> Run:
    with setting.make_rlm(dollars) as rlm:
        done = rlm.completion(question.query, context)
    read = setting.context.stats.bytes_fetched if context is setting.context else None
    transcript = []
    for line in done.trajectory[1:]:
        output = [[block["result"]["stdout"], block["result"]["stderr"]] for block in line["code_blocks"]]
        transcript.append({"reply": line["response"], "output": output})
    tokens = done.usage.tokens
    return Run(done.answer, done.reason, done.iterations, tokens, done.cost, done.seconds, read, transcript)


def _one_prompt(question: Question, make_text: Callable[[], object], setting: Setting, dollars: float | None) -> Run:
    began = time.monotonic()
    prompt = _ASK.format(text=make_text(), query=question.query)
    with setting.make_rlm(dollars) as rlm:
        usage = Usage()
        reply = Gateway(usage, rlm.budget).ask(rlm.lms[-1], [{"role": "user", "content": prompt}]).text
    read = setting.context.stats.bytes_fetched
    transcript = [{"reply": reply, "output": []}]
    return Run(reply, "answer", 1, usage.tokens, usage.dollars, time.monotonic() - began, read, transcript)


def _passages(question: Question, setting: Setting) -> str:
    left_characters, kept = setting.text_characters, list[str]()
    for passage in setting.context.search(question.query, k=PASSAGES, max_bytes=SEARCHED_BYTES):
        left_characters -= len(passage.text)
        if left_characters < 0:
            break
        kept.append(str(passage.text))
    return "\n...\n".join(kept)
