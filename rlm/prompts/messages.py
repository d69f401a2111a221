"""Write the messages to the root model, in the form that rlms uses, and shorten them to its window.

A history that nears the window is shortened by rule: no model is called, so a replay gives the same. The messages
before the first turn and the newest turns stay whole. Replies and outputs of older turns keep their head and tail, and
a note tells the model that its variables are unchanged in the REPL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm.context.excerpt import shorten
from rlm.errors import PromptTooLong
from rlm.models.lm import Message, Reply, estimate_text_tokens, estimate_tokens
from rlm.prompts.system import LOOK_FIRST, conversation
from rlm.prompts.written_calls import codes_of_json
from rlm.runners.syntax import statements_of
from rlm.trajectory.step import Cell, Step

_AGAIN = "Your last reply and its output were the same as before: do something else now. "
_AGAIN_UNRUN = "Your last reply was the same as before: do something else now. "
_HOW_TO_ANSWER = "with FINAL(...) in a block of its own; or write the next block of code"
_LISTED_NAMES = 40  # the most variables that are listed, the newest ones
_QUERY_CHARACTERS = 300  # characters of the question repeated in later turns; the opening message has it whole
_NO_STATEMENT = "Nothing was run: this block holds comments only, or is empty. Write Python that looks at `context`."
_WANTS_STR = (
    "A library wants a real str: `str(context)` while it is small enough, above that a slice, `context[a:b]`; for a "
    "list, `list(parts)`."
)
GIVE_DRAFT_CODE = 'FINAL(answer["content"])'  # gives the model's draft as the answer
CLEAR_DRAFT_CODE = 'answer["content"], answer["ready"] = "", False'  # clears the answer before the next question


def next_question(query: str, *, broken_off: bool = False, lost: str = "") -> Message:
    """The message that begins another question in the same namespace. `broken_off`: whether the question before has no
    answer. `lost`: the runner's note on lost variables; empty if none were lost."""
    before = "The query before was broken off; leave it. " if broken_off else ""
    reminder = lost.strip() or "`context` and your variables are as you left them."
    return {"role": "user", "content": f'{before}Now answer another query: "{query}"\n\n{reminder}'}


def turn_message(turn: int, turns: int | None, query: str, *, has_text: bool, has_run: bool, is_repeat: bool) -> str:
    """The message that opens turn `turn` of `turns`, from 1.

    `has_text`: whether there is a context to look at. `has_run`: whether code of the model has run. `is_repeat`:
    whether the last reply repeated the one before it. Until code has run, the message asks to look first. Later ones
    repeat the question and how to finish, since small models forget both, but no `FINAL(your answer)` to copy.
    """
    number = f"Turn {turn}" if turns is None else f"Turn {turn}/{turns}"
    look = f" {LOOK_FIRST}" if has_text and not has_run else ""
    if turn == 1:
        return f"{number}:{look}"
    short_query = " ".join(shorten(query, _QUERY_CHARACTERS).split())
    repeated = (_AGAIN if has_run else _AGAIN_UNRUN) if is_repeat else ""
    advice = f" Answer {_HOW_TO_ANSWER}."
    if has_run:
        advice = f" Answer from the output above {_HOW_TO_ANSWER} if the output does not say."
    return f"{number}. {repeated}{short_query}{look or advice}"


def with_opening(messages: Sequence[Message], opening: str) -> list[Message]:
    """The messages, then one that opens a turn. Neighbours of one role are joined: some chat templates refuse them."""
    joined: list[Message] = []
    for message in (*messages, {"role": "user", "content": opening}):
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(dict(message))
    return joined


def messages_after(step: Step, window: ModelWindow) -> list[Message]:
    """The conversation after a turn: the prompt, the reply, and one message with output, errors and notices. A turn
    that repeats the one before is left out. `window`: the root's window, of which an output may fill a quarter."""
    *before, last = step.prompt
    if step.repeats:
        content = without_turn(last["content"])
        return [*before, {"role": last["role"], "content": content}] if content else before
    parts = []
    for number, cell in enumerate(step.cells, 1):
        title = "REPL output:" if len(step.cells) == 1 else f"REPL output (block {number}):"
        parts.append(_describe_output(title, cell, window))
    if step.notice:
        parts.append(step.notice)
    outputs = [{"role": "user", "content": "\n\n".join(parts)}] if parts else []
    return [*before, last, {"role": "assistant", "content": step.reply.text}, *outputs]


def _describe_output(title: str, cell: Cell, window: ModelWindow) -> str:
    """The output of a cell below its title, with advice and the names of the variables."""
    result = cell.result
    lines = [title]
    lines += [fit_output(part.rstrip("\n"), window) for part in (result.stdout, result.stderr) if part]
    if not (result.stdout or result.stderr):
        is_empty = statements_of(cell.code) == []
        lines.append(_NO_STATEMENT if is_empty else "No output: use print(...) to see a value.")
    if "TypeError" in result.stderr and ("Monocontext" in result.stderr or "LazyList" in result.stderr):
        lines.append(_WANTS_STR)
    if names := [name for name in result.variables if name != "context"]:
        more = f"... and {len(names) - _LISTED_NAMES} more, " if len(names) > _LISTED_NAMES else ""
        lines.append(f"REPL variables: {more}{', '.join(names[-_LISTED_NAMES:])}")
    return "\n".join(lines)


