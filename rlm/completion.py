"""What a run gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rlm.usage import Usage


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a run, and how it came about. `str(completion)` is the answer."""

    answer: str
    finished: bool
    """True when the model gave the answer by itself; else forced, or the best there was when a budget was spent."""
    reason: str
    """Why the run ended: `answer`, or the budget that was spent: `max_iterations`, `max_calls`, `max_tokens`,
    `max_dollars`, `max_seconds`; `cancelled`."""
    iterations: int
    """Turns taken, without the call for a forced answer."""
    usage: Usage
    """Calls, tokens and dollars per model, sub-calls and child runs included."""
    io: dict[str, float] | None
    """What the run read from storage: gets, bytes, hits, ms waited. None where the context does not count."""
    seconds: float
    """Wall clock."""
    trajectory: list[dict[str, Any]]
    """The lines of the trajectory: one of metadata, then one per call of the root model."""
    trajectory_path: Path | None
    """The file that holds them, if one was asked for."""
    notes: tuple[str, ...] = ()
    """What a reader of the figures should know: models without a known price, cells that replayed differently."""

    def __str__(self) -> str:
        return self.answer

    @property
    def response(self) -> str:
        """The answer, under the name that rlms gives it."""
        return self.answer

    @property
    def cost(self) -> float | None:
        """Dollars; None when the price of a model that was used is not known."""
        return self.usage.dollars

    @property
    def usage_summary(self) -> Usage:
        """The usage, under the name that rlms gives it."""
        return self.usage

    @property
    def execution_time(self) -> float:
        """Seconds, under the name that rlms gives them."""
        return self.seconds

    @property
    def root_model(self) -> str:
        """The name of the root model."""
        return str(self.trajectory[0]["root_model"])
