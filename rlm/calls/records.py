"""Define the records of the model calls that cells make, and of their child runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rlm.calls.usage import Usage
from rlm.errors import LLMError
from rlm.models.lm import Reply


@dataclass(frozen=True, slots=True)
class ChildRun:
    """The result and the cost of a child run."""

    answer: str  # empty if it failed
    usage: Usage
    iterations: Sequence[Mapping[str, Any]] = ()  # its trajectory lines, one a turn, without prompts
    reason: str | None = None  # why it ended; None if its root model failed
    error: LLMError | None = None  # why it has no answer

    def to_dict(self) -> dict[str, Any]:
        """The fields of the child run in the record of its call."""
        return {"usage_summary": self.usage.to_dict(), "iterations": self.iterations, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class SubCall:
    """The record of one call, answered or failed."""

    prompt: str  # shortened if the call failed and it was long
    reply: Reply  # of a failed call: without text, with the tokens that were paid
    dollars: float | None  # None where no price is known
    start_seconds: float  # since the run began
    execution_seconds: float
    key: str  # a hash of model, prompt and a child's context: equal for equal calls
    order: int  # the number of the call in its run
    error: str | None = None
    child: ChildRun | None = None
