"""What a run asks of a language model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

Message = dict[str, str]
"""`{"role": ..., "content": ...}`."""

CHARACTERS_PER_TOKEN = 4
"""For estimates, where nobody has counted: English prose and code lie between 3.5 and 4.5."""


@dataclass(frozen=True, slots=True)
class Reply:
    """One answered call."""

    text: str
    """What the model wrote."""
    input_tokens: int
    """0 where the endpoint does not say."""
    output_tokens: int
    """0 where the endpoint does not say."""
    model: str
    """The name that was asked for."""
    dollars: float | None = None
    """What the endpoint itself says that it cost; None where it does not, and the price table is asked."""
    cached: bool = False
    """Answered by the cache of sub-answers: nothing was asked, nothing is counted."""


class LM(Protocol):
    """A language model. Safe for use by many threads.

    Optional attributes: `model`, the default name; `prompt_characters`, what one prompt may hold; `window_tokens`, the
    same for a root; `secrets`, strings that must not be written down; `close()`, which frees connections.
    """

    def complete(
        self,
        messages: Sequence[Message],
        *,
        model: str | None = None,
        on_delta: Callable[[str], object] | None = None,
    ) -> Reply:
        """Answer a conversation, calling `on_delta` with each piece of text as it arrives.

        Raises LLMError; one whose `transient` is true is worth another try. An exception of `on_delta` ends the call.
        """
        ...


def estimated_tokens(messages: Sequence[Message]) -> int:
    """Tokens of a prompt, by the rule of thumb."""
    return -(-sum(len(message["content"]) for message in messages) // CHARACTERS_PER_TOKEN)
