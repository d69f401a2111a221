"""Every error of this package, grouped by what happens to it.

    RLMError
    |-- goes back to the model as text, which repairs it or works around it
    |   |-- AnswerRefused (ValueError)      not usable as an answer: the message says what to give instead
    |   `-- LLMError (RuntimeError)         a sub-call failed; code in a cell may catch it
    |       |-- RateLimited                 asked too often; says when to come back, if the endpoint does
    |       `-- BudgetSpent                 the run may ask nothing more: it ends with its best partial answer
    `-- ends the run as an exception
        |-- LLMError                        the same failure, of the root model
        |   `-- ScriptExhausted             a `ScriptedLM` or `ReplayLM` was asked for more replies than it holds
        |-- RunnerUnavailable (ValueError)  no runner of this name, or not on this machine
        |-- UnknownOption (TypeError)       a keyword of a peer that is spelled otherwise here: the message names ours
        |-- TrajectoryError (ValueError)    a file that no run can be resumed or replayed from
        `-- ChannelAbuse (RuntimeError)     code in a sandbox sent what no worker sends: its run is over

A failure is never a value: nothing here returns a string that starts with "Error:".
"""

from __future__ import annotations


class RLMError(Exception):
    """Base of all errors of this package."""


class AnswerRefused(RLMError, ValueError):
    """What the model offered cannot be its answer; the message says what can."""


class LLMError(RLMError, RuntimeError):
    """A language model gave no answer: no key, unknown model, endpoint down, refused request. One line."""

    def __init__(self, message: str = "", *, transient: bool = False) -> None:
        super().__init__(message)
        self.transient = transient
        """Whether the same call may succeed a little later."""


class RateLimited(LLMError):
    """The endpoint was asked too often."""

    def __init__(self, message: str = "", *, retry_after_seconds: float | None = None) -> None:
        super().__init__(message, transient=True)
        self.retry_after_seconds = retry_after_seconds
        """What the endpoint said; None where it did not."""


class BudgetSpent(LLMError):
    """A budget of the run is spent; nothing was asked."""

    def __init__(self, message: str = "", *, reason: str = "budget") -> None:
        super().__init__(message)
        self.reason = reason
        """The keyword of the budget: `max_calls`, `max_tokens`, ..."""


class ScriptExhausted(LLMError):
    """A `ScriptedLM` or a `ReplayLM` was asked for more replies than it holds."""


class RunnerUnavailable(RLMError, ValueError):
    """There is no runner of this name, or it cannot work here."""


class UnknownOption(RLMError, TypeError):
    """A keyword that is not ours; the message names the one that does the same, where there is one."""


class TrajectoryError(RLMError, ValueError):
    """This file is no trajectory that a run could be resumed or replayed from."""


class ChannelAbuse(RLMError, RuntimeError):
    """Code in a sandbox tampered with the channel to its host. The worker is gone, and the run with it."""
