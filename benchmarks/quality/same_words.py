"""Change the words that a model is told: of a text in memory those of the lazy one, or a line less.

Then only the library, or only that line, can part two transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rlm import RLM
from rlm.models.lm import LM, Message, Reply
from rlm.prompts.compaction import without_turn
from rlm.prompts.examples import conversation


class Reworded:
    """A model of which the loop's prompts go through a function."""

    def __init__(self, lm: LM, reword: Callable[[list[Message]], list[Message]]) -> None:
        self._lm = lm
        self._reword = reword

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lm, name)

    def complete(self, messages: Sequence[Message], **options: Any) -> Reply:
        """As the model's own."""
        return self._lm.complete(self._reword(list(messages)), **options)

    def with_sampling(self, options: Any) -> Reworded:
        """As the model's own."""
        return Reworded(self._lm.with_sampling(options), self._reword)  # type: ignore[attr-defined]


class _Heard(BaseException):
    """The first messages are known. No `Exception`: the loop would take it for a failure of the model."""


def opening(lm: LM, query: str, context: object) -> list[Message]:
    """The messages of the loop up to the question, for this model and context. Asks no model."""
    heard: list[Message] = []

    def listen(messages: list[Message]) -> list[Message]:
        *before, question = messages
        heard.extend([*before, {**question, "content": without_turn(question["content"])}])
        raise _Heard

    try:
        with RLM(lm=Reworded(lm, listen), runner="local") as rlm:
            rlm.completion(query, context)
    except _Heard:
        return heard
    raise AssertionError("the loop asked no model")


def tell(opened: Sequence[Message]) -> Callable[[list[Message]], list[Message]]:
    """A function that puts these messages in place of a run's first ones; prompts of sub-calls stay as they are."""

    def reword(messages: list[Message]) -> list[Message]:
        if messages[0]["role"] != "system":
            return messages
        asked, *since = conversation(messages)
        turn = asked["content"].removeprefix(without_turn(asked["content"]))
        return [*opened[:-1], {**opened[-1], "content": opened[-1]["content"] + turn}, *since]

    return reword


def leave_out(words: str) -> Callable[[list[Message]], list[Message]]:
    """A function that takes the line with these words out of a system prompt; ValueError unless one line has them."""

    def reword(messages: list[Message]) -> list[Message]:
        if messages[0]["role"] != "system":
            return messages
        lines = messages[0]["content"].splitlines(keepends=True)
        kept = [line for line in lines if words not in line]
        if len(kept) != len(lines) - 1:
            raise ValueError(f"{len(lines) - len(kept)} lines of the system prompt have {words!r}, not one")
        return [{**messages[0], "content": "".join(kept)}, *messages[1:]]

    return reword
