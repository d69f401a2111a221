"""Shorten a history that nears the model's window, by rule: no model is called, so a replay gives the same. Pure.

The messages before the first turn and the newest turns stay whole. Replies and outputs of older turns keep their head
and tail, and a note tells the model that its variables are unchanged in the REPL.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm.context.excerpt import shorten
from rlm.errors import PromptTooLong
from rlm.models.lm import Message, Reply, estimate_text_tokens, estimate_tokens
from rlm.prompts.examples import conversation

FILL = 0.85  # the part of the window to fill; the rest is for the reply. The figure of rlms
OUTPUT = 0.25  # the part of the window that the output of one block may fill

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))
_FEWEST_CHARACTERS = 200  # fewest characters of an output, however small the window
_LESS, _LESS_UNCOUNTED = 0.9, 0.5
"""The share of a refused prompt to send next: if the endpoint counted its tokens, and if not."""
_SCALES = (0.25, 8.0)
"""The least and the largest scale. An endpoint whose count is further off counts something else, such as uncached
tokens."""

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
        """The window with the scale of an answered call, if its endpoint reported the tokens of the prompt."""
        if reply.estimated or reply.input_tokens <= 0:
            return self
        return self._scaled(prompt, reply.input_tokens)

    def refused(self, prompt: Sequence[Message], refusal: PromptTooLong) -> ModelWindow:
        """The window after a prompt was refused as too long.

        The next prompt fills at most `FILL` of it, and so is shorter than that one, by the endpoint's count if it gave
        one.
        """
        scaled = self._scaled(prompt, refusal.tokens) if refusal.tokens else self
        share = _LESS if refusal.tokens else _LESS_UNCOUNTED
        tokens = min(refusal.window_tokens or self.tokens, self.tokens, int(share * scaled.count(prompt) / FILL))
        return replace(scaled, tokens=max(1, tokens))

    def _scaled(self, prompt: Sequence[Message], tokens: int) -> ModelWindow:
        least, most = _SCALES
        counted = tokens / max(1, estimate_tokens(prompt))
        return replace(self, scale=min(most, max(least, -(-counted // _STEP) * _STEP)))


def fit(text: str, window: ModelWindow) -> str:
    """The output of a block, or as much of its head and tail as a quarter of the window holds."""
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
    best: list[Message] = list(messages)
    for whole_turns, characters in _LEVELS:
        best = _shorten_older(messages, whole_turns, characters)
        if window.count(best) <= room:
            break
    else:
        if len(conversation(best)) > 1:  # the newest message is cut to the room that the others leave
            newest = best[-1]
            share = (room - window.count(best[:-1])) / max(1, window.count([newest]))
            limit = max(_FEWEST_CHARACTERS, int(share * len(newest["content"])))
            best = [*best[:-1], {"role": newest["role"], "content": shorten(newest["content"], limit)}]
    changed = sum(old != new for old, new in zip(messages, best, strict=True))
    return best, changed


def without_turn(text: str) -> str:
    """The text of a user message without the opening of a turn that was joined to its end."""
    return _TURN.split(text, maxsplit=1)[0]


def _shorten_older(messages: Sequence[Message], whole_turns: int, characters: int) -> list[Message]:
    opening = len(messages) - len(conversation(messages)) + 1
    replies = [i for i, message in enumerate(messages) if i >= opening and message["role"] == "assistant"]
    old = replies[: max(0, len(replies) - whole_turns)]
    until = replies[len(old)] if len(old) < len(replies) else len(messages) - 1
    out: list[Message] = []
    for i, message in enumerate(messages):
        text = message["content"]
        if opening <= i < until and len(text) > characters:
            text = shorten(without_turn(text) if message["role"] == "user" else text, characters)
            if i == old[0] + 1 and NOTE not in text:
                text = f"{NOTE}\n{text}"
        out.append({"role": message["role"], "content": text})
    return out
