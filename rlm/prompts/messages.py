"""Write the messages to the root model: questions, turns, outputs and notices, in the form that rlms uses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rlm.context.excerpt import shorten
from rlm.models.lm import Message, Reply
from rlm.prompts.system import LOOK_FIRST
from rlm.prompts.window import ModelWindow, fit, without_turn
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

GIVE_DRAFT_CODE = 'FINAL(answer["content"])'  # gives the model's draft as the answer
CLEAR_DRAFT_CODE = 'answer["content"], answer["ready"] = "", False'  # clears the answer before the next question

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


def with_opening(messages: Sequence[Message], opening: str) -> list[Message]:
    """The messages and the one that opens a turn; joins neighbours of one role, which some chat templates refuse."""
    joined: list[Message] = []
    for message in (*messages, {"role": "user", "content": opening}):
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(dict(message))
    return joined


def messages_after(step: Step, window: ModelWindow) -> list[Message]:
    """The messages up to the end of a turn: the reply, and one message with output, errors and notices. A turn that
    repeats the one before is left out. `window`: outputs are cut to a part of it."""
    *before, last = step.prompt
    if step.repeats:
        content = without_turn(last["content"])
        return [*before, {"role": last["role"], "content": content}] if content else before
    is_one = len(step.cells) == 1
    parts = [_describe_output("" if is_one else f" (block {i})", cell, window) for i, cell in enumerate(step.cells, 1)]
    if step.notice:
        parts.append(step.notice)
    outputs = [{"role": "user", "content": "\n\n".join(parts)}] if parts else []
    return [*before, last, {"role": "assistant", "content": step.reply.text}, *outputs]


def _describe_output(block: str, cell: Cell, window: ModelWindow) -> str:
    """The output of a cell, with advice and the names of the variables. `block`: its number, if there are several."""
    result = cell.result
    lines = [f"REPL output{block}:"]
    lines += [fit(part.rstrip("\n"), window) for part in (result.stdout, result.stderr) if part]
    if not (result.stdout or result.stderr):
        is_empty = statements_of(cell.code) == []
        lines.append(NO_STATEMENT if is_empty else "No output: use print(...) to see a value.")
    if "TypeError" in result.stderr and ("Monocontext" in result.stderr or "LazyList" in result.stderr):
        lines.append(NO_STR)
    if names := [name for name in result.variables if name != "context"]:
        more = f"... and {len(names) - _NAMES} more, " if len(names) > _NAMES else ""
        lines.append(f"REPL variables: {more}{', '.join(names[-_NAMES:])}")
    return "\n".join(lines)


def notice_of(reply: Reply, notice: str | None, cells: Sequence[Cell]) -> str | None:
    """The notice to send: that the reply was cut, empty or a tool call, then `notice` if that says more. A cut block
    needs none, since its output mentions the cut."""
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
