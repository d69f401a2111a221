"""Shorten a history that nears the model's window, by rules. No model is called, so a replay gives the same. Pure.

Messages before the first turn, and the newest turns, stay as they are. Replies and output of older turns keep their
head and tail. All variables stay in the REPL, and a note tells the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from rlm.context.excerpt import shorten
from rlm.errors import PromptTooLong
from rlm.models.lm import Message, Reply, estimate_text_tokens, estimate_tokens
from rlm.prompts.examples import conversation

FILL = 0.85
"""The share of the window to fill; the rest is for the reply. rlms has the same figure."""
OUTPUT = 0.25
"""The share of the window that the output of one block may fill."""

# Tried in turn until the history fits: the newest turns that stay whole, and the characters of each older message.
_LEVELS = ((4, 1_200), (2, 400), (1, 200), (0, 200))
_FEWEST_CHARACTERS = 200
"""The characters that an output may have in the smallest window."""
_LESS, _LESS_UNCOUNTED = 0.9, 0.5
"""The share of a prompt that was too long to send next: if the endpoint counted its tokens, and if not."""
_SCALES = (0.25, 8.0)
"""The least and the most tokens for each estimated one. An endpoint outside this range counts something else, such as
tokens that were not cached."""

_STEP = 0.05
"""Scales are rounded up to a multiple of this, since the next text has slightly more tokens than the last."""

NOTE = "[Earlier turns are shortened. Every variable is still there: SHOW_VARS() lists them.]"
_TURN = re.compile(
    r"(?:\A|\n\n)(?:Your last reply and its output were the same [^\n]*\n\n)?Turn \d+(?:/\d+)?[.:][^\n]*\Z"
)
"""The message that opens a turn, at the end of the message that it was joined to; earlier versions wrote other
forms."""


@dataclass(frozen=True, slots=True)
class Window:
    """The window of the root model, and how its endpoint counts tokens."""

    tokens: int
    scale: float = 1.0
    """Tokens that the endpoint counts for each estimated one."""

    def count(self, messages: Sequence[Message]) -> int:
        """The tokens that the endpoint is expected to count in a prompt."""
        return int(self.scale * estimate_tokens(messages))

    def after(self, prompt: Sequence[Message], reply: Reply) -> Window:
        """The window with the scale of an answered call, if its endpoint reported tokens."""
        if reply.estimated or reply.input_tokens <= 0:
            return self
        return self._scaled(prompt, reply.input_tokens)

    def refused(self, prompt: Sequence[Message], refusal: PromptTooLong) -> Window:
        """The window after a refused prompt: the endpoint's own figures, and always smaller than that prompt."""
        scaled = self._scaled(prompt, refusal.tokens) if refusal.tokens else self
        share = _LESS if refusal.tokens else _LESS_UNCOUNTED
        tokens = min(refusal.window_tokens or self.tokens, self.tokens, int(share * scaled.count(prompt) / FILL))
        return replace(scaled, tokens=max(1, tokens))

    def _scaled(self, prompt: Sequence[Message], tokens: int) -> Window:
        least, most = _SCALES
        counted = tokens / max(1, estimate_tokens(prompt))
        return replace(self, scale=min(most, max(least, -(-counted // _STEP) * _STEP)))


def fit(text: str, window: Window) -> str:
    """The output of a block, or as much of its head and tail as a quarter of the window has room for."""
    room = int(OUTPUT * window.tokens)
    limit = len(text)
    while limit > _FEWEST_CHARACTERS:
        shown = shorten(text, limit)
        needed = window.scale * estimate_text_tokens(shown)
        if needed <= room:
            return shown
        limit = max(_FEWEST_CHARACTERS, min(int(limit * room / needed), int(0.95 * limit)))
    return shorten(text, limit)


def compact(messages: Sequence[Message], window_tokens: int, scale: float = 1.0) -> tuple[list[Message], int]:
    """The messages, shortened until they fit, and the number of shortened messages. `scale` is that of a `Window`."""
    window = Window(window_tokens, scale)
    room = int(FILL * window_tokens)
    if window.count(messages) <= room:
        return list(messages), 0
    best: list[Message] = list(messages)
    for whole_turns, characters in _LEVELS:
        best = _shorten_older(messages, whole_turns, characters)
        if window.count(best) <= room:
            break
    else:
        best = [*best[:-1], _cut_newest(best, room, window)] if len(conversation(best)) > 1 else best
    changed = sum(old != new for old, new in zip(messages, best, strict=True))
    return best, changed


def _cut_newest(messages: Sequence[Message], room: int, window: Window) -> Message:
    """The newest message, cut to the room that the other messages leave."""
    newest = messages[-1]
    text, taken = newest["content"], window.count([newest])
    share = (room - window.count(messages[:-1])) / max(1, taken)
    return {"role": newest["role"], "content": shorten(text, max(_FEWEST_CHARACTERS, int(share * len(text))))}


def without_turn(text: str) -> str:
    """A user's message without the message that opens a turn, which may be joined to its end."""
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
