"""Write the messages to the root model: questions, turns, outputs and notices, in the form that rlms uses.

A history that nears the model's window is shortened by rule: no model is called, so a replay gives the same. The
messages before the first turn and the newest turns stay whole. Replies and outputs of older turns keep their head and
tail, and a note tells the model that its variables are unchanged in the REPL.
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
_ANSWER = "with FINAL(...) in a block of its own; or write the next block of code"
_NAMES = 40  # the most variables that are listed, the newest ones
_QUERY_CHARACTERS = 300  # characters of the question repeated in later turns; the opening message has it whole

UNSEEN = (
    "Not taken as the answer yet: no code has run, so you have seen nothing of `context`. Search it in a ```repl "
    "block; if the answer needs nothing from it, give it again."
)
"""The notice for the first answer in words if no code has run."""
NO_CODE = (
    "Nothing was run: your reply has no block of Python between a line ```repl and a line ```. Write one; FINAL(value) "
    "in it gives the answer."
)
ONLY_THINKING = (
    "Nothing was run: your reply ended inside its thinking. Think less, and write a block between a line ```repl and a "
    "line ```."
)
INVENTED = (
    "Your reply went on to write the next turn itself. That part was left out: outputs come from the REPL alone. End "
    "your reply after a block."
)
NO_STATEMENT = "Nothing was run: this block holds comments only, or is empty. Write Python that looks at `context`."
CUT_AND_RUN = "[your reply was cut off before the closing fence; the block was complete and ran as it stood]\n"
CUT_NOT_RUN = "Not run: your reply was cut off inside this block. Send it again, shorter or in parts.\n"

CUT = (
    "Your reply was cut off by the limit of tokens; what was to follow is lost. Say less at once: shorter code, and no "
    "long thoughts before it."
)
EMPTY = "Nothing was run: your reply was empty. Write a ```repl block; FINAL(value) in it gives the answer."
CALLED = (
    "Nothing was run: you called the tool {name}, and there are no tools. Write the code itself into a ```repl block."
)

NO_STR = (
    "A library wants a real str: `str(context)` while it is small enough, above that a slice, `context[a:b]`; for a "
    "list, `list(parts)`."
)
SKIPPED = "The later blocks of your reply ({}) were not run: the one before them raised, or was refused."

DRAFT = 'FINAL(answer["content"])'  # code that gives the model's draft as the answer
NEW_QUESTION = 'answer["content"], answer["ready"] = "", False'  # code that clears the answer before the next question

FORCED = (
    "All {turns} turns are used; you will see no more output. Give your best answer now, as plain text, from what you "
    "have found so far, and say what is uncertain about it."
)


def next_question(query: str, *, broken_off: bool = False, lost: str = "") -> Message:
    """The message that begins another question in the same namespace. `broken_off`: the question before has no answer.
    `lost`: the runner's note on lost variables."""
    before = "The query before was broken off; leave it. " if broken_off else ""
    reminder = lost.strip() or "`context` and your variables are as you left them."
    return {"role": "user", "content": f'{before}Now answer another query: "{query}"\n\n{reminder}'}


def turn_message(turn: int, turns: int | None, query: str, *, to_read: bool, has_run: bool, again: bool = False) -> str:
    """The message that opens turn `turn` of `turns`, from 1.

    `to_read`: there is a context to look at. `has_run`: code of the model has run. `again`: the last reply repeated the
    one before it. Until code has run, the message asks to look before answering. Later ones repeat the question and how
    to finish, since small models forget both, but hold no `FINAL(your answer)`, which they would copy verbatim.
    """
    number = f"Turn {turn}" if turns is None else f"Turn {turn}/{turns}"
    look = f" {LOOK_FIRST}" if to_read and not has_run else ""
    if turn == 1:
        return f"{number}:{look}"
    short = " ".join(shorten(query, _QUERY_CHARACTERS).split())
    repeated = (_AGAIN if has_run else _AGAIN_UNRUN) if again else ""
    how = f" Answer from the output above {_ANSWER} if the output does not say." if has_run else f" Answer {_ANSWER}."
    return f"{number}. {repeated}{short}{look or how}"


