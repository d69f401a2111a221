"""Shorten a history that nears the model's window, by rule: no model is called, so a replay gives the same. Pure.

The system prompt, the question and the newest turns stay as they are. Replies and output of older turns keep head and
tail. Their variables are untouched in the REPL, and a note says so to the model.
"""

from __future__ import annotations

from collections.abc import Sequence

from rlm.context.excerpt import shorten
from rlm.models.lm import Message, estimate_tokens

FILL = 0.85
"""The part of the window to fill; the rest is for the reply. The figure of rlms."""

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"


def compact(messages: Sequence[Message], window_tokens: int) -> tuple[list[Message], int]:
    """The messages, shortened until they fit, and how many of them became shorter.

    The first two messages are system prompt and question. Tokens are estimated, four characters each.
    """
    room = int(FILL * window_tokens)
    if estimate_tokens(messages) <= room:
        return list(messages), 0
    best: list[Message] = list(messages)
    for whole_turns, characters in _LEVELS:
        best = _shorten_older(messages, whole_turns, characters)
        if estimate_tokens(best) <= room:
            break
    changed = sum(old != new for old, new in zip(messages, best, strict=True))
    return best, changed


def _shorten_older(messages: Sequence[Message], whole_turns: int, characters: int) -> list[Message]:
    replies = [i for i, message in enumerate(messages) if message["role"] == "assistant"]
    old = replies[: len(replies) - whole_turns]
    until = replies[len(old)] if len(old) < len(replies) else len(messages) - 1
    out: list[Message] = []
    for i, message in enumerate(messages):
        text = message["content"]
        if 2 <= i < until and len(text) > characters:
            text = shorten(text, characters)
            if i == old[0] + 1 and NOTE not in text:
                text = f"{NOTE}\n{text}"
        out.append({"role": message["role"], "content": text})
    return out
