"""A history that nears the model's window is shortened, by rule: no model is asked, so a replay gives the same. Pure.

The system prompt, the question and the newest turns stay as they are. Of older turns the code stays, cut, and of what
it printed the beginning and the end. The variables that they made are untouched in the REPL, and the model is told so.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.excerpt import cut
from rlm.lm import Message, estimated_tokens

FILL = 0.85
"""Of the window; the rest is room for the reply. The figure of rlms."""

# Tried in turn until it fits: how many of the newest turns stay whole, and how much of a message of the others.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"


def compacted(messages: Sequence[Message], window_tokens: int) -> tuple[list[Message], int]:
    """The messages, shortened as far as they must be to fit, and how many of them became shorter.

    The first two messages are system prompt and question. Tokens are estimated, four characters each.
    """
    room = int(FILL * window_tokens)
    if estimated_tokens(messages) <= room:
        return list(messages), 0
    best: list[Message] = list(messages)
    for whole_turns, characters in _LEVELS:
        best = _shortened(messages, whole_turns, characters)
        if estimated_tokens(best) <= room:
            break
    changed = sum(old != new for old, new in zip(messages, best, strict=True))
    return best, changed


def _shortened(messages: Sequence[Message], whole_turns: int, characters: int) -> list[Message]:
    replies = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    old = replies[: len(replies) - whole_turns]
    until = replies[len(old)] if len(old) < len(replies) else len(messages) - 1
    out: list[Message] = []
    for i, message in enumerate(messages):
        text = message["content"]
        if 2 <= i < until and len(text) > characters:
            text = cut(text, characters)
            if i == old[0] + 1 and NOTE not in text:
                text = f"{NOTE}\n{text}"
        out.append({"role": message["role"], "content": text})
    return out