def join(messages: Sequence[Message], opened: str) -> list[Message]:
    """The messages, and `opened`, which opens a turn. Joins neighbours of one role: some chat templates refuse them."""
    joined: list[Message] = []
    for message in (*messages, {"role": "user", "content": opened}):
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(dict(message))
    return joined


def history(step: Step, window: ModelWindow) -> list[Message]:
    """The messages up to the end of a turn: the reply, and one message with output, errors and notices. A turn that
    repeats the one before is left out. `window`: outputs are cut to a part of it."""
    *before, last = step.prompt
    if step.repeats:
        content = without_turn(last["content"])
        return [*before, {"role": last["role"], "content": content}] if content else before
    parts = []
    for number, cell in enumerate(step.cells, 1):
        result = cell.result
        lines = [f"REPL output (block {number}):" if len(step.cells) > 1 else "REPL output:"]
        lines += [fit(part.rstrip("\n"), window) for part in (result.stdout, result.stderr) if part]
        if not (result.stdout or result.stderr):
            is_empty = statements_of(cell.code) == []
            lines.append(NO_STATEMENT if is_empty else "No output: use print(...) to see a value.")
        if "TypeError" in result.stderr and ("Monocontext" in result.stderr or "LazyList" in result.stderr):
            lines.append(NO_STR)
        names = [name for name in result.variables if name != "context"]
        if names:
            more = f"... and {len(names) - _NAMES} more, " if len(names) > _NAMES else ""
            lines.append(f"REPL variables: {more}{', '.join(names[-_NAMES:])}")
        parts.append("\n".join(lines))
    if step.notice:
        parts.append(step.notice)
    outputs = [{"role": "user", "content": "\n\n".join(parts)}] if parts else []
    return [*before, last, {"role": "assistant", "content": step.reply.text}, *outputs]


def notice_of(reply: Reply, notice: str | None, cells: Sequence[Cell]) -> str | None:
    """The notice for a reply that was cut, empty or a tool call, together with `notice`; else `notice` itself. A cut
    block needs no notice, since its output mentions the cut."""
    if reply.called and not cells:
        called = CALLED.format(name=shorten(reply.called, 80))
        return called if notice in (None, NO_CODE, ONLY_THINKING) else f"{called}\n\n{notice}"
    is_mentioned = any(cell.result.stdout.endswith(CUT_AND_RUN) or cell.result.stderr == CUT_NOT_RUN for cell in cells)
    if reply.cut and not is_mentioned:
        return CUT if notice in (None, NO_CODE) else f"{CUT}\n\n{notice}"
    if notice == NO_CODE and not reply.text.strip():
        return EMPTY
    return notice


def with_call(reply: Reply) -> Reply:
    """The reply, with a block of code if it calls a tool whose only argument is code."""
    code = next(codes_of_json(reply.call_arguments), None) if reply.called else None
    return reply if code is None else replace(reply, text=f"{reply.text}\n```repl\n{code}\n```".lstrip())


# -- the window --------------------------------------------------------------------------------------------------------

FILL = 0.85  # the part of the window to fill; the rest is for the reply; as in rlms
OUTPUT = 0.25  # the part of the window that the output of one block may fill

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))
_FEWEST_CHARACTERS = 200  # fewest characters of an output, however small the window
_LESS, _LESS_UNCOUNTED = 0.9, 0.5  # the share of a refused prompt to send next, with and without the endpoint's count
_SCALES = (0.25, 8.0)  # least and largest; a count further off is of something else, such as uncached tokens

