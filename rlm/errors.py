"""Every error of this package, grouped by what happens to it.

    RLMError
    |-- goes back to the model as text, which repairs it or works around it
    |   |-- AnswerRefused (ValueError)      not usable as an answer: the message says what to give instead
    |   `-- LLMError (RuntimeError)         a sub-call failed; code in a cell may catch it
    `-- ends the run as an exception
        |-- LLMError                        the same failure, of the root model
        |   `-- ScriptExhausted             a `ScriptedLM` was asked for more replies than it holds
        |-- RunnerUnavailable (ValueError)  no runner of this name, or not on this machine
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


class ScriptExhausted(LLMError):
    """A `ScriptedLM` was asked for more replies than its script holds."""


class RunnerUnavailable(RLMError, ValueError):
    """There is no runner of this name, or it cannot work here."""


class ChannelAbuse(RLMError, RuntimeError):
    """Code in a sandbox tampered with the channel to its host. The worker is gone, and the run with it."""
