"""Fit messages into the window of the root model.

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
from rlm.prompts.system import conversation

FILL = 0.85  # the part of the window to fill; the rest is for the reply; as in rlms
OUTPUT = 0.25  # the part of the window that the output of one block may fill

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))
_FEWEST_CHARACTERS = 200  # fewest characters of an output, however small the window
_NEXT_SHARE, _NEXT_SHARE_UNCOUNTED = 0.9, 0.5  # of a refused prompt, with and without the endpoint's count of it
_SCALES = (0.25, 8.0)  # least and largest; a count further off is of something else, such as uncached tokens
_SCALE_STEP = 0.05  # scales are rounded up to a multiple of it: the next text may have more tokens than the last

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"
_TURN = re.compile(
    r"(?:\A|\n\n)(?:Your last reply and its output were the same [^\n]*\n\n)?Turn \d+(?:/\d+)?[.:][^\n]*\Z"
)
"""A message that opened a turn, at the end of the message that it was joined to; earlier versions' wording too."""


@dataclass(frozen=True, slots=True)
class ModelWindow:
    """The capacity of the root's prompt in tokens, and the scale of its endpoint's counts."""

    tokens: int
    scale: float = 1.0  # tokens that the endpoint counts for each that we estimate

    def count(self, messages: Sequence[Message]) -> int:
        """The tokens of a prompt, as the endpoint is expected to count them."""
        return int(self.scale * estimate_tokens(messages))

    def after(self, prompt: Sequence[Message], reply: Reply) -> ModelWindow:
        """The window with the scale by an answered call, if its endpoint reported the tokens of the prompt."""
        if reply.estimated or reply.input_tokens <= 0:
            return self
        least, most = _SCALES
        counted = reply.input_tokens / max(1, estimate_tokens(prompt))
        return replace(self, scale=min(most, max(least, -(-counted // _SCALE_STEP) * _SCALE_STEP)))

    def refused(self, prompt: Sequence[Message], refusal: PromptTooLong) -> ModelWindow:
        """The window after a prompt was refused as too long. The next prompt fills at most `FILL` of it, and so is
        shorter than that one, by the endpoint's count if it gave one."""
        scaled = self.after(prompt, Reply("", refusal.tokens, 0, "")) if refusal.tokens else self
        share = _NEXT_SHARE if refusal.tokens else _NEXT_SHARE_UNCOUNTED
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
    shortened = _shorten_to_fit(messages, window)
    return shortened, sum(old != new for old, new in zip(messages, shortened, strict=True))


def _shorten_to_fit(messages: Sequence[Message], window: ModelWindow) -> list[Message]:
    """The messages, with older ones shortened by level, and at last the newest cut to the room that they leave."""
    room, shortened = int(FILL * window.tokens), list(messages)
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
