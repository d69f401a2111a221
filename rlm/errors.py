"""Every error of this package. A failure is never a value: nothing here returns a string that starts with "Error:".

The model gets `AnswerRefused`, and the `LLMError` of a sub-call, as text, and can react to it. The others, and an
`LLMError` of the root, end the run as exceptions; a `BudgetSpent` ends it with its best answer.
"""

from __future__ import annotations

from typing import Any, Literal


class RLMError(Exception):
    """Base of all errors of this package."""


class AnswerRefused(RLMError, ValueError):
    """A value cannot be the answer; the message says which values can."""


class LLMError(RLMError, RuntimeError):
    """A language model gave no answer, as for a missing key or an unknown model. The message is one line."""

    reply: Any = None
    """The `rlm.models.lm.Reply` that was paid for and is not an answer (cut, empty, refused); None if there is none."""

    def __init__(self, message: str = "", *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same call may succeed a little later."""


class RateLimited(LLMError):
    """The endpoint refuses a call for now: it got too many, or a quota is spent."""

    def __init__(self, message: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, transient=True)
        self.retry_after_seconds = retry_after_seconds
        """The wait in seconds that the endpoint demands; None if it demands none."""


class PromptTooLong(LLMError):
    """A prompt does not fit into the window of its model."""

    def __init__(self, message: str = "", *, tokens: int | None = None, window_tokens: int | None = None) -> None:
        super().__init__(message)
        self.tokens = tokens
        """The tokens of the prompt as the endpoint counts them (some add the reply); None if it does not say."""
        self.window_tokens = window_tokens
        """The tokens that fit, as the endpoint says; None if it does not say."""


class ReplyRefused(LLMError):
    """The model declined to answer, or a filter of its provider held the answer back."""

    def __init__(self, message: str = "", *, reason: Literal["refusal", "content_filter"] = "refusal") -> None:
        super().__init__(message)
        self.reason = reason
        """The reason of a run that ends so."""


class BudgetSpent(LLMError):
    """A limit of the run is reached: a call was not made, or was broken off."""

    def __init__(self, message: str = "", *, reason: str = "budget") -> None:
        super().__init__(message)
        self.reason = reason
        """The keyword of the limit: `max_calls`, `max_tokens`, ...; `cancelled` or `budget` without one."""


class ScriptExhausted(LLMError):
    """A `ScriptedLM` or a `ReplayLM` has no more replies."""


class RunnerUnavailable(RLMError, ValueError):
    """There is no runner of this name, or it cannot start here, or cannot take this context; the message says why."""


class UnknownOption(RLMError, TypeError):
    """There is no such provider, preset or option of a model; the message names those that there are."""


class InvalidArgument(RLMError, ValueError):
    """The question of a run is empty or longer than the window, or its context is only an address or a file name."""


class TrajectoryError(RLMError, ValueError):
    """A run cannot be resumed or replayed from this file: it is missing, damaged, or records another run."""


class ChannelAbuse(RLMError, RuntimeError):
    """Code in a sandbox tampered with the channel to its host. The worker is gone, and the run with it."""
