"""The errors of this package. A failure is an exception, and never a string that starts with "Error:".

The model gets `AnswerRefused`, and the `LLMError` of a sub-call, as text, and can react. `BudgetSpent` and
`ReplyRefused` end a run with its best answer. The others, and an `LLMError` of the root, end it as exceptions.
"""

from __future__ import annotations

from typing import Any, Literal


class RLMError(Exception):
    """Base of all errors of this package."""


class AnswerRefused(RLMError, ValueError):
    """A value cannot be the answer; the message says which values can."""


class LLMError(RLMError, RuntimeError):
    """A language model gave no answer, for example because the key is missing. The message is one line."""

    reply: Any = None
    """The `rlm.models.lm.Reply` that was paid for but is not an answer (cut, empty, refused); None if there is none."""

    def __init__(self, message: str = "", *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same call may succeed a little later."""


class RateLimited(LLMError):
    """The endpoint refuses calls for now: there were too many, or a quota is spent."""

    def __init__(self, message: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, transient=True)
        self.retry_after_seconds = retry_after_seconds
        """The wait in seconds that the endpoint demands; None if it demands none."""


class PromptTooLong(LLMError):
    """A prompt does not fit into the window of its model."""

    def __init__(self, message: str = "", *, tokens: int | None = None, window_tokens: int | None = None) -> None:
        super().__init__(message)
        self.tokens = tokens
        """The tokens of the prompt, which some endpoints count with the reply; None if the endpoint does not say."""
        self.window_tokens = window_tokens
        """The tokens that fit; None if the endpoint does not say."""


class ReplyRefused(LLMError):
    """The model declined to answer, or a filter of its provider held the answer back."""

    def __init__(self, message: str = "", *, reason: Literal["refusal", "content_filter"] = "refusal") -> None:
        super().__init__(message)
        self.reason = reason
        """The `reason` of a run that ends with this error."""


class BudgetSpent(LLMError):
    """A call was not made, or was broken off, because a limit of the run was reached or the run was cancelled."""

    def __init__(self, message: str = "", *, reason: str = "budget") -> None:
        super().__init__(message)
        self.reason = reason
        """The keyword of the limit, such as `max_calls`; `cancelled`; or `budget` if no limit is named."""


class ScriptExhausted(LLMError):
    """A `ScriptedLM` or a `ReplayLM` has no reply for a call."""


class RunnerUnavailable(RLMError, ValueError):
    """There is no runner of this name, it cannot start on this machine, or it cannot take this context."""


class UnknownOption(RLMError, TypeError):
    """A provider, preset or model option is unknown or invalid, or does not go with the others."""


class InvalidArgument(RLMError, ValueError):
    """A question, context or other argument cannot be used here, or the session is closed."""


class TrajectoryError(RLMError, ValueError):
    """A run cannot be resumed, replayed or shown: its file is missing or damaged, or records another run."""


class ChannelAbuse(RLMError, RuntimeError):
    """Code in a sandbox tampered with the channel to its host. The worker and the run are ended."""
