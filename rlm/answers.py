"""Find the answer that a reply gives in words: in any turn, in the last, which must answer, or at a limit."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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

_NO_ANSWER = (faults.TAKEN_BACK, faults.TO_COME)  # the model itself says that it gives no answer
_FENCE_LINE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})\w*[ \t]*$", re.MULTILINE)  # "```python", "~~~"; not "``` x = 1"
_BEFORE_ANSWER = re.compile(r"[ \t]+(?=(?:FINAL|FINAL_VAR|SUBMIT)\([^\n]*\)[*_`. \t]*$)", re.MULTILINE)
"""The space before an answer that ends its line: in "So it is FINAL(3).", but not in "FINAL(3) is it"."""
_GIVE_VARIABLE = "FINAL({0}) if {0!r} in globals() else FINAL_VAR({0!r})"  # FINAL_VAR explains what is missing


class WrittenAnswer(NamedTuple):
    """The result of reading an answer in words. One of the fields is None."""

    answer: str | None
    notice: str | None  # for the model: why the answer was refused


@dataclass(frozen=True, slots=True)
class WrittenAnswers:
    """Finds the answers that replies give in words. `resolve` only looks up and formats variables; `find_forced` also
    runs an answer that is code, since the model has no turn left to send it as code."""

    runner: Runner  # has the variables that an answer may name
    tools: Collection[str]  # the names of the custom tools

    def resolve(self, final: TextFinal, messages: Sequence[Message], *, is_alone: bool) -> WrittenAnswer:
        """The answer that `final` gives, or the value of the variable that it names; else a notice for the model.
        `messages`: the conversation before the reply. `is_alone`: whether nothing beside `final` may change it."""
        replies = (message["content"] for message in messages if message["role"] == "assistant")
        variables = self.runner.run("").variables  # an empty cell reports them too
        known_names = {*variables, *assigned_names(replies), *self.tools, "context", "answer"}
        if fault := faults.explain_final(final, known_names, is_alone=is_alone, seen=_shown_output(messages)):
            return WrittenAnswer(None, f"Answer refused: {fault}")
        name = final.variable
        if name and (final.is_name or name in known_names):
            result = self.runner.run(_GIVE_VARIABLE.format(name))
            return WrittenAnswer(result.final_answer, None if result.final_answer else result.stderr.strip())
        try:
            check_written_answer(final.text)
        except AnswerRefused as exc:
            return WrittenAnswer(None, f"Answer refused: {exc}")
        return WrittenAnswer(final.text, None)

    def find_forced(self, parsed: ParsedReply, step: Step, *, has_raised: bool) -> str | None:
        """The answer in the reply to the last call, else the reply's words; None if there are none.
        `has_raised`: whether the code of the reply raised."""
        if parsed.fault in _NO_ANSWER:
            return parsed.own_text.strip()
        for reading in _readings(parsed, step.reply.thinking):
            final = reading.final
            if final is None:
                continue
            is_alone = not has_raised and final.stands_alone(reading.own_text, step.reply.thinking)
            may_be_code = is_alone and not parsed.fault
            answer = self.resolve(final, step.prompt, is_alone=is_alone).answer
            if answer is None and may_be_code:
                answer = self._evaluate(final)
            answer = answer or _words_around(final, reading.own_text)
            if answer:
                return answer
        return _answer_words(parsed) or None

    def find_partial(self, messages: Sequence[Message], newest: ParsedReply) -> str:
        """The best answer when no call is left: the draft in `answer`, else the model's last words; empty if none."""
        if draft := self.runner.run(prompts.GIVE_DRAFT_CODE).final_answer:
            return draft
        replies = [message["content"] for message in conversation(messages) if message["role"] == "assistant"]
        newest_first = map(_answer_words, (newest, *map(parse_reply, reversed(replies))))
        return next((words for words in newest_first if words), "")

    def _evaluate(self, final: TextFinal) -> str | None:
        """The value of an answer that `resolve` refuses because it is code; None if it has no value.
        "The count is {count}" is read as an f-string, and so is `{count}` alone, which Python would read as a set."""
        call = call_of(final.text)
        value = call.args[0] if call and call.args else None
        is_one_name = isinstance(value, ast.Set) and len(value.elts) == 1
        if (value is None or is_one_name) and faults.FIELD.search(final.text):
            return self.runner.run(f"FINAL(f{final.text!r})").final_answer
        return self.runner.run(f"FINAL({final.text})").final_answer if final.call else None


def answers_by_code(parsed: ParsedReply) -> bool:
    """Whether to run the code of the reply to the last call: only if it gives an answer, or stands beside one."""
    if parsed.fault in _NO_ANSWER or not parsed.blocks:
        return False
    return parse_reply(parsed.words).final is not None or any(gives_answer(block.code) for block in parsed.blocks)


def _shown_output(messages: Sequence[Message]) -> str:
    """The output that the model has seen, without tracebacks."""
    outputs = (message["content"] for message in conversation(messages)[1:] if message["role"] == "user")
    return "\n".join(prompts.without_turn(text).partition("Traceback (most recent")[0] for text in outputs)


def _readings(parsed: ParsedReply, thinking: str) -> list[ParsedReply]:
    """The reply to the last call, read in several ways, strictest first, since a lenient one may take code for words:

    - as in any turn
    - only its words, without the code beside them
    - only its blocks that are not valid Python, and so cannot have run
    - if it has no block: its text without fences, provided that this only announces an answer
    """
    words = parse_reply(parsed.words)
    invalid_blocks = parse_reply("\n".join(block.code for block in parsed.blocks if not compiles(block.code)))
    readings = [parsed, words, invalid_blocks]
    if not parsed.blocks:
        unfenced = parse_reply(_BEFORE_ANSWER.sub("\n", _FENCE_LINE.sub("", parsed.own_text)))
        if unfenced.final and unfenced.final.stands_alone(unfenced.own_text, thinking):
            readings.append(unfenced)
    return readings


def _words_around(final: TextFinal, reply: str) -> str:
    """The words of a reply around an answer that does not count; empty if they are code or marks, or announce it."""
    rest = (reply[: final.span[0]] + reply[final.span[1] :]).strip()
    parsed = parse_reply(rest)
    is_code = bool(parsed.blocks or parsed.final or parsed.fault) or "```" in rest
    has_words = re.search(r"[^\W_]", re.sub(r"<[^<>\n]*>", "", rest)) is not None  # besides tags, such as "</s>"
    return rest if has_words and not is_code and not rest.endswith(":") else ""


def _answer_words(reply: ParsedReply) -> str:
    """The words of a reply, or the sentences that it fenced as code; empty if they hold a (refused) answer."""
    sentences = [block.code for block in reply.blocks if not (re.search(r"[=(\[]", block.code) or compiles(block.code))]
    words = "\n".join(sentences).strip() if reply.blocks else reply.words
    return "" if parse_reply(words).final else words