_STEP = 0.05  # scales are rounded up to a multiple of this, since the next text may have more tokens than the last

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"
_TURN = re.compile(
    r"(?:\A|\n\n)(?:Your last reply and its output were the same [^\n]*\n\n)?Turn \d+(?:/\d+)?[.:][^\n]*\Z"
)
"""A message that opened a turn, at the end of the message that it was joined to; earlier versions' wording too."""


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """The capacity of the root's prompt in tokens, and the scale of its endpoint's counts."""

    tokens: int
    scale: float = 1.0  # tokens that the endpoint counts for each estimated token

    def count(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, as the endpoint is expected to count them."""
        return int(self.scale * estimate_tokens(messages))

    def after(self, prompt: Sequence[Message], reply: Reply) -> ModelWindow:
        """The window with the scale by an answered call, if its endpoint reported the tokens of the prompt."""
        if reply.estimated or reply.input_tokens <= 0:
            return self
        least, most = _SCALES
        counted = reply.input_tokens / max(1, estimate_tokens(prompt))
        return replace(self, scale=min(most, max(least, -(-counted // _STEP) * _STEP)))

    def refused(self, prompt: Sequence[Message], refusal: PromptTooLong) -> ModelWindow:
        """The window after a prompt was refused as too long. The next prompt fills at most `FILL` of it, and so is
        shorter than that one, by the endpoint's count if it gave one."""
        scaled = self.after(prompt, Reply("", refusal.tokens, 0, "")) if refusal.tokens else self
        share = _LESS if refusal.tokens else _LESS_UNCOUNTED
        tokens = min(refusal.window_tokens or self.tokens, self.tokens, int(share * scaled.count(prompt) / FILL))
        return replace(scaled, tokens=max(1, tokens))


def fit(text: str, window: ModelWindow) -> str:
    """The output of a block, cut to as much of its head and tail as a quarter of the window holds."""
    room = int(OUTPUT * window.tokens)
    limit = len(text)
    while limit > _FEWEST_CHARACTERS:
        display = shorten(text, limit)
        needed = window.scale * estimate_text_tokens(display)
        if needed <= room:
            return display
        limit = max(_FEWEST_CHARACTERS, min(int(limit * room / needed), int(0.95 * limit)))
    return shorten(text, limit)


def compact(messages: Sequence[Message], window: ModelWindow) -> tuple[list[Message], int]:
    """The messages, shortened until they fill at most 85 % of the window, and the number of shortened ones."""
    room = int(FILL * window.tokens)
    if window.count(messages) <= room:
        return list(messages), 0
    shortened = list(messages)
    for whole_turns, characters in _LEVELS:
        shortened = _shorten_older(messages, whole_turns, characters)
        if window.count(shortened) <= room:
            break
    else:
        if len(conversation(shortened)) > 1:  # the newest message is cut to the room that the others leave
            *others, newest = shortened
            share = (room - window.count(others)) / max(1, window.count([newest]))
            limit = max(_FEWEST_CHARACTERS, int(share * len(newest["content"])))
            shortened = [*others, {"role": newest["role"], "content": shorten(newest["content"], limit)}]
    return shortened, sum(old != new for old, new in zip(messages, shortened, strict=True))


def without_turn(text: str) -> str:
    """The text of a user message without the opening of a turn that was joined to its end."""
    return _TURN.split(text, maxsplit=1)[0]


def _shorten_older(messages: Sequence[Message], whole_turns: int, characters: int) -> list[Message]:
    """The messages, with those of turns before the last `whole_turns` shortened to this many characters each."""
    opening = len(messages) - len(conversation(messages)) + 1
    replies = [i for i, message in enumerate(messages) if i >= opening and message["role"] == "assistant"]
    old = replies[: max(0, len(replies) - whole_turns)]
    until = replies[len(old)] if len(old) < len(replies) else len(messages) - 1
    result: list[Message] = []
    for i, message in enumerate(messages):
        text = message["content"]
        if opening <= i < until and len(text) > characters:
            text = shorten(without_turn(text) if message["role"] == "user" else text, characters)
            if i == old[0] + 1 and NOTE not in text:
                text = f"{NOTE}\n{text}"
        result.append({"role": message["role"], "content": text})
    return result
