"""Every word that the root model is told, in the message shapes of rlms."""

from __future__ import annotations

from collections.abc import Sequence

from rlm.held import Held
from rlm.lm import Message
from rlm.step import Cell, Step
from rlm.system_prompt import system_prompt

_GUARD = (
    "You have not interacted with the REPL environment or seen your context yet. Look at the context first: reply with "
    "a block of code fenced as ```repl; do not provide a final answer yet.\n\n"
)

NO_CODE = (
    "Nothing was run: your reply has no block fenced as ```repl and no final answer at the start of a line. Write one, "
    "such as:\n\n```repl\nprint(context[:1000])\n```"
)
CUT_AND_RUN = "[your reply was cut off before the closing fence; the block was complete and ran as it stood]\n"
CUT_NOT_RUN = "Not run: your reply was cut off inside this block. Send it again, shorter or in parts.\n"

DRAFT = 'if answer.get("content") not in (None, ""): FINAL(answer["content"])'
"""A cell that gives what the model has drafted so far as the answer."""
NEW_QUESTION = 'answer["content"], answer["ready"] = "", False'
"""A cell that makes room for another answer."""

_FORCED = (
    "All {turns} turns are used; no more code will run. Give your best answer now, as plain text, from what you have "
    "found so far, and say what is uncertain about it."
)


def opening_messages(
    query: str,
    held: Held,
    *,
    prompt_characters: int,
    output_limit: int,
    children: bool = False,
    tools: Sequence[str] = (),
) -> list[Message]:
    """The system prompt, and the question with what there is to know of the context."""
    system = system_prompt(
        held, prompt_characters=prompt_characters, output_limit=output_limit, children=children, tools=tools
    )
    # The quoted form is what the rlms visualizer shows as the question of a run.
    asked = f'Answer the original query: "{query}"\n\nYour context is {held.sentence}.'
    return [_message("system", system), _message("user", asked)]


def next_question(query: str) -> Message:
    """What begins another question in the same namespace."""
    return _message(
        "user", f'Now answer another query: "{query}"\n\n`context` and your variables are as you left them.'
    )


def turn_message(turn: int, turns: int | None) -> Message:
    """What opens turn `turn` of `turns`, counted from 1; the first one asks to look before answering."""
    return _message("user", (_GUARD if turn == 1 else "") + f"Turn {turn}{'' if turns is None else f'/{turns}'}:")


def forced_message(turns: int) -> Message:
    """The demand for an answer after the last turn."""
    return _message("user", _FORCED.format(turns=turns))


def feedback(step: Step) -> list[Message]:
    """What a turn adds to the history: the reply itself, and one message with all that came of it."""
    numbered = len(step.cells) > 1
    parts = [
        f"REPL output{f' (block {i})' if numbered else ''}:\n{_shown(cell)}" for i, cell in enumerate(step.cells, 1)
    ]
    if step.notice:
        parts.append(step.notice)
    return [_message("assistant", step.reply.text), *([_message("user", "\n\n".join(parts))] if parts else [])]


def _shown(cell: Cell) -> str:
    result = cell.result
    parts = [part.rstrip("\n") for part in (result.stdout, result.stderr) if part]
    if not parts:
        parts.append("No output: use print(...) to see a value.")
    names = [name for name in result.variables if name != "context"]
    if names:
        parts.append(f"REPL variables: {_listed(names)}")
    return "\n".join(parts)


def _listed(names: Sequence[str], most: int = 40) -> str:
    newest = list(names)[-most:]
    return (f"... and {len(names) - most} more, " if len(names) > most else "") + ", ".join(newest)


def _message(role: str, content: str) -> Message:
    return {"role": role, "content": content}
