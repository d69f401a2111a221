"""Find the answer in the words of a reply: in any turn, in the reply to the last call, or when no call is left."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rlm.errors import AnswerRefused
from rlm.models.lm import Message
from rlm.prompts import faults
from rlm.prompts import messages as prompts
from rlm.prompts.replies import ParsedReply, parse_reply
from rlm.prompts.system import conversation
from rlm.runners.answers import check_written_answer
from rlm.runners.runner import Runner
from rlm.runners.syntax import assigned_names, call_of, compiles, gives_answer
from rlm.runners.text_final import TextFinal
from rlm.trajectory.step import Step

_NO_ANSWER = (faults.TAKEN_BACK, faults.TO_COME)  # the model itself says that it gives none
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\w*[ \t]*$", re.MULTILINE)
_BEFORE_ANSWER = re.compile(r"[ \t]+(?=(?:FINAL|FINAL_VAR|SUBMIT)\([^\n]*\)[*_`. \t]*$)", re.MULTILINE)
"""The space before an answer that ends its line."""


@dataclass(frozen=True, slots=True)
class WrittenAnswers:
    """Finds answers that a reply gives in words. `runner` has the variables that they may name."""

    runner: Runner
    tools: Collection[str]  # names that the caller gave to the code

    def read(self, final: TextFinal, messages: Sequence[Message], is_alone: bool) -> tuple[str | None, str | None]:
        """The answer that `final` gives in words, or that of the variable that it names; else a notice to the model.
        `messages`: the conversation before the reply. `is_alone`: nothing beside it may change the variable."""
        replies = (message["content"] for message in messages if message["role"] == "assistant")
        known = {*self.runner.run("").variables, *assigned_names(replies), *self.tools, "context", "answer"}
        outputs = (message["content"] for message in conversation(messages)[1:] if message["role"] == "user")
        seen = "\n".join(prompts.without_turn(text).partition("Traceback (most recent")[0] for text in outputs)
        if fault := faults.explain_final(final, known, is_alone, seen):
            return None, f"Answer refused: {fault}"
        if (name := final.variable) and (final.is_name or name in known):
            looked_up = self.runner.run(f"FINAL({name}) if {name!r} in globals() else FINAL_VAR({name!r})")
            return looked_up.final_answer, None if looked_up.final_answer else looked_up.stderr.strip()
        try:
            check_written_answer(final.text)
            return final.text, None
        except AnswerRefused as exc:
            return None, f"Answer refused: {exc}"

    def find_forced(self, parsed: ParsedReply, step: Step, has_raised: bool) -> str | None:
        """The answer in the reply to the last call, which demands one; else its words. `has_raised`: its code did."""
        if parsed.fault in _NO_ANSWER:
            return parsed.own_text.strip()
        for reading in _readings(parsed, step.reply.thinking):
            final = reading.final
            if final is None:
                continue
            is_alone = not has_raised and final.stands_alone(reading.own_text, step.reply.thinking)
            answer, _ = self.read(final, step.prompt, is_alone)
            if answer is None and is_alone and not parsed.fault:
                answer = self._evaluate(final)
            answer = answer or _words_beside(final, reading.own_text)
            if answer:
                return answer
        return _answer_words(parsed) or None

    def find_partial(self, messages: Sequence[Message], newest: ParsedReply) -> str:
        """The best answer when no call is left: the draft, else the last words of the model; never an output."""
        draft = self.runner.run(prompts.GIVE_DRAFT_CODE).final_answer
        if draft:
            return draft
        replies = [message["content"] for message in conversation(messages) if message["role"] == "assistant"]
        for reply in (newest, *map(parse_reply, reversed(replies))):
            words = _answer_words(reply)
            if words:
                return words
        return ""

    def _evaluate(self, final: TextFinal) -> str | None:
        """The value of an answer in words that `read` refuses as code, since no turn is left to send it as code. "The
        count is {count}" counts as an f-string, also where it is `{count}` alone, which Python reads as a set."""
        call = call_of(final.text)
        value = call.args[0] if call and call.args else None
        is_one_name = isinstance(value, ast.Set) and len(value.elts) == 1
        if (value is None or is_one_name) and faults.FIELD.search(final.text):
            return self.runner.run(f"FINAL(f{final.text!r})").final_answer
        return self.runner.run(f"FINAL({final.text})").final_answer if final.call else None


def answers_by_code(parsed: ParsedReply) -> bool:
    """Whether the code of the reply to the last call is to run: it gives an answer, or has one beside it."""
    if parsed.fault in _NO_ANSWER or not parsed.blocks:
        return False
    return parse_reply(parsed.words).final is not None or any(gives_answer(block.code) for block in parsed.blocks)


def _readings(parsed: ParsedReply, thinking: str) -> list[ParsedReply]:
    """The ways to read the reply to the last call, strictest first, since a loose one may take code for words:

    - the reply as in any turn
    - its words, without the code beside them
    - its blocks that are no Python, and so cannot have run
    - if it has no block, its text without fences, provided that this only announces an answer
    """
    beside = parse_reply(parsed.words)
    broken = parse_reply("\n".join(block.code for block in parsed.blocks if not compiles(block.code)))
    readings = [parsed, beside, broken]
    if not parsed.blocks:
        unfenced = parse_reply(_BEFORE_ANSWER.sub("\n", _FENCE_LINE.sub("", parsed.own_text)))
        if unfenced.final and unfenced.final.stands_alone(unfenced.own_text, thinking):
            readings.append(unfenced)
    return readings


def _words_beside(final: TextFinal, reply: str) -> str:
    """The words of a reply around an answer that does not count; empty where they are code, marks, or announce it."""
    rest = (reply[: final.span[0]] + reply[final.span[1] :]).strip()
    around = parse_reply(rest)
    is_other = around.blocks or around.final or around.fault or rest.endswith(":") or "```" in rest
    return "" if is_other or not re.search(r"[^\W_]", re.sub(r"<[^<>\n]*>", "", rest)) else rest


def _answer_words(reply: ParsedReply) -> str:
    """The words of a reply outside its code, or sentences that were fenced as code; empty for a refused answer."""
    fenced = [block.code for block in reply.blocks if not (re.search(r"[=(\[]", block.code) or compiles(block.code))]
    words = "\n".join(fenced).strip() if reply.blocks else reply.words
    return "" if parse_reply(words).final else words