def with_call(reply: Reply) -> Reply:
    """The reply, with a block of code if it calls a tool whose only argument is code."""
    code = next(codes_of_json(reply.call_arguments), None) if reply.called else None
    return reply if code is None else replace(reply, text=f"{reply.text}\n```repl\n{code}\n```".lstrip())


# -- the window --------------------------------------------------------------------------------------------------------

PROMPT_SHARE = 0.85  # the part of the window that a prompt may fill; the rest is for the reply; as in rlms
OUTPUT_SHARE = 0.25  # the part of the window that the output of one block may fill

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))
_FEWEST_CHARACTERS = 200  # fewest characters of an output, however small the window
_NEXT_SHARE, _NEXT_SHARE_UNCOUNTED = 0.9, 0.5  # of a refused prompt, with and without the endpoint's count of it
_LEAST_SCALE, _MOST_SCALE = 0.25, 8.0  # a count further off is of something else, such as uncached tokens
_SCALE_STEP = 0.05  # scales are rounded up to a multiple of it: the next text may have more tokens than the last

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"
_TURN = re.compile(r"(?:\A|\n\n)Turn \d+(?:/\d+)?[.:][^\n]*\Z")
"""A message that opened a turn, at the end of the one that it was joined to: "\n\nTurn 2/9. Who?" after an output."""


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """The capacity of the root's prompt in tokens, and the scale of its endpoint's counts."""

    tokens: int
    scale: float = 1.0  # tokens that the endpoint counts for each that we estimate

    def count(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, as the endpoint is expected to count them."""
        return int(self.scale * estimate_tokens(messages))

    def after(self, prompt: Sequence[Message], reply: Reply) -> ModelWindow:
        """The window with the scale that an answered call shows; the same if its endpoint reported no tokens."""
        if reply.estimated or reply.input_tokens <= 0:
            return self
        counted = reply.input_tokens / max(1, estimate_tokens(prompt))
        rounded = -(-counted // _SCALE_STEP) * _SCALE_STEP
        return replace(self, scale=min(_MOST_SCALE, max(_LEAST_SCALE, rounded)))

    def refused(self, prompt: Sequence[Message], refusal: PromptTooLong) -> ModelWindow:
        """The window after a prompt was refused as too long. It is so small that the next prompt, which fills at most
        `PROMPT_SHARE` of it, is shorter than the refused one, by the endpoint's count if it gave one."""
        scaled = self.after(prompt, Reply("", refusal.tokens, 0, "")) if refusal.tokens else self
        share = _NEXT_SHARE if refusal.tokens else _NEXT_SHARE_UNCOUNTED
        tokens = min(
            refusal.window_tokens or self.tokens, self.tokens, int(share * scaled.count(prompt) / PROMPT_SHARE)
        )
        return replace(scaled, tokens=max(1, tokens))


def fit_output(text: str, window: ModelWindow) -> str:
    """The output of a block, cut to its head and tail if it exceeds a quarter of the window."""
    room = int(OUTPUT_SHARE * window.tokens)
    limit = len(text)
    while limit > _FEWEST_CHARACTERS:
        display = shorten(text, limit)
        needed = window.scale * estimate_text_tokens(display)
        if needed <= room:
            return display
        limit = max(_FEWEST_CHARACTERS, min(int(limit * room / needed), int(0.95 * limit)))
    return shorten(text, limit)


def compact(messages: Sequence[Message], window: ModelWindow) -> list[Message]:
    """The messages, shortened until they fill at most 85 % of the window: first older ones, by `_LEVELS`; at last the
    newest, which is cut to the room that the others leave."""
    room, shortened = int(PROMPT_SHARE * window.tokens), list(messages)
    if window.count(messages) <= room:
        return shortened
    for whole_turns, characters in _LEVELS:
        shortened = _shorten_older(messages, whole_turns, characters)
        if window.count(shortened) <= room:
            return shortened
    if len(conversation(shortened)) <= 1:
        return shortened
    *others, newest = shortened
    share = (room - window.count(others)) / max(1, window.count([newest]))
    limit = max(_FEWEST_CHARACTERS, int(share * len(newest["content"])))
    return [*others, {"role": newest["role"], "content": shorten(newest["content"], limit)}]


def without_turn(text: str) -> str:
    """The text of a user message without the opening of a turn that was joined to its end."""
    return _TURN.split(text, maxsplit=1)[0]


def _shorten_older(messages: Sequence[Message], whole_turns: int, characters: int) -> list[Message]:
    """The messages; those of turns before the last `whole_turns` are shortened to this many characters each."""
    first_turn = len(messages) - len(conversation(messages)) + 1  # the offset of the first reply
    replies = [i for i, message in enumerate(messages) if i >= first_turn and message["role"] == "assistant"]
    old = replies[: max(0, len(replies) - whole_turns)]
    first_whole = replies[len(old)] if len(old) < len(replies) else len(messages) - 1
    result: list[Message] = []
    for i, message in enumerate(messages):
        text = message["content"]
        if first_turn <= i < first_whole and len(text) > characters:
            text = shorten(without_turn(text) if message["role"] == "user" else text, characters)
            if i == old[0] + 1 and NOTE not in text:
                text = f"{NOTE}\n{text}"
        result.append({"role": message["role"], "content": text})
    return result
